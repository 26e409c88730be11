import pytest
from officeqa_world import CORPUS, DATA, QUESTIONS
from skillopt_testkit import EnvironmentConformance
from skillopt_testkit.project import Project


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("officeqa"))
    project.run("data", "officeqa", "--from", QUESTIONS, "--manifest", DATA / "ids", "--out", "split").ok()
    return project.folder / "split"


class TestConformance(EnvironmentConformance):
    name = "officeqa"

    @pytest.fixture
    def env_settings(self, folder):
        return {"split_mode": "split_dir", "split_dir": folder}

    @pytest.fixture
    def settings(self):
        return self.settings_with(data_dirs=(CORPUS,))

    def right_reply(self, task):
        return f"Considering.\n<answer>{task.reference['answer']}</answer>"


class TestConformanceWithGoldSources(TestConformance):
    @pytest.fixture
    def settings(self):
        return self.settings_with(data_dirs=(CORPUS,), gold_sources=True)
