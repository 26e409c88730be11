"""The scheduler `constant`."""

import logging

import pytest
from skillopt_kernel.interfaces import DriverContext, Moment
from skillopt_kernel.records import EditBudget
from skillopt_kernel.scheduling import LearningRateSettings
from skillopt_scheduler_constant import plugin
from skillopt_scheduler_constant.scheduler import make_scheduler


def budget(most: int, least: int, step: int, total: int) -> EditBudget:
    scheduler = make_scheduler(LearningRateSettings(most, least), DriverContext(logging.getLogger("test")))
    return scheduler.budget(Moment(step, total))


def limits(most: int, least: int, total: int) -> list[int | None]:
    return [budget(most, least, step, total).limit for step in range(1, total + 1)]


def test_the_manifest_names_what_there_is() -> None:
    assert (plugin.kind, plugin.name, plugin.section) == ("scheduler", "constant", "optimizer")
    assert plugin.factory == f"{make_scheduler.__module__}:{make_scheduler.__name__}"
    assert plugin.settings == f"{LearningRateSettings.__module__}:{LearningRateSettings.__name__}"


def test_the_reason_names_schedule_and_step() -> None:
    assert budget(4, 2, 3, 8).reason == "constant: step 3 of 8"


@pytest.mark.parametrize(("most", "least"), [(4, 2), (0, 0), (1, 5)])
def test_every_step_has_the_same_budget(most: int, least: int) -> None:
    assert limits(most, least, 5) == [most] * 5
    assert budget(most, least, 1, 1).limit == most
