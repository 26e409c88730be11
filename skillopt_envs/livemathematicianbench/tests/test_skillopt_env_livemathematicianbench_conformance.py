from pathlib import Path

import pytest
from skillopt_testkit import EnvironmentConformance
from skillopt_testkit.project import Project

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("livemathematicianbench"))
    project.run("data", "livemathematicianbench", "--from", DATA, "--clean", "--out", "split").ok()
    return project.folder / "split"


class TestConformance(EnvironmentConformance):
    name = "livemathematicianbench"

    @pytest.fixture
    def env_settings(self, folder):
        return {"split_mode": "split_dir", "split_dir": folder}

    def right_reply(self, task):
        return f"By the theorem.\n<answer>{task.reference['label']}</answer>"
