"""SkillOpt as people install it: the kernel and the default plugins.

Hands on the kernel's public names, so that `from skillopt_core import train` works, and functions of
`skillopt_commands` and `skillopt_analysis`. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import skillopt_kernel
from skillopt_kernel.version import lazy_version

_FUNCTIONS = {
    "evaluate": "skillopt_commands.evaluation",
    "run_slow_update": "skillopt_analysis.epoch_functions",
    "run_meta_skill": "skillopt_analysis.epoch_functions",
}

__all__ = [*skillopt_kernel.__all__, *_FUNCTIONS]
_own = lazy_version("skillopt-core")


def __getattr__(name: str) -> Any:
    if name in _FUNCTIONS:
        return getattr(import_module(_FUNCTIONS[name]), name)
    return getattr(skillopt_kernel, name) if name in __all__ else _own(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
