"""Rollout: attempt the batch with the current skill."""

from __future__ import annotations

from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Run, Step
from skillopt_kernel.records import Ask, Outcome, Task


@hookimpl(trylast=True)
def skillopt_rollout(run: Run, step: Step, tasks: tuple[Task, ...], skill: str) -> tuple[Outcome, ...]:
    return tuple(run.evaluate([Ask(skill, task, step.sample) for task in tasks]))
