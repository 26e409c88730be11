"""What every scheduler must keep."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from skillopt_kernel.interfaces import Moment
from skillopt_kernel.records import Edit, EditBudget, Update

from skillopt_testkit.conformance.common import PluginConformance
from skillopt_testkit.scripted import ScriptedOptimizer


class SchedulerConformance(PluginConformance):
    """Subclass it and give `name`. `reply`: what the optimizer says to a scheduler that asks it."""

    kind = "scheduler"
    reply: ClassVar[str] = '{"learning_rate": 2, "confidence": 0.5, "reasoning": "a few"}'

    def budget(self, driver: Any, step: int, total: int, update: Update | None = None) -> EditBudget:
        optimizer = ScriptedOptimizer([self.reply])
        made = driver.budget(Moment(step, total, update, evidence={}, optimizer=optimizer))
        assert isinstance(made, EditBudget), f"budget() returned a {type(made).__name__}"
        return made

    @pytest.mark.parametrize("total", [1, 2, 7, 40])
    def test_a_budget_for_every_step(self, driver: Any, total: int) -> None:
        for step in range(1, total + 1):
            limit = self.budget(driver, step, total).limit
            assert limit is None or (type(limit) is int and limit >= 0), f"step {step} of {total}: {limit!r}"

    def test_the_same_moment_gives_the_same_budget(self, driver: Any) -> None:
        forwards = [self.budget(driver, step, 9).limit for step in range(1, 10)]
        backwards = [self.budget(driver, step, 9).limit for step in range(9, 0, -1)]
        assert forwards == backwards[::-1], "a scheduler is stateless: a resumed run asks from the middle"

    def test_more_proposals_than_it_allows(self, driver: Any) -> None:
        update = Update(items=tuple(Edit("append", f"- Rule {number}.") for number in range(50)))
        limit = self.budget(driver, 3, 9, update).limit
        assert limit is None or limit >= 0

    def test_steps_beyond_the_end(self, driver: Any) -> None:
        # Epochs may be added to a finished run; then a step's number can pass the total that was planned.
        limit = self.budget(driver, 12, 9).limit
        assert limit is None or limit >= 0
