"""The plan of a run: which tasks each step of each epoch takes. Made from seed and sizes alone."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from skillopt_kernel.records import Task
from skillopt_kernel.splits import epoch_batches, steps_per_epoch


@frozen
class PlannedBatch:
    """One accumulation batch: its tasks and the seed that shuffles its groups."""

    tasks: tuple[Task, ...]
    seed: int


@frozen
class PlannedStep:
    """One step: `number` is 1-based in the run, `in_epoch` 0-based in its epoch."""

    number: int
    epoch: int
    in_epoch: int
    batches: tuple[PlannedBatch, ...]


@frozen
class Plan:
    """All steps of a run. `num_epochs`, `batch_size`, `accumulation` and `seed` as in the section `train`."""

    train: tuple[Task, ...]
    num_epochs: int
    batch_size: int
    accumulation: int
    seed: int

    @property
    def steps_per_epoch(self) -> int:
        return steps_per_epoch(len(self.train), self.batch_size, self.accumulation)

    @property
    def total_steps(self) -> int:
        return self.num_epochs * self.steps_per_epoch

    def epoch(self, number: int) -> tuple[PlannedStep, ...]:
        """The steps of epoch `number`, from 1."""
        batches = epoch_batches(len(self.train), self.batch_size, self.accumulation, number, self.seed)
        planned = [PlannedBatch(tuple(self.train[i] for i in batch.indices), batch.seed) for batch in batches]
        first = (number - 1) * self.steps_per_epoch
        return tuple(
            PlannedStep(
                first + at + 1, number, at, tuple(planned[at * self.accumulation : (at + 1) * self.accumulation])
            )
            for at in range(self.steps_per_epoch)
        )

    def epochs(self) -> Iterator[tuple[int, tuple[PlannedStep, ...]]]:
        for number in range(1, self.num_epochs + 1):
            yield number, self.epoch(number)
