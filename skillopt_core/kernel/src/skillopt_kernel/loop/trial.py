"""The trial that a gate judges: the candidate beside the current and the best skill, evaluated lazily."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import frozen

from skillopt_kernel.loop.attempts import AttemptPool, Purpose
from skillopt_kernel.records import Ask, Outcome, Scored, Task


@frozen
class PoolTrial:
    """A `Trial` on the run's pool. `bonus_of` sums what the hooks add for a text."""

    candidate: Scored
    current: Scored
    best: Scored
    tasks: tuple[Task, ...]
    early_stop: bool
    pool: AttemptPool
    purpose: Purpose
    bonus_of: Callable[[str], float]

    def bonus(self, skill: str) -> float:
        return self.bonus_of(skill)

    def evaluate(
        self,
        skill: str,
        tasks: Sequence[Task],
        sample: int = 0,
        settled: Callable[[Mapping[str, Outcome]], bool] | None = None,
    ) -> Iterator[Outcome]:
        asks = [Ask(skill, task, sample) for task in tasks]
        return self.pool.evaluate(asks, self.purpose, settled=settled if self.early_stop else None, in_order=True)
