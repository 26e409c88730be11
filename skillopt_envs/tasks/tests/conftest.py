"""What the tests of this distribution make their environments of."""

import logging
from pathlib import Path

import pytest
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import make_driver


@pytest.fixture
def written(tmp_path):
    """`written(name, content)`: a file, and its path."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


@pytest.fixture
def environment():
    """`environment(path, common={...}, **settings)`: the environment on a file, or with what `common` says."""

    def make(path=None, common=None, **settings):
        from skillopt_env_tasks.settings import FieldNames, TasksSettings

        keys = {"split_ratio": "2:1:2", **({"data_path": Path(path)} if path else {}), **(common or {})}
        if isinstance(settings.get("fields"), dict):
            settings["fields"] = FieldNames(**settings["fields"])
        context = DriverContext(logging.getLogger("skillopt.test"), common=EnvSettings(name="tasks", **keys))
        return make_driver("env", "tasks", TasksSettings(**settings), context)

    return make


@pytest.fixture
def sums(written):
    """A CSV file of `count` sums."""

    def write(count=20, name="sums.csv"):
        rows = "".join(f"What is {n} plus {n}?,{n + n}\n" for n in range(count))
        return written(name, f"question,answer\n{rows}")

    return write
