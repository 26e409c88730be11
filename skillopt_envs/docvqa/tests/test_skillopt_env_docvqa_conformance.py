import pytest
from skillopt_env_docvqa_letters import write_split
from skillopt_testkit import EnvironmentConformance


class TestConformance(EnvironmentConformance):
    name = "docvqa"

    @pytest.fixture
    def env_settings(self, tmp_path):
        return {"split_mode": "split_dir", "split_dir": write_split(tmp_path / "data")}

    def right_reply(self, task):
        return f"In the second line.\n<answer>{task.reference[0]}</answer>"
