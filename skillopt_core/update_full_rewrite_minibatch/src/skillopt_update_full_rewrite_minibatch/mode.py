"""The update mode `full_rewrite_minibatch`: an update is a whole skill, by an analyst or merged from several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillopt_kernel.interfaces import DriverContext, UpdateOptimizer
from skillopt_kernel.records import Applied, EditBudget, ItemReport, Update
from skillopt_kernel.skill import restore_protected

from skillopt_update_full_rewrite_minibatch.items import (
    ITEM_SCHEMA,
    WholeSkill,
    describe_whole_skill,
    read_whole_skill,
    write_whole_skill,
)

PROMPTS = ("analyst_failure", "analyst_success", "merge_failure", "merge_success", "merge_final")


class WholeSkillMode:
    """The `UpdateMode` of whole skills. It asks the optimizer nothing and keeps nothing between calls."""

    name = "full_rewrite_minibatch"
    payload = "skill_candidates"
    item_schema: Mapping[str, Any] = ITEM_SCHEMA
    budgeted = False
    separable = False

    def prompts(self) -> Mapping[str, str]:
        """The system prompts, from the package's `prompts` folder. There is no ranking: no budget applies."""
        from importlib.resources import files

        folder = files("skillopt_update_full_rewrite_minibatch") / "prompts"
        return {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in PROMPTS}

    def read_item(self, raw: Mapping[str, Any]) -> WholeSkill:
        """The skill in one JSON object; raises `ValueError` with the reason."""
        return read_whole_skill(raw)

    def write_item(self, item: WholeSkill) -> dict[str, Any]:
        """The JSON object of a skill, the inverse of `read_item`."""
        return write_whole_skill(item)

    def describe_item(self, item: WholeSkill) -> str:
        """One line for memory: title and changes."""
        return describe_whole_skill(item)

    def apply(self, skill: str, update: Update, budget: EditBudget, optimizer: UpdateOptimizer) -> Applied:
        """The first whole skill, with the front matter and protected regions of `skill`, and a report on every item.

        Without one the candidate is `skill`, and `error` says why.
        """
        reports: list[ItemReport] = []
        candidate: str | None = None
        record: dict[str, Any] = {}
        for index, item in enumerate(update.items, start=1):
            if candidate is not None:
                detail = "a step takes one whole skill, and another came first"
                reports.append(ItemReport(index, item, "over_budget", detail))
                continue
            try:
                candidate = restore_protected(skill, _text(item))
            except ValueError as error:
                reports.append(ItemReport(index, item, "invalid", str(error)))
                continue
            status = "no_op" if candidate == skill else "applied"
            reports.append(ItemReport(index, item, status, "taken as the candidate"))
            record = {"selected_candidate": write_whole_skill(item), "merged_patch": self._merged(update)}
        if candidate is None:
            return Applied(skill, tuple(reports), error="the update holds no whole skill that could be taken")
        return Applied(candidate, tuple(reports), {"full_rewrite_result": record})

    def _merged(self, update: Update) -> dict[str, Any]:
        written = [write_whole_skill(item) for item in update.items if isinstance(item, WholeSkill)]
        return {"reasoning": update.reasoning, self.payload: written}


def _text(item: Any) -> str:
    if not isinstance(item, WholeSkill):
        raise ValueError(f"a whole skill was expected, not {type(item).__name__}")
    return item.new_skill


def make_update_mode(settings: Any, context: DriverContext) -> WholeSkillMode:
    """The update mode `full_rewrite_minibatch`; it has no settings."""
    return WholeSkillMode()
