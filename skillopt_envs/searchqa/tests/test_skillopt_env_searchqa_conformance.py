import pytest
from skillopt_testkit import EnvironmentConformance, Project


class TestConformance(EnvironmentConformance):
    name = "searchqa"

    @pytest.fixture
    def env_settings(self, tmp_path):
        return {"split_mode": "split_dir", "split_dir": Project.make(tmp_path / "project").folder / "data"}

    def right_reply(self, task):
        return f"Considering.\n<answer>{task.reference[0]}</answer>"
