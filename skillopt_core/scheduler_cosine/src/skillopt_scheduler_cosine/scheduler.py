"""The number of edits falls along half a cosine wave: slowly, then quickly, then slowly again."""

from __future__ import annotations

from math import cos, pi

from skillopt_kernel.interfaces import DriverContext, Moment
from skillopt_kernel.records import EditBudget
from skillopt_kernel.scheduling import LearningRateSettings, decay_position


class CosineScheduler:
    """`limit = max(min, round(min + (max - min) * (1 + cos(pi * t)) / 2))`, with `t = step / total_steps`.

    max is `learning_rate` and min `min_learning_rate`; halves are rounded to even. The first step is at
    `t = 1 / total_steps`, the last gives min, and so do later ones; a run of one step has max. Cosine
    annealing without restarts: Loshchilov and Hutter, SGDR (2017), equation 5.
    """

    def __init__(self, settings: LearningRateSettings) -> None:
        self.settings = settings

    def budget(self, moment: Moment) -> EditBudget:
        """How many edits the step may make; the same whenever it is asked for the same step."""
        most, least = self.settings.learning_rate, self.settings.min_learning_rate
        t = decay_position(moment.step, moment.total_steps)
        wave = 0.5 * (most - least) * (1 + cos(pi * t))
        limit = most if moment.total_steps <= 1 else max(least, round(least + wave))
        return EditBudget(limit, f"cosine: step {moment.step} of {moment.total_steps}")


def make_scheduler(settings: LearningRateSettings, context: DriverContext) -> CosineScheduler:
    """The scheduler `cosine` with the range that the settings give."""
    return CosineScheduler(settings)
