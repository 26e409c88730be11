"""The plan of a run: which tasks each step of each epoch takes. Made from seed and sizes alone."""

from __future__ import annotations

from attrs import frozen

from skillopt_kernel.config.schema import TrainSettings
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

    def folder(self, at: int) -> int | None:
        """The number that the folder of batch `at` has; `None` when the step has no other."""
        return at if len(self.batches) > 1 else None


@frozen
class Plan:
    """All steps of a run: the training tasks as the section `train` of the configuration cuts them."""

    tasks: tuple[Task, ...]
    settings: TrainSettings

    @property
    def steps_per_epoch(self) -> int:
        return steps_per_epoch(len(self.tasks), self.settings.batch_size, self.settings.accumulation)

    @property
    def total_steps(self) -> int:
        return self.settings.num_epochs * self.steps_per_epoch

    def epoch(self, number: int) -> tuple[PlannedStep, ...]:
        """The steps of epoch `number`, from 1."""
        size, together = self.settings.batch_size, self.settings.accumulation
        batches = epoch_batches(len(self.tasks), size, together, number, self.settings.seed)
        planned = [PlannedBatch(tuple(self.tasks[at] for at in batch.indices), batch.seed) for batch in batches]
        steps = [tuple(planned[at : at + together]) for at in range(0, len(planned), together)]
        before = (number - 1) * len(steps)
        return tuple(PlannedStep(before + at + 1, number, at, step) for at, step in enumerate(steps))
