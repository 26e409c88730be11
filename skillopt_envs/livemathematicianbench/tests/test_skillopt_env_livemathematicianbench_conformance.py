from pathlib import Path

import pytest
from skillopt_testkit import EnvironmentConformance


class TestConformance(EnvironmentConformance):
    name = "livemathematicianbench"

    @pytest.fixture
    def env_settings(self):
        return {"split_mode": "ratio", "split_ratio": "2:1:1", "data_path": Path(__file__).parent / "data"}

    def right_reply(self, task):
        return f"By the theorem.\n<answer>{task.reference['label']}</answer>"
