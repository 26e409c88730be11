"""The update mode `patch`: an update is a few edits of the skill's text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillopt_kernel.interfaces import DriverContext, Optimizer
from skillopt_kernel.records import Applied, Edit, EditBudget, Update

from skillopt_update_patch.engine import apply_edits
from skillopt_update_patch.items import ITEM_SCHEMA, describe_edit, read_edit, write_edit

PROMPTS = ("analyst_failure", "analyst_success", "merge_failure", "merge_success", "merge_final", "ranking")


class PatchMode:
    """The `UpdateMode` of small edits. It asks the optimizer nothing and keeps nothing between calls."""

    name = "patch"
    payload = "edits"
    item_schema: Mapping[str, Any] = ITEM_SCHEMA
    budgeted = True
    separable = True

    def prompts(self) -> Mapping[str, str]:
        """The system prompts, from the package's `prompts` folder."""
        from importlib.resources import files

        folder = files("skillopt_update_patch") / "prompts"
        return {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in PROMPTS}

    def read_item(self, raw: Mapping[str, Any]) -> Edit:
        """The edit in one JSON object; raises `ValueError` with the reason."""
        return read_edit(raw)

    def write_item(self, item: Edit) -> dict[str, Any]:
        """The JSON object of an edit, the inverse of `read_item`."""
        return write_edit(item)

    def describe_item(self, item: Edit) -> str:
        """One line for ranking and memory, nothing shortened."""
        return describe_edit(item)

    def apply(self, skill: str, update: Update, budget: EditBudget, optimizer: Optimizer) -> Applied:
        """The candidate and a report on every item, those of `update.over_budget` included."""
        candidate, reports = apply_edits(skill, update.items, budget, update.over_budget)
        return Applied(candidate, reports)


def make_update_mode(settings: Any, context: DriverContext) -> PatchMode:
    """The update mode `patch`; it has no settings."""
    return PatchMode()
