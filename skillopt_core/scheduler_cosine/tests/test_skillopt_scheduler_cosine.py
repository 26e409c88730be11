"""The scheduler `cosine`."""

import logging

import pytest
from skillopt_kernel.interfaces import DriverContext, Moment
from skillopt_kernel.records import EditBudget
from skillopt_kernel.scheduling import LearningRateSettings
from skillopt_scheduler_cosine import plugin
from skillopt_scheduler_cosine.scheduler import make_scheduler


def budget(most: int, least: int, step: int, total: int) -> EditBudget:
    scheduler = make_scheduler(LearningRateSettings(most, least), DriverContext(logging.getLogger("test")))
    return scheduler.budget(Moment(step, total))


def limits(most: int, least: int, total: int) -> list[int | None]:
    return [budget(most, least, step, total).limit for step in range(1, total + 1)]


def test_the_manifest_names_what_there_is() -> None:
    assert (plugin.kind, plugin.name, plugin.section) == ("scheduler", "cosine", "optimizer")
    assert plugin.factory == f"{make_scheduler.__module__}:{make_scheduler.__name__}"
    assert plugin.settings == f"{LearningRateSettings.__module__}:{LearningRateSettings.__name__}"


def test_the_reason_names_schedule_and_step() -> None:
    assert budget(4, 2, 3, 8).reason == "cosine: step 3 of 8"


def test_known_values() -> None:
    assert limits(10, 2, 4) == [9, 6, 3, 2]
    assert limits(100, 0, 4)[0] == 85
    assert budget(20, 2, 50, 100).limit == 11
    assert limits(4, 2, 8) == [4, 4, 3, 3, 3, 2, 2, 2]
    assert limits(4, 2, 40) == [4] * 13 + [3] * 13 + [2] * 14


def test_a_run_of_one_step_has_the_most() -> None:
    assert budget(4, 2, 1, 1).limit == 4
    assert budget(4, 2, 1, 0).limit == 4


def test_a_minimum_above_the_maximum_is_the_budget() -> None:
    assert limits(2, 5, 4) == [5] * 4


def test_after_the_last_step_it_stays_at_the_least() -> None:
    assert budget(10, 2, 9, 4).limit == 2


@pytest.mark.parametrize("total", [2, 3, 7, 40])
def test_it_never_rises_and_ends_at_the_least(total: int) -> None:
    made = [limit for limit in limits(9, 1, total) if limit is not None]
    assert len(made) == total
    assert made == sorted(made, reverse=True)
    assert made[-1] == 1
