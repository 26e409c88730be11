"""The loop, on one screen."""

from __future__ import annotations

from skillopt_kernel.history import RunSummary
from skillopt_kernel.loop.epoch_end import end_epoch
from skillopt_kernel.loop.final import finish
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.loop.scoring import baseline_purpose, ensure_scored
from skillopt_kernel.loop.step import first_rollout_purpose, take_step
from skillopt_kernel.records import Ask


def run_training(run: RunContext) -> RunSummary:
    """Train from where the run stands to its end, and return its summary.

    Each step and each epoch's end is committed before the next begins; what raises leaves the last
    checkpoint as it was.
    """
    state = run.state_of_run
    prefetch_start(run)
    for number, steps in run.plan.epochs():
        if number <= state.epoch_ended:
            continue
        run.place.epoch = number
        run.emit("epoch_started", steps=len(steps))
        for step in steps:
            if step.number > state.step:
                take_step(run, step)
        end_epoch(run, number, steps)
    run.place.epoch = run.place.step = None
    ensure_scored(run)
    return finish(run)


def prefetch_start(run: RunContext) -> None:
    """Begin the first rollout and, behind it, the baseline: neither waits for the other."""
    state = run.state_of_run
    # Not beyond an epoch whose end is to be taken again: its guidance may change the skill.
    began = (steps for number, steps in run.plan.epochs() if number == state.epoch_ended + 1)
    planned = next((step for steps in began for step in steps if step.number > state.step), None)
    if planned is not None:
        sample = 0 if run.settings.evaluation.deterministic_target else planned.epoch
        purpose = first_rollout_purpose(run, planned)
        run.pool.prefetch([Ask(state.current.skill, task, sample) for task in planned.batches[0].tasks], purpose)
    if not state.current.outcomes:
        run.pool.prefetch([Ask(state.start.skill, task) for task in run.splits.selection], baseline_purpose())
