import json

import pytest
from officeqa_world import CORPUS, DATA, QUESTIONS
from skillopt_testkit.project import Project

KEY = "key-of-the-loopback-server-0123456789"


@pytest.fixture
def split(tmp_path):
    """The split of the small data set, as `skillopt data officeqa` writes it."""
    project = Project(tmp_path)
    project.run("data", "officeqa", "--from", QUESTIONS, "--manifest", DATA / "ids", "--out", "split").ok()
    return tmp_path / "split"


@pytest.fixture
def project(tmp_path, split):
    return Project(tmp_path, {"OPENAI_COMPATIBLE_API_KEY": KEY})


@pytest.fixture
def configure(project):
    """Writes a configuration for a server, with further keys of sections."""

    def write(server, model=None, **env):
        settings = {
            "_base_": "officeqa",
            "train": {"num_epochs": 1, "batch_size": 4},
            "optimizer": {"lr_scheduler": "constant", "use_slow_update": False, "use_meta_skill": False},
            "env": {"split_dir": "split", "data_dirs": [str(CORPUS)], "max_tool_turns": 8, **env},
            "model": {"backend": "openai_compatible", "openai_compatible_base_url": server.url,
                      "optimizer": "optimizer", "target": "target", **(model or {})},
        }  # fmt: skip
        return project.write("mine.yaml", json.dumps(settings)).name

    return write
