"""The hooks as typed methods: what the loop calls, so that call sites are checked by the type checker."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.plugins.guards import Check, ObserverErrors
from skillopt_kernel.records import (
    Applied,
    EditBudget,
    GateDecision,
    Outcome,
    Proposal,
    Scored,
    SlowUpdate,
    Task,
    Update,
)

if TYPE_CHECKING:
    import pluggy

    from skillopt_kernel.interfaces import Epoch, Run, Step
    from skillopt_kernel.store.events import Event


def _one(expected: type) -> Check:
    def check(value: Any) -> str | None:
        if isinstance(value, expected):
            return None
        return f"a {type(value).__name__} where a {expected.__name__} is expected"

    return check


def _several(expected: type) -> Check:
    def check(value: Any) -> str | None:
        if not isinstance(value, (tuple, list)):
            return f"a {type(value).__name__} where a tuple of {expected.__name__} is expected"
        strange = [type(item).__name__ for item in value if not isinstance(item, expected)]
        return f"a tuple with a {strange[0]} in it where each must be a {expected.__name__}" if strange else None

    return check


def _number(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"a {type(value).__name__} where a number is expected"
    return None if math.isfinite(value) else f"{value}, which is not a finite number"


RESULT_CHECKS: dict[str, Check] = {
    "skillopt_configure": _one(Mapping),
    "skillopt_rollout": _several(Outcome),
    "skillopt_reflect": _several(Proposal),
    "skillopt_aggregate": _one(Update),
    "skillopt_edit_budget": _one(EditBudget),
    "skillopt_select": _one(Update),
    "skillopt_update": _one(Applied),
    "skillopt_score_bonus": _number,
    "skillopt_gate": _one(GateDecision),
    "skillopt_slow_update": _one(SlowUpdate),
    "skillopt_meta_skill": _one(str),
}
"""What each hook that returns something must return. Observers return nothing."""


class HookCalls:
    """One method a hook, each in the loop's thread but `observe`, which belongs to the observer thread.

    Any of them raises `HookError` with the plugin's name when an implementation fails or returns something of
    another type; what a backend raises and errors that are sentences pass unchanged.
    """

    def __init__(self, manager: pluggy.PluginManager, errors: ObserverErrors, *, strict: bool = False) -> None:
        self._hook = manager.hook
        self._errors = errors
        self._strict = strict

    @property
    def observer_errors(self) -> int:
        """How often an observer has raised in this run."""
        return self._errors.count

    def configure(self, run: Run) -> tuple[tuple[str, Mapping[str, Any]], ...]:
        """What each plugin wants changed, as (plugin, overrides) in the order asked; `RefuseRun` passes."""
        return tuple(self._hook.skillopt_configure(run=run))

    def rollout(self, run: Run, step: Step, tasks: tuple[Task, ...], skill: str) -> tuple[Outcome, ...]:
        return tuple(self._required("rollout", run=run, step=step, tasks=tasks, skill=skill))

    def reflect(self, run: Run, step: Step, outcomes: tuple[Outcome, ...], skill: str) -> tuple[Proposal, ...]:
        return tuple(self._required("reflect", run=run, step=step, outcomes=outcomes, skill=skill))

    def aggregate(self, run: Run, step: Step, proposals: tuple[Proposal, ...], skill: str) -> Update:
        return cast(Update, self._required("aggregate", run=run, step=step, proposals=proposals, skill=skill))

    def edit_budget(self, run: Run, step: Step, update: Update | None) -> EditBudget:
        return cast(EditBudget, self._required("edit_budget", run=run, step=step, update=update))

    def select(self, run: Run, step: Step, update: Update, budget: EditBudget, skill: str) -> Update:
        return cast(Update, self._required("select", run=run, step=step, update=update, budget=budget, skill=skill))

    def update(self, run: Run, step: Step, update: Update, skill: str) -> Applied:
        return cast(Applied, self._required("update", run=run, step=step, update=update, skill=skill))

    def score_bonus(self, run: Run, skill: str) -> float:
        """The sum over all plugins, added exactly."""
        return math.fsum(self._hook.skillopt_score_bonus(run=run, skill=skill))

    def gate(self, run: Run, step: Step, applied: Applied, current: Scored, best: Scored) -> GateDecision:
        found = self._required("gate", run=run, step=step, applied=applied, current=current, best=best)
        return cast(GateDecision, found)

    def slow_update(self, run: Run, epoch: Epoch, skill: str) -> SlowUpdate | None:
        return cast("SlowUpdate | None", self._hook.skillopt_slow_update(run=run, epoch=epoch, skill=skill))

    def meta_skill(self, run: Run, epoch: Epoch) -> str | None:
        return cast("str | None", self._hook.skillopt_meta_skill(run=run, epoch=epoch))

    def performs(self, stage: str) -> bool:
        """Whether any plugin implements the stage."""
        return bool(getattr(self._hook, f"skillopt_{stage}").get_hookimpls())

    def observe(self, event: Event) -> None:
        """Give the event to every observer of its name. With `hooks.strict` the first failure is raised at last."""
        getattr(self._hook, f"skillopt_{event.name}")(event=event)
        failure = self._errors.take_first()
        if self._strict and failure is not None:
            raise failure

    def _required(self, stage: str, **arguments: Any) -> Any:
        result = getattr(self._hook, f"skillopt_{stage}")(**arguments)
        if result is None:
            raise SkillOptError(
                f"no plugin answered the hook skillopt_{stage}: each returned None. One of them must do the stage; "
                f"`skillopt hooks explain CONFIG` lists who is asked."
            )
        return result
