"""Rollout: attempt the batch with the current skill."""

from __future__ import annotations

from collections.abc import Sequence

from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Run, Step
from skillopt_kernel.records import Ask, Outcome, Task


@hookimpl(trylast=True)
def skillopt_rollout(run: Run, step: Step, tasks: tuple[Task, ...], skill: str) -> tuple[Outcome, ...]:
    return tuple(run.evaluate(asks_of(skill, tasks, step.samples)))


def asks_of(skill: str, tasks: Sequence[Task], samples: Sequence[int]) -> list[Ask]:
    """What a rollout asks for, the attempts at one task side by side."""
    return [Ask(skill, task, sample) for task in tasks for sample in samples]
