"""The default plugin of each stage. Registered `trylast`: a user's plugin is always asked first."""

from __future__ import annotations

from importlib import import_module
from typing import Any

DEFAULT_STAGES = ("rollout", "reflect", "aggregate", "edit_budget", "select", "update", "gate")


def default_stages() -> tuple[tuple[str, Any], ...]:
    """The kernel's own plugins as (name, module), in the order of the loop."""
    return tuple((f"kernel.{name}", import_module(f"{__name__}.{name}")) for name in DEFAULT_STAGES)
