"""Select: rank the items and keep what the budget admits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from skillopt_kernel.errors import ModelError
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Optimizer, Run, Step, UpdateMode
from skillopt_kernel.records import EditBudget, Update
from skillopt_kernel.stages.aggregate import Prompts
from skillopt_kernel.stages.asking import failure_sentence
from skillopt_kernel.stages.evidence import joined, section, skill_section


@hookimpl(trylast=True)
def skillopt_select(run: Run, step: Step, update: Update, budget: EditBudget, skill: str) -> Update:
    useful = set_useless_aside(run, update, skill)
    optimizer = run.optimizer("ranking")
    told = {"meta": step.meta, "room": run.room(skill)}
    return rank_and_select(useful, budget, skill, mode=run.mode, optimizer=optimizer, prompt=run.prompt, **told)


def set_useless_aside(run: Run, update: Update, skill: str) -> Update:
    """The update without items that would change nothing: an anchor that is not there, a rule that is.

    They would take the place of useful ones under the budget. Each is tried by itself on the current text, so
    this is done for update modes whose items can be applied one by one.
    """
    if not run.mode.separable:
        return update
    unlimited = EditBudget(None)
    tried = [(item, run.apply(skill, Update(items=(item,)), unlimited).reports) for item in update.items]
    useful = [item for item, reports in tried if any(report.status == "applied" for report in reports)]
    aside = [report for _, reports in tried for report in reports if report.status != "applied"]
    return attrs.evolve(update, items=tuple(useful), set_aside=update.set_aside + tuple(aside))


def rank_and_select(
    update: Update,
    budget: EditBudget,
    skill: str,
    *,
    mode: UpdateMode,
    optimizer: Optimizer,
    prompt: Prompts,
    meta: str = "",
    room: str = "",
) -> Update:
    """The update with at most `budget.limit` items, best first; the others are its `over_budget`.

    Asks nothing when all items fit or none may be applied. A ranking that fails leaves the first items, and
    `Update.errors` says so. A ranking that names fewer than the budget admits is taken at its word.
    """
    items, limit = update.items, budget.limit
    if limit is None or not mode.budgeted or len(items) <= limit:
        return update
    kept = list(range(limit))
    if limit > 0:
        lines = "\n".join(f"[{index}] {mode.describe_item(item)}" for index, item in enumerate(items))
        user = joined(
            skill_section(skill),
            section("Room left", room),
            section("Advice from earlier epochs", meta),
            section(f"Candidate edits ({len(items)})", lines),
        )

        def problem(reply: Mapping[str, Any]) -> str | None:
            return None if _indices(reply, len(items)) else '"selected_indices" names none of the items'

        try:
            ranking = optimizer.ask_json(prompt("ranking", budget=str(limit)), user, check=problem)
            kept = _indices(ranking, len(items))[:limit] or kept
            update = attrs.evolve(update, ranking=ranking)
        except ModelError as error:
            update = attrs.evolve(update, errors=(*update.errors, failure_sentence(error)))
    return attrs.evolve(
        update,
        items=tuple(items[index] for index in kept),
        over_budget=tuple(item for index, item in enumerate(items) if index not in kept),
    )


def _indices(reply: Mapping[str, Any], count: int) -> list[int]:
    """The integers of `selected_indices` that name an item, each once, in the order given."""
    raw = reply.get("selected_indices")
    whole = [index for index in raw if type(index) is int] if isinstance(raw, list) else []
    return [index for index in dict.fromkeys(whole) if 0 <= index < count]
