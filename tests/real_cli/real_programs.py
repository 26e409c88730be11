"""The real programs, from npm: pinned versions, installed once into a cache outside the repository.

SKILLOPT_PROGRAMS names the cache's folder; else it is `skillopt-programs` in the user's cache. Where npm or the network
is missing, tests are skipped and say so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

SECONDS = 300
"""How long an installation may take: some programs have 400 MB."""


def cache() -> Path:
    named = os.environ.get("SKILLOPT_PROGRAMS")
    return (
        Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "skillopt-programs")
    )


def installed(package: str, version: str, command: str) -> Path:
    """The command of a package of npm, installed if it is not yet. Skips the test where it cannot be."""
    folder = cache() / f"{package.strip('@').replace('/', '-')}-{version}"
    program = folder / "node_modules" / ".bin" / command
    if program.exists():
        return program
    if shutil.which("npm") is None:
        pytest.skip(f"{package} is not in {cache()}, and there is no npm to install it")
    cache().mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix="installing-", dir=cache()))
    try:
        line = [
            "npm",
            "install",
            "--prefix",
            str(made),
            "--no-audit",
            "--no-fund",
            "--fetch-retries=1",
            f"{package}@{version}",
        ]
        done = subprocess.run(
            line, capture_output=True, text=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL
        )
        if done.returncode != 0 or not (made / "node_modules" / ".bin" / command).exists():
            pytest.skip(f"npm cannot install {package}@{version}: {(done.stderr or done.stdout).strip()[-300:]}")
        try:
            made.rename(folder)
        except OSError:  # another test process was faster
            assert program.exists()
    except subprocess.TimeoutExpired:
        pytest.skip(f"npm did not install {package}@{version} within {SECONDS} s")
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return program
