"""Every wheel built once, what they need downloaded once, and environments made of nothing else, offline."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

UNREACHABLE = "http://127.0.0.1:9"


def offline_variables() -> dict[str, str]:
    """The environment of a user who has no network and no settings of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PYTHON"))}
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy"), UNREACHABLE)
    return {
        **kept,
        **proxies,
        "no_proxy": "127.0.0.1",
        "NO_PROXY": "127.0.0.1",
        "PIP_CONFIG_FILE": os.devnull,
        "PYTHONIOENCODING": "utf-8",
    }


def run(*command: str | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=env, capture_output=True, encoding="utf-8", timeout=600, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@attrs.frozen
class Installation:
    """An environment outside the checkout into which only wheels are installed."""

    folder: Path
    wheels: tuple[Path, ...]

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def install(self, *names: str) -> str:
        """`pip install NAMES` from the wheels, without an index."""
        found = [word for folder in self.wheels for word in ("--find-links", folder)]
        output = self.call("-m", "pip", "install", "--no-index", *found, *names)
        self.call("-m", "pip", "check")
        return output

    def call(self, *arguments: str | Path) -> str:
        """Standard output of this environment's Python, run outside the checkout."""
        return run(self.python, "-I", *arguments, cwd=self.folder, env=offline_variables())

    def skillopt(self, *arguments: str | Path) -> str:
        """Standard output of the command `skillopt`, run outside the checkout."""
        return run(self.folder / "bin" / "skillopt", *arguments, cwd=self.folder, env=offline_variables())


@pytest.fixture(scope="session")
def dist(root, tmp_path_factory) -> Path:
    """The wheels of every distribution, and of the packages in `tests/third_party`."""
    folder = tmp_path_factory.mktemp("dist")
    uv = shutil.which("uv")
    assert uv is not None, "building wheels needs uv: run `tox -e wheels`"
    run(uv, "build", "--quiet", "--wheel", "--all-packages", "--out-dir", folder, cwd=root)
    return folder


@pytest.fixture(scope="session")
def third_party_dist(root, tmp_path_factory) -> Path:
    """The wheels of the packages in `tests/third_party`, each built by itself, as its author would."""
    folder = tmp_path_factory.mktemp("third_party")
    uv = shutil.which("uv")
    assert uv is not None, "building wheels needs uv: run `tox -e wheels`"
    for package in sorted((root / "tests/third_party").iterdir()):
        alone = folder / package.name
        shutil.copytree(package, alone)  # outside the checkout: no workspace around it
        run(uv, "build", "--quiet", "--wheel", "--out-dir", folder, cwd=alone)
    return folder


@pytest.fixture(scope="session")
def wheelhouse(root, distributions, tmp_path_factory) -> Path:
    """The wheels of what our distributions need, in the locked versions. The one step that needs a network."""
    folder = tmp_path_factory.mktemp("wheelhouse")
    run(sys.executable, "-m", "venv", folder / "pip", cwd=folder)
    lines = {line for each in distributions for line in each.requirements if not line.startswith("skillopt-")}
    command = (folder / "pip/bin/python", "-m", "pip", "download", "--quiet", "--only-binary", ":all:")
    run(*command, "--constraint", root / "constraints.txt", "--dest", folder / "wheels", *sorted(lines), cwd=folder)
    return folder / "wheels"


@pytest.fixture
def installation(dist, third_party_dist, wheelhouse, tmp_path) -> Installation:
    """An empty environment that can install from these wheels."""
    run(sys.executable, "-m", "venv", tmp_path / "empty", cwd=tmp_path, env=offline_variables())
    return Installation(tmp_path / "empty", (dist, third_party_dist, wheelhouse))
