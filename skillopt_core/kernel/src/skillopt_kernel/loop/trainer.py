"""The loop, on one screen."""

from __future__ import annotations

from skillopt_kernel.history import RunSummary
from skillopt_kernel.loop.epoch_end import end_epoch
from skillopt_kernel.loop.final import START_TEST, finish
from skillopt_kernel.loop.patience import next_epoch
from skillopt_kernel.loop.run import Place, RunContext
from skillopt_kernel.loop.scoring import BASELINE, ensure_scored
from skillopt_kernel.loop.step import rollout_purpose, take_step
from skillopt_kernel.records import Ask
from skillopt_kernel.stages.rollout import asks_of


def run_training(run: RunContext) -> RunSummary:
    """Train from where the run stands to its end, and return its summary.

    Each step and each epoch's end is committed before the next begins; what raises leaves the last
    checkpoint as it was.
    """
    state, settings = run.state_of_run, run.settings.train
    prefetch_start(run)
    while (number := next_epoch(settings, state)) is not None:
        steps = run.plan.epoch(number)
        run.place = Place(number)
        run.emit("epoch_started", steps=len(steps))
        for step in steps:
            if step.number > state.step:
                take_step(run, step)
        end_epoch(run, number, steps)
    run.place = Place()
    ensure_scored(run)
    return finish(run)


def prefetch_start(run: RunContext) -> None:
    """Begin the first rollout, behind it the baseline, and behind all the test of the start skill: none waits."""
    state, epoch = run.state_of_run, next_epoch(run.settings.train, run.state_of_run)
    # Not beyond an epoch whose end is to be taken again: its guidance may change the skill.
    left = [] if epoch is None else [step for step in run.plan.epoch(epoch) if step.number > state.step]
    if left:
        asks = asks_of(state.current.skill, left[0].batches[0].tasks, run.samples(left[0].epoch))
        run.pool.prefetch(asks, rollout_purpose(run, left[0], 0))
    if not state.current.outcomes:
        run.pool.prefetch([Ask(state.start.skill, task) for task in run.splits.selection], BASELINE)
    if run.settings.evaluation.eval_test and not run.account.budget.limits:  # under a limit training comes first
        run.pool.prefetch([Ask(state.start.skill, task) for task in run.splits.test], START_TEST)
