"""The repository as the tests that cross distributions see it."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).resolve().parents[1]


@attrs.frozen
class Distribution:
    """One member of the workspace."""

    folder: Path
    metadata: dict[str, Any]

    @property
    def name(self) -> str:
        return self.metadata["project"]["name"]

    @property
    def package(self) -> str:
        """The import name that the rule of names gives it."""
        return self.name.replace("-", "_")

    @property
    def source(self) -> Path:
        return self.folder / "src" / self.package

    @property
    def requirements(self) -> list[str]:
        """What it declares to need when it runs, extras included."""
        project = self.metadata["project"]
        extras = [line for lines in project.get("optional-dependencies", {}).values() for line in lines]
        return [*project.get("dependencies", []), *extras]

    @property
    def requirements_of_tests(self) -> list[str]:
        return self.metadata.get("dependency-groups", {}).get("test", [])

    @property
    def modules(self) -> list[Path]:
        return sorted(self.source.rglob("*.py"))

    @property
    def tests(self) -> list[Path]:
        return sorted((self.folder / "tests").rglob("*.py"))

    def __str__(self) -> str:
        return self.name


def _distributions() -> list[Distribution]:
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["workspace"]["members"]
    files = sorted(path for pattern in patterns for path in ROOT.glob(f"{pattern}/pyproject.toml"))
    return [Distribution(path.parent, tomllib.loads(path.read_text())) for path in files]


DISTRIBUTIONS = _distributions()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `distribution` runs once for each."""
    if "distribution" in metafunc.fixturenames:
        metafunc.parametrize("distribution", DISTRIBUTIONS, ids=str)


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def distributions() -> list[Distribution]:
    return DISTRIBUTIONS


@pytest.fixture(scope="session")
def committed() -> list[Path]:
    """The files of the repository: committed, or new and not ignored."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    return sorted(ROOT / name for name in set(listed.split("\0")) if name and (ROOT / name).is_file())
