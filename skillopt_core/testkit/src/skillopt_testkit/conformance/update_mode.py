"""What every update mode must keep."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from skillopt_kernel.records import EDIT_STATUSES, Applied, EditBudget, Update

from skillopt_testkit.conformance.common import PluginConformance
from skillopt_testkit.scripted import ScriptedOptimizer

PROMPTS = ("analyst_failure", "analyst_success", "merge_failure", "merge_success", "merge_final")
NO_LIMIT = EditBudget(None, "no limit")

SKILL = """\
---
name: answering
description: How to answer.
---
# Answering

- Answer in few words.
- Read the whole question.

## Numbers

- Write numbers as digits.
"""


class UpdateModeConformance(PluginConformance):
    """Subclass it and give `name` and `raw_items`.

    raw_items  items as an optimizer's reply holds them, each of which changes `skill`
    reply      what the optimizer says to a mode that asks it when it applies
    """

    kind = "update"
    skill: ClassVar[str] = SKILL
    raw_items: ClassVar[tuple[Mapping[str, Any], ...]] = ()
    reply: ClassVar[str] = "{}"

    @pytest.fixture
    def items(self, driver: Any) -> tuple[Any, ...]:
        """`raw_items` as the mode reads them."""
        assert self.raw_items, "give at least one item as a reply would hold it"
        return tuple(driver.read_item(raw) for raw in self.raw_items)

    def apply(self, driver: Any, update: Update, budget: EditBudget = NO_LIMIT) -> Applied:
        optimizer = ScriptedOptimizer([self.reply], prompts=driver.prompts())
        applied = driver.apply(self.skill, update, budget, optimizer)
        assert isinstance(applied, Applied), f"apply() returned a {type(applied).__name__}"
        return applied

    def test_describes_itself(self, driver: Any) -> None:
        assert driver.name == self.name
        assert re.fullmatch(r"\w+", driver.payload), "payload is a JSON key"
        assert isinstance(driver.budgeted, bool)
        assert isinstance(driver.separable, bool)
        assert json.loads(json.dumps(driver.item_schema))["type"] == "object"

    def test_has_every_prompt(self, driver: Any) -> None:
        prompts = driver.prompts()
        wanted = (*PROMPTS, "ranking") if driver.budgeted else PROMPTS
        assert set(wanted) <= set(prompts)
        for name in prompts:
            assert prompts[name].strip(), f"the prompt {name} is empty"
            assert "JSON" in prompts[name], f"the prompt {name} does not ask for JSON"

    def test_items_are_written_as_they_were_read(self, driver: Any, items: tuple[Any, ...]) -> None:
        for item in items:
            written = json.loads(json.dumps(driver.write_item(item)))
            assert driver.read_item(written) == item

    def test_items_are_described_in_one_line(self, driver: Any, items: tuple[Any, ...]) -> None:
        for item in items:
            line = driver.describe_item(item)
            assert line.strip()
            assert "\n" not in line

    @pytest.mark.parametrize("raw", [None, 3, "text", [], {}, {"unknown": 1}])
    def test_malformed_items_are_refused_with_a_reason(self, driver: Any, raw: Any) -> None:
        with pytest.raises(ValueError, match=r"\w+ \w+"):
            driver.read_item(raw)

    def test_items_change_the_skill_and_are_reported(self, driver: Any, items: tuple[Any, ...]) -> None:
        applied = self.apply(driver, Update(items))
        assert applied.error is None
        assert applied.candidate != self.skill
        in_order = sorted(applied.reports, key=lambda report: report.index)
        assert tuple(report.item for report in in_order) == items, "every item is reported once, by its place"
        for report in applied.reports:
            assert report.status in EDIT_STATUSES
            assert report.status == "applied", f"item {report.index}: {report.status}: {report.detail}"

    def test_the_same_update_gives_the_same_candidate(self, driver: Any, items: tuple[Any, ...]) -> None:
        assert self.apply(driver, Update(items)) == self.apply(driver, Update(items))

    def test_an_empty_update_changes_nothing(self, driver: Any) -> None:
        applied = self.apply(driver, Update())
        assert applied.candidate == self.skill
        assert applied.reports == ()

    def test_the_front_matter_stays(self, driver: Any, items: tuple[Any, ...]) -> None:
        head = self.skill[: self.skill.index("---", 3) + 4] if self.skill.startswith("---") else ""
        assert self.apply(driver, Update(items)).candidate.startswith(head)

    def test_the_budget_binds(self, driver: Any, items: tuple[Any, ...]) -> None:
        if not driver.budgeted:
            pytest.skip("this update mode knows no budget")
        nothing = self.apply(driver, Update(items), EditBudget(0, "none"))
        assert nothing.candidate == self.skill
        assert [report.status for report in nothing.reports] == ["over_budget"] * len(items)
        one = self.apply(driver, Update(items), EditBudget(1, "one"))
        assert sum(report.status == "applied" for report in one.reports) == 1
        assert sum(report.status == "over_budget" for report in one.reports) == len(items) - 1
