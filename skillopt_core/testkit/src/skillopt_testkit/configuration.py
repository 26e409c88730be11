"""What is wrong with a configuration, told as a user is told."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from skillopt_kernel.config import load_config
from skillopt_kernel.errors import ConfigError

UNNEEDED = ("gate_metric", "lr_scheduler", "skill_update_mode", "model.backend")
"""Keys that name drivers which a distribution that is tested alone does not need, so that they may be missing."""


def problems(folder: Path, text: str, *overrides: str, besides: Collection[str] = UNNEEDED) -> list[str]:
    """What is wrong with `text` as the file `mine.yaml`, from its name on, environment variables left aside.

    besides: a problem that holds one of these words is none.
    """
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    try:
        load_config(path, overrides, environ={})
    except ConfigError as error:
        found = [problem.replace(f"{folder}/", "") for problem in error.problems]
        return [problem for problem in found if not any(other in problem for other in besides)]
    return []
