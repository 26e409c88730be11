"""What the settings of every backend that runs a program have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
from attrs import frozen
from skillopt_kernel.config.fields import above, option

from skillopt_lib_agent.environment import names_of_variables


@frozen
class ProgramSettings:
    """The base of a driver's settings class, which adds `path` with its own default."""

    timeout_seconds: float = option(
        600.0, "seconds that one job may take, whatever its deadline allows", above(0), free=True
    )
    pass_variables: tuple[str, ...] = option(
        (), "names of further environment variables that the program is given", names_of_variables
    )
    readable_paths: tuple[Path, ...] = option(
        (), "what the program may read beside its own files when it is isolated", free=True, path="lazy"
    )


def one_of(*words: str) -> Any:
    """A check for texts: one of these words."""

    def check(_: object, attribute: attrs.Attribute[Any], value: str) -> None:
        if value not in words:
            raise ValueError(f"must be one of {', '.join(map(repr, words))}, not {value!r}")

    return check
