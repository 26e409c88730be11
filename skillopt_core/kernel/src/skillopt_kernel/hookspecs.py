"""The loop as hook specifications, in the order in which they are called.

Stage hooks stop at the first answer that is not `None`; an implementation that returns `None` says "not mine"
and the next one is asked, the kernel's default last. Observer hooks get one frozen event and return nothing.
An implementation takes any subset of the arguments.

Stage hooks are called in the loop's thread, so they may wait but should not sleep. Observer hooks are called
in one observer thread, in order, after the store has written the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import Epoch, Run, Step
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
    from skillopt_kernel.store.events import Event

PROJECT = "skillopt"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function as an implementation of the hook of its name: `@hookimpl`, `@hookimpl(wrapper=True)`."""


# Before the run ------------------------------------------------------------------------------------------


@hookspec
def skillopt_configure(run: Run) -> Mapping[str, Any] | None:
    """Change the configuration before anything is spent, or refuse the run.

    Called once, before the run directory is made. Every implementation is asked; each may return overrides as
    `-o` would give them, `{"train.batch_size": 20}`, shown by `config show --origins`, or raise
    `RefuseRun(reason)`. `None`: nothing to change. No default implementation.

    run: the configuration so far (`run.settings`), seed and logger; nothing else is there yet.

    Example::

        @hookimpl
        def skillopt_configure(run):
            if run.settings.train.batch_size > 100:
                raise RefuseRun("this machine serves at most 100 tasks a step")
    """


# The stages of a step ------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def skillopt_rollout(run: Run, step: Step, tasks: tuple[Task, ...], skill: str) -> tuple[Outcome, ...] | None:
    """Attempt the batch with the current skill. Called once for each accumulation batch.

    run, step: see `skillopt_kernel.interfaces`. tasks: the batch, in its order. skill: the current text.
    Returns the outcomes in the order of `tasks`, those of one task side by side. The default asks `run.evaluate`
    for one with each of `step.samples`.

    Example::

        @hookimpl
        def skillopt_rollout(run, step, tasks, skill):
            asks = [Ask(skill, task, step.samples[0]) for task in tasks]  # one attempt, however many are configured
            return tuple(run.evaluate(asks))
    """


@hookspec(firstresult=True)
def skillopt_reflect(run: Run, step: Step, outcomes: tuple[Outcome, ...], skill: str) -> tuple[Proposal, ...] | None:
    """Read scored trajectories and propose changes. Called once for each accumulation batch.

    outcomes: those of this batch, in the order of its tasks, missing ones included. skill: the current text.
    Returns proposals in the order of their groups, failures first. The default cuts failures and successes
    into minibatches and asks the optimizer once for each.

    Example::

        @hookimpl
        def skillopt_reflect(run, step, outcomes, skill):
            edit = Edit("append", "- Answer in one word.")
            return (Proposal(group="fixed", source="failure", items=(edit,)),)
    """


@hookspec(firstresult=True)
def skillopt_aggregate(run: Run, step: Step, proposals: tuple[Proposal, ...], skill: str) -> Update | None:
    """Make one update of all proposals of the step.

    proposals: of all accumulation batches, in order. Returns an update, which may be empty. The default
    merges hierarchically, failures first.

    Example::

        @hookimpl
        def skillopt_aggregate(proposals):
            return Update(items=tuple(item for proposal in proposals for item in proposal.items))
    """


@hookspec(firstresult=True)
def skillopt_edit_budget(run: Run, step: Step, update: Update | None) -> EditBudget | None:
    """How many items the step may apply.

    Asked twice: before reflection with `update=None` (what the analysts are told) and after aggregation (what
    is enforced). The default asks the scheduler that the configuration names.

    Example::

        @hookimpl
        def skillopt_edit_budget(step):
            return EditBudget(1) if step.epoch > 2 else None
    """


@hookspec(firstresult=True)
def skillopt_select(run: Run, step: Step, update: Update, budget: EditBudget, skill: str) -> Update | None:
    """Choose the items that fit the budget, best first.

    update: aggregated. budget: as enforced. Returns an update with at most `budget.limit` items. The default
    asks the optimizer for a ranking, and asks nothing when all fit.

    Example::

        @hookimpl
        def skillopt_select(update, budget):
            ranked = sorted(update.items, key=lambda edit: -(edit.support or 0))
            return Update(items=tuple(ranked[: budget.limit]))
    """


@hookspec(firstresult=True)
def skillopt_update(run: Run, step: Step, update: Update, skill: str) -> Applied | None:
    """Apply the selected items to the current text.

    Returns the candidate and what became of each item. The default asks the update mode that the
    configuration names.

    Example::

        @hookimpl
        def skillopt_update(update, skill):
            return Applied(candidate=skill + "".join(edit.content for edit in update.items))
    """


@hookspec
def skillopt_score_bonus(run: Run, skill: str) -> float | None:
    """A number that depends on the skill's text only, added to every gate score.

    Every implementation is asked and the numbers are added; `None` counts as 0. No default implementation.

    Example::

        @hookimpl
        def skillopt_score_bonus(skill):
            return -0.00001 * len(skill)
    """


@hookspec(firstresult=True)
def skillopt_gate(run: Run, step: Step, applied: Applied, current: Scored, best: Scored) -> GateDecision | None:
    """Decide whether the candidate replaces the current skill.

    applied: the candidate, which differs from the current text. current, best: with their stored outcomes.
    The default asks the gate driver that the configuration names (`run.judge`).

    Example::

        @hookimpl
        def skillopt_gate(run, applied, current, best):
            if len(applied.candidate) > 20_000:
                return GateDecision("reject", current.skill, reason="longer than 20,000 characters")
    """


