"""The optimizer decides, once a step, how many items of the merged update are applied."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from skillopt_kernel.errors import ModelError
from skillopt_kernel.interfaces import DriverContext, Moment, Optimizer
from skillopt_kernel.records import EditBudget
from skillopt_kernel.stages.asking import failure_sentence
from skillopt_kernel.stages.evidence import section, skill_section

_INTEGER = re.compile(r"[-+]?\d{1,18}")


class AutonomousScheduler:
    """Before reflection there is no limit: one for the analysts would limit the decision, too. Then one call decides.

    A reply without a usable number, or a failed call, is a budget of 0 with `fallback` true: nothing is applied that
    nobody decided on. The record is that of `lr_decision.json`.
    """

    depends_on_total_steps = False  # so the number of steps is not told: a run that goes on must decide alike

    def budget(self, moment: Moment) -> EditBudget:
        """No limit before reflection; then at most as many items as the optimizer says, and as there are."""
        if moment.update is None:
            return EditBudget(None, "autonomous: the optimizer decides when the update is merged")
        available = len(moment.update.items)
        if not available or moment.optimizer is None:
            return EditBudget(0, "autonomous: there is nothing to decide on")
        try:
            reply = _ask(moment.optimizer, moment.evidence or {}, moment.step)
        except ModelError as error:
            record = _record({}, 0, available) | {"fallback": True, "error": failure_sentence(error)}
            return EditBudget(0, f"autonomous: no decision ({record['error']})", record)
        chosen = min(max(0, whole_number(reply["learning_rate"]) or 0), available)
        return EditBudget(chosen, f"autonomous: {chosen} of {available}", _record(reply, chosen, available))


def whole_number(value: Any) -> int | None:
    """The number that a reply means: a whole number, or the first one in a text. `None`: there is none."""
    if isinstance(value, str):
        found = _INTEGER.search(value)
        value = int(found[0]) if found else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return None
    return int(value)


def _record(reply: Mapping[str, Any], chosen: int, available: int) -> dict[str, Any]:
    raw = reply.get("learning_rate")
    return {
        "learning_rate": chosen,
        "raw_learning_rate": raw,
        "available_update_items": available,
        "clamped": raw is not None and whole_number(raw) != chosen,
        "fallback": False,
        **{name: reply.get(name, "") for name in ("reasoning", "confidence", "risk_notes")},
        "raw_response": dict(reply),
    }


def _ask(optimizer: Optimizer, evidence: Mapping[str, Any], step: int) -> Mapping[str, Any]:
    from importlib.resources import files

    system = (files("skillopt_scheduler_autonomous") / "prompts/learning_rate.md").read_text(encoding="utf-8")
    items = evidence.get("items", ())
    numbers = [f"Step {step}.", f"Tasks attempted with the current skill: {evidence.get('rollout_n', 0)}."]
    for name in ("hard", "soft"):
        score = evidence.get(f"rollout_{name}")
        numbers += [f"Mean {name} score: {score:.6f}."] if score is not None else []
    numbers.append(f"Candidate edits: {len(items)} ({evidence.get('item_kind') or 'items'}).")
    parts = [
        skill_section(evidence.get("skill", "")),
        section("What was tried before", evidence.get("memory", "")),
        section("Advice from earlier epochs", evidence.get("meta", "")),
        section("Where training stands", "\n".join(numbers)),
        section(f"Candidate edits ({len(items)})", "\n".join(f"[{at}] {item}" for at, item in enumerate(items))),
    ]
    return optimizer.ask_json(system, "\n".join(part for part in parts if part), check=_problem)


def _problem(reply: Mapping[str, Any]) -> str | None:
    if whole_number(reply.get("learning_rate")) is None:
        return '"learning_rate" must be a whole number, 0 or more'
    return None


def make_scheduler(settings: Any, context: DriverContext) -> AutonomousScheduler:
    """The scheduler `autonomous`; it has no settings."""
    return AutonomousScheduler()
