"""The number of edits falls in a straight line."""

from __future__ import annotations

from skillopt_kernel.interfaces import DriverContext, Moment
from skillopt_kernel.records import EditBudget
from skillopt_kernel.scheduling import LearningRateSettings, decay_position


class LinearScheduler:
    """`limit = max(min, round(max + (min - max) * t))`, with `t = step / total_steps`.

    max is `learning_rate` and min `min_learning_rate`; halves are rounded to even. The first step is at
    `t = 1 / total_steps`, the last gives min, and so do later ones; a run of one step has max.
    """

    def __init__(self, settings: LearningRateSettings) -> None:
        self.settings = settings

    def budget(self, moment: Moment) -> EditBudget:
        """How many edits the step may make; the same whenever it is asked for the same step."""
        most, least = self.settings.learning_rate, self.settings.min_learning_rate
        t = decay_position(moment.step, moment.total_steps)
        limit = most if moment.total_steps <= 1 else max(least, round(most + (least - most) * t))
        return EditBudget(limit, f"linear: step {moment.step} of {moment.total_steps}")


def make_scheduler(settings: LearningRateSettings, context: DriverContext) -> LinearScheduler:
    """The scheduler `linear` with the range that the settings give."""
    return LinearScheduler(settings)
