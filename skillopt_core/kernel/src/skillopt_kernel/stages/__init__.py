"""The default plugin of each stage. Registered `trylast`: a user's plugin is always asked first."""

from __future__ import annotations

from importlib import import_module
from typing import Any

DEFAULT_STAGES = (
    "rollout", "reflect", "aggregate", "edit_budget", "select", "update", "gate", "slow_update", "meta_skill",
)  # fmt: skip
PROMPTS = ("slow_update", "meta_skill")


def default_stages() -> tuple[tuple[str, Any], ...]:
    """The kernel's own plugins as (name, module), in the order of the loop."""
    return tuple((f"kernel.{name}", import_module(f"{__name__}.{name}")) for name in DEFAULT_STAGES)


def prompts() -> dict[str, str]:
    """The system prompts of the kernel's own stages; those of the others belong to the update mode."""
    from importlib.resources import files

    folder = files(__name__) / "prompts"
    return {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in PROMPTS}
