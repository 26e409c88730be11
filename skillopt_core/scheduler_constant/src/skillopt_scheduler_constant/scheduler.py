"""Every step may make the same number of edits."""

from __future__ import annotations

from skillopt_kernel.interfaces import DriverContext, Moment
from skillopt_kernel.records import EditBudget
from skillopt_kernel.scheduling import LearningRateSettings


class ConstantScheduler:
    """`limit = max`, where max is `learning_rate`. `min_learning_rate` is not used."""

    depends_on_total_steps = False

    def __init__(self, settings: LearningRateSettings) -> None:
        self.settings = settings

    def budget(self, moment: Moment) -> EditBudget:
        """How many edits the step may make; the same whenever it is asked for the same step."""
        limit = self.settings.learning_rate
        return EditBudget(limit, f"constant: step {moment.step} of {moment.total_steps}")


def make_scheduler(settings: LearningRateSettings, context: DriverContext) -> ConstantScheduler:
    """The scheduler `constant` with the range that the settings give."""
    return ConstantScheduler(settings)
