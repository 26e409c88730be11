"""SkillOpt's microkernel: the loop, its records, its hooks, and how plugins are found.

Public names are handed on lazily, so that `import skillopt_kernel` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

_HOME_OF = {
    name: f"{__name__}.{module}"
    for line in (Path(__file__).parent / "names.txt").read_text(encoding="utf-8").splitlines()
    for module, _, names in [line.partition(": ")]
    for name in names.split()
}
"""Public name -> the module that has it; a line of `names.txt` is a module and names."""

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is not None:
        return getattr(import_module(home), name)
    if name == "__version__":
        from skillopt_kernel.version import version_of

        return version_of("skillopt-kernel")
    raise AttributeError(f"module 'skillopt_kernel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
