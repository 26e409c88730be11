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