# The end of an epoch -------------------------------------------------------------------------------------


@hookspec(firstresult=True)
def skillopt_slow_update(run: Run, epoch: Epoch, skill: str) -> SlowUpdate | None:
    """Write guidance from a comparison of this epoch's skill with the one before.

    Called at each epoch's end while `optimizer.use_slow_update` is on. Returns the guidance; the loop writes
    the region and asks the gate, or forces, as configured. `None` from all: nothing is written.

    The kernel's `slow_update` attempts `optimizer.slow_update_samples` training tasks with both skills, as far as
    that is not stored, and asks the optimizer once, from the second epoch on. Equal skills cost nothing.

    Example::

        @hookimpl
        def skillopt_slow_update(epoch):
            return SlowUpdate(content="Keep answers short.") if epoch.number == 2 else None
    """


@hookspec(firstresult=True)
def skillopt_meta_skill(run: Run, epoch: Epoch) -> str | None:
    """Write advice for the optimizer's calls of the following epochs.

    Called at each epoch's end but the last while `optimizer.use_meta_skill` is on. `None` from all: the
    earlier advice stays. So it does when a `ModelError` is raised, which is recorded.

    The kernel's `meta_skill` asks the optimizer once, with the comparison that the slow update makes.

    Example::

        @hookimpl
        def skillopt_meta_skill(epoch):
            return "Edits that add examples were rejected more often than edits that add rules."
    """


# Observers -----------------------------------------------------------------------------------------------


@hookspec
def skillopt_run_started(event: Event) -> None:
    """The run begins or goes on. data: resumed, backends, models, splits, schedule, gate, executor, folder.

    Example::

        @hookimpl
        def skillopt_run_started(event):
            print(event.data["folder"])
    """


@hookspec
def skillopt_run_finished(event: Event) -> None:
    """The run has ended and `summary.json` is written. data: status, best_step, scores, ended_early, budget.

    Example::

        @hookimpl
        def skillopt_run_finished(event):
            notify(event.data["best_selection_hard"])
    """


@hookspec
def skillopt_run_failed(event: Event) -> None:
    """The run stopped before its end. data: error (its class), message.

    Example::

        @hookimpl
        def skillopt_run_failed(event):
            notify(event.data["message"])
    """


@hookspec
def skillopt_epoch_started(event: Event) -> None:
    """An epoch begins. data: steps.

    Example::

        @hookimpl
        def skillopt_epoch_started(event):
            log(event.epoch, event.data["steps"])
    """


@hookspec
def skillopt_epoch_finished(event: Event) -> None:
    """An epoch has ended, its slow update and meta skill included. data: accepts, rejects, skips, scores, ended_early.

    Example::

        @hookimpl
        def skillopt_epoch_finished(event):
            log(event.epoch, event.data["best_score"])
    """


@hookspec
def skillopt_step_started(event: Event) -> None:
    """A step begins. data: tasks, skill_hash, skill_tokens.

    Example::

        @hookimpl
        def skillopt_step_started(event):
            log(event.step, event.data["skill_tokens"])
    """


@hookspec
def skillopt_step_finished(event: Event) -> None:
    """A step is committed. data: action, hard, soft, score, current_score, best_score, edits.

    Example::

        @hookimpl
        def skillopt_step_finished(event):
            tracker.log({"best": event.data["best_score"]}, step=event.step)
    """


@hookspec
def skillopt_stage_started(event: Event) -> None:
    """A stage begins (`event.stage`). data: what it is about to do, in numbers.

    Example::

        @hookimpl
        def skillopt_stage_started(event):
            log(event.stage)
    """


@hookspec
def skillopt_stage_finished(event: Event) -> None:
    """A stage has ended (`event.stage`). data: seconds, and what it made, in numbers.

    Example::

        @hookimpl
        def skillopt_stage_finished(event):
            log(event.stage, event.data["seconds"])
    """


@hookspec
def skillopt_attempt_started(event: Event) -> None:
    """A worker begins an attempt. data: task, skill_hash, sample, purpose.

    Example::

        @hookimpl
        def skillopt_attempt_started(event):
            running.add(event.data["task"])
    """


@hookspec
def skillopt_attempt_finished(event: Event) -> None:
    """An outcome is committed. data: task, skill_hash, sample, purpose, hard, soft or missing, seconds, tries if many.

    Example::

        @hookimpl
        def skillopt_attempt_finished(event):
            running.discard(event.data["task"])
    """


@hookspec
def skillopt_model_called(event: Event) -> None:
    """A model call has ended. data: call, role, stage, model, seconds, waited, tries, ok, tokens where known.

    call: its number; at_once: the limit of its endpoint; warning: which share of a limit of the budget is used now,
    where that is told. What the ledger answers after a stop is no call.

    Example::

        @hookimpl
        def skillopt_model_called(event):
            spent[event.data["role"]] += event.data.get("completion_tokens") or 0
    """


@hookspec
def skillopt_checkpoint_saved(event: Event) -> None:
    """The state of the run is on disk up to `event.step`. data: file.

    Example::

        @hookimpl
        def skillopt_checkpoint_saved(event):
            upload(event.data["file"])
    """


STAGES = (
    "rollout", "reflect", "aggregate", "edit_budget", "select", "update", "gate", "slow_update", "meta_skill",
)  # fmt: skip
"""The stages that `hooks.override` and `hooks.wrap` can name, each the hook `skillopt_<stage>`."""

OBSERVERS = tuple(
    name.removeprefix("skillopt_")
    for name in list(globals())
    if name.startswith("skillopt_") and name.endswith(("_started", "_finished", "_failed", "_called", "_saved"))
)
"""The events, named as their observer hooks without the prefix."""
