"""What every scorer must keep."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from skillopt_kernel.records import Score, Task

from skillopt_testkit.conformance.common import PluginConformance
from skillopt_testkit.scripted import ScriptedJudge

ODD_ANSWERS = ("", " ", "\n", "x" * 20_000, "é\u0301\u200b", "<answer>", "{}", "0", "-1e309", "日本語", "\x00", "🙂 🙂")


class ScorerConformance(PluginConformance):
    """Subclass it and give `name` and `pairs`: (answer, reference) that are right; `judge_reply` where it judges."""

    kind = "scorer"
    pairs: ClassVar[tuple[tuple[str, Any], ...]] = ()
    judge_reply: ClassVar[str] = "{}"

    def score(self, driver: Any, answer: str, reference: Any) -> Score:
        made = driver.score(answer, reference, Task("t", reference=reference), ScriptedJudge(self.judge_reply))
        assert isinstance(made, Score), f"score() returned a {type(made).__name__}"
        return made

    def test_right_answers_are_right(self, driver: Any) -> None:
        assert self.pairs, "give at least one pair of a right answer and its reference"
        for answer, reference in self.pairs:
            made = self.score(driver, answer, reference)
            assert (made.hard, made.soft) == (1.0, 1.0), f"{answer!r} against {reference!r}: {made}"

    @pytest.mark.parametrize("answer", ODD_ANSWERS)
    def test_odd_answers_are_scored_and_say_why(self, driver: Any, answer: str) -> None:
        for _, reference in self.pairs:
            made = self.score(driver, answer, reference)
            assert made.hard < 1.0
            assert made.feedback.strip(), "a score below 1 says why, for whoever improves the skill"
            assert made == self.score(driver, answer, reference), "the same answer has the same score"
