"""The stand-in for the Copilot CLI as a program that can be run."""

from __future__ import annotations

from pathlib import Path

from skillopt_testkit.programs import write_program


def write_copilot(folder: Path) -> Path:
    """Write the stand-in as `copilot` into a folder, and return its path."""
    return write_program(folder, "copilot", Path(__file__).with_name("copilot_cli.py").read_text("utf-8"))
