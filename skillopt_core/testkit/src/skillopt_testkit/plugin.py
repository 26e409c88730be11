"""The pytest plugin: fixtures for authors. Nothing of SkillOpt is imported before a fixture is used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from skillopt_testkit.project import Project
    from skillopt_testkit.servers import ChatServer


@pytest.fixture
def skillopt_project(tmp_path: Path) -> Project:
    """A folder with a small data set, a simulated world and a configuration; `.run("train", ...)` runs `skillopt`.

    Needs skillopt-core and skillopt-env-searchqa, unless the test writes a configuration of its own.
    """
    from skillopt_testkit.project import Project

    return Project.make(tmp_path / "project")


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    """A loopback Chat Completions server that answers "ok"; tests may replace its script."""
    from skillopt_testkit.servers import ChatServer

    with ChatServer() as server:
        yield server
