"""SkillOpt as people install it: the kernel and the default plugins.

Hands on the kernel's public names, so that `from skillopt_core import train` works, with some functions that the
kernel does without. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import skillopt_kernel
from skillopt_kernel.version import lazy_version

_HOME_OF = {
    "run_slow_update": "skillopt_core.epoch_functions",
    "run_meta_skill": "skillopt_core.epoch_functions",
    "train_seeds": "skillopt_commands.series",
    "SeedsSummary": "skillopt_commands.series",
}
"""Name -> the module that has it, of what is not the kernel's."""

__all__ = [*skillopt_kernel.__all__, *_HOME_OF]
_own = lazy_version("skillopt-core")


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    return getattr(skillopt_kernel, name) if name in __all__ else _own(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
