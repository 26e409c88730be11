"""The update mode `rewrite_from_suggestions`: suggestions in words, applied by one rewrite of the skill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillopt_kernel.errors import ModelError
from skillopt_kernel.interfaces import DriverContext, UpdateOptimizer
from skillopt_kernel.records import Applied, EditBudget, ItemReport, Update
from skillopt_kernel.skill import restore_protected
from skillopt_kernel.stages.asking import failure_sentence
from skillopt_kernel.stages.evidence import section, skill_section

from skillopt_update_rewrite_from_suggestions.items import (
    ITEM_SCHEMA,
    Suggestion,
    describe_suggestion,
    read_suggestion,
    write_suggestion,
)

PROMPTS = (
    "analyst_failure", "analyst_success", "merge_failure", "merge_success", "merge_final", "ranking", "rewrite",
)  # fmt: skip


class SuggestionMode:
    """The `UpdateMode` of suggestions. It keeps nothing between calls."""

    name = "rewrite_from_suggestions"
    payload = "revise_suggestions"
    item_schema: Mapping[str, Any] = ITEM_SCHEMA
    budgeted = True
    separable = False

    def prompts(self) -> Mapping[str, str]:
        """The system prompts, from the package's `prompts` folder."""
        from importlib.resources import files

        folder = files("skillopt_update_rewrite_from_suggestions") / "prompts"
        return {name: (folder / f"{name}.md").read_text(encoding="utf-8") for name in PROMPTS}

    def read_item(self, raw: Mapping[str, Any]) -> Suggestion:
        """The suggestion in one JSON object; raises `ValueError` with the reason."""
        return read_suggestion(raw)

    def write_item(self, item: Suggestion) -> dict[str, Any]:
        """The JSON object of a suggestion, the inverse of `read_item`."""
        return write_suggestion(item)

    def describe_item(self, item: Suggestion) -> str:
        """One line for ranking and memory, nothing shortened."""
        return describe_suggestion(item)

    def apply(self, skill: str, update: Update, budget: EditBudget, optimizer: UpdateOptimizer) -> Applied:
        """The rewritten skill with the front matter and protected regions of `skill`, and a report on every item.

        Asks once. Without a usable reply the candidate is `skill`, and `error` says why.
        """
        chosen = [item for item in update.items if isinstance(item, Suggestion)][: budget.limit]
        if not chosen:
            reports = _reports(update, [], budget, "")
            return Applied(skill, reports, error="there is no suggestion that the step may follow")
        try:
            reply = optimizer.ask_json(
                optimizer.prompt("rewrite"), message(skill, chosen, optimizer), check=lambda raw: _problem(skill, raw)
            )
        except ModelError as error:
            return Applied(skill, (), error=failure_sentence(error))
        changes = reply.get("change_summary")
        record = {
            "reasoning": str(reply.get("reasoning") or ""),
            "change_summary": [str(one) for one in changes] if isinstance(changes, list) else [],
            "new_skill": reply["new_skill"].rstrip() + "\n",
        }
        reports = _reports(update, chosen, budget, "given to the rewrite")
        return Applied(restore_protected(skill, reply["new_skill"]), reports, {"rewrite_result": record})


def message(skill: str, items: list[Suggestion], optimizer: UpdateOptimizer) -> str:
    """The user message of the rewrite: the skill, the room left, what was tried, and the suggestions as JSON."""
    import json

    written = json.dumps([write_suggestion(item) for item in items], ensure_ascii=False, indent=1)
    parts = [
        skill_section(skill),
        section("Room left", optimizer.room),
        section("What was tried before", optimizer.memory),
        section("Advice from earlier epochs", optimizer.meta),
        section(f"Suggestions ({len(items)})", written),
    ]
    return "\n".join(part for part in parts if part)


def _problem(skill: str, reply: Mapping[str, Any]) -> str | None:
    text = reply.get("new_skill")
    if not isinstance(text, str):
        return '"new_skill" must be the text of the whole skill'
    try:
        restore_protected(skill, text)
    except ValueError as error:
        return f'"new_skill" cannot be used: {error}'
    return None


def _reports(update: Update, chosen: list[Suggestion], budget: EditBudget, detail: str) -> tuple[ItemReport, ...]:
    """One report an item: the chosen are `applied`, other suggestions over the budget, what is none is invalid."""
    reports, taken = [], 0
    for index, item in enumerate((*update.items, *update.over_budget), start=1):
        if not isinstance(item, Suggestion):
            reports.append(ItemReport(index, item, "invalid", f"a suggestion was expected, not {type(item).__name__}"))
        elif index <= len(update.items) and taken < len(chosen):
            taken += 1
            reports.append(ItemReport(index, item, "applied", detail))
        else:
            reports.append(ItemReport(index, item, "over_budget", f"the step may follow {budget.limit} suggestions"))
    return tuple(reports)


def make_update_mode(settings: Any, context: DriverContext) -> SuggestionMode:
    """The update mode `rewrite_from_suggestions`; it has no settings."""
    return SuggestionMode()
