"""Programs for tests: scripts of this interpreter that need nothing but the standard library.

They run behind a wall as well, where neither this distribution nor the test's folder is visible.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path


def write_program(folder: Path, name: str, source: str) -> Path:
    """Write a Python script as a program that can be run, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    if os.name == "nt":  # a script is run through a shim there, as npm's are
        script = folder / f"{name}.py"
        script.write_text(source, encoding="utf-8")
        program = folder / f"{name}.cmd"
        program.write_text(f'@"{sys.executable}" -I -S "{script}" %*\n', encoding="utf-8")
        return program
    program = folder / name
    program.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
    program.chmod(0o755)
    return program


def stand_in(folder: Path, name: str, fault: str = "") -> Path:
    """Write the stand-in for a program that this package has (`codex`), with something that goes wrong with it."""
    from importlib.resources import files

    source = files("skillopt_testkit.programs").joinpath(f"{name}.py").read_text("utf-8")
    assert 'FAULT = ""\n' in source
    return write_program(folder, name, source.replace('FAULT = ""\n', f"FAULT = {fault!r}\n", 1))
