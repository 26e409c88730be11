"""What every scorer must keep."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest
from skillopt_kernel.errors import CallTimeout, EnvironmentFailure, ModelError
from skillopt_kernel.plugins.discovery import settings_class
from skillopt_kernel.records import Score, Task

from skillopt_testkit.conformance.common import PluginConformance
from skillopt_testkit.scripted import ScriptedJudge

ODD_ANSWERS = (
    "", " ", "\n", "x" * 20_000, "é\u0301\u200b", "<answer>", "{}", "0", "-1e309", "日本語", "\x00", "🙂 🙂",
    "\u202e\ufeff", "\\frac{", "9^9^9^9", "NaN", "[[[", '{"a": {"b": [1, {"c": null}]}}', "a\r\nb\tc",
)  # fmt: skip
HUGE_ANSWERS = {
    "one letter": "x" * 500_000,
    "one digit": "7" * 500_000,
    "digits that are grouped": "1,234" * 60_000,
    "opening brackets": "(" * 100_000,
    "opening JSON brackets": "[" * 100_000,
    "JSON that is nested": '{"a":' * 5_000 + "1" + "}" * 5_000,
    "words": "no " * 100_000,
    "blanks": " " * 500_000 + ".",
    "line ends": "\n" * 200_000,
}
ODD_REFERENCES: tuple[Any, ...] = (
    None, True, 3, 2.5, float("nan"), float("inf"), "", " ", "text", "\x00", [], ["a", 2], [[]], {}, {"a": None},
    object(),
)  # fmt: skip


class ScorerConformance(PluginConformance):
    """Subclass it and give `name` and `pairs`: (answer, reference) that are right.

    judge_reply  what the judge says of right answers, for scorers that ask one; wrong_reply: of all others
    asks         whether it asks a judge
    endless      an answer and a reference on which a careless scorer would never end, such as a regular expression
                 that goes back without end; it must score or give up with an `EnvironmentFailure`
    """

    kind = "scorer"
    pairs: ClassVar[tuple[tuple[str, Any], ...]] = ()
    judge_reply: ClassVar[str] = "{}"
    wrong_reply: ClassVar[str | None] = None
    asks: ClassVar[bool] = False
    endless: ClassVar[tuple[str, Any] | None] = None

    def score(self, driver: Any, answer: str, reference: Any, right: bool = True) -> Score:
        """The score of one answer, of a task whose judge is scripted."""
        reply = self.judge_reply if right or self.wrong_reply is None else self.wrong_reply
        made = driver.score(answer, reference, Task("t", reference=reference), ScriptedJudge(reply))
        assert isinstance(made, Score), f"score() returned a {type(made).__name__}"
        for name, value in made.named.items():
            assert math.isfinite(value), f"the named score {name} is {value}"
        return made

    def test_no_setting_has_a_name_that_a_choice_needs(self) -> None:
        found = settings_class(self.manifest)
        names = {field.name for field in getattr(found, "__attrs_attrs__", ())}
        taken = names & {"name", "settings", "provider", "files", "where"}
        assert not taken, f"a configuration writes {{name: ..., <settings>}}: no setting may be called {sorted(taken)}"

    def test_right_answers_are_right(self, driver: Any) -> None:
        assert self.pairs, "give at least one pair of a right answer and its reference"
        for answer, reference in self.pairs:
            made = self.score(driver, answer, reference)
            assert (made.hard, made.soft) == (1.0, 1.0), f"{answer!r} against {reference!r}: {made}"

    @pytest.mark.parametrize("answer", ODD_ANSWERS)
    def test_odd_answers_are_scored_and_say_why(self, driver: Any, answer: str) -> None:
        for _, reference in self.pairs:
            made = self.score(driver, answer, reference, right=False)
            assert made.hard < 1.0
            assert made.feedback.strip(), "a score below 1 says why, for whoever improves the skill"
            again = self.score(driver, answer, reference, right=False)
            assert made == again, "the same answer has the same score"

    @pytest.mark.parametrize("answer", HUGE_ANSWERS.values(), ids=HUGE_ANSWERS)
    def test_huge_answers_are_scored_and_quoted_in_short(self, driver: Any, answer: str) -> None:
        """Of one reference, and once: with time that grows faster than the text none of these would end."""
        made = self.score(driver, answer, self.pairs[0][1], right=False)
        assert made.hard < 1.0
        assert len(made.feedback) < 10_000, "feedback goes into prompts: an answer is quoted in short"

    def test_what_never_ends_is_given_up(self, driver: Any) -> None:
        if self.endless is None:
            pytest.skip("nothing in it may run without end")
        try:
            self.score(driver, *self.endless, right=False)
        except EnvironmentFailure as error:
            assert str(error).strip(), "it says what took too long"

    @pytest.mark.parametrize("reference", ODD_REFERENCES, ids=lambda value: f"{type(value).__name__} {value!r:.20}")
    def test_a_reference_is_used_or_refused(self, driver: Any, reference: Any) -> None:
        """What cannot be compared with is a defect of the data: `ValueError` in a sentence, never a score of 0."""
        try:
            self.score(driver, "An answer.", reference, right=False)
            refused = ""
        except ValueError as error:
            refused = str(error).strip()
            assert refused, "the sentence says what a reference must be"
        if hasattr(driver, "check"):
            try:
                driver.check(reference, Task("t", reference=reference))
                assert not refused, f"score() refuses what check() took: {refused}"
            except ValueError as error:
                assert refused, f"check() refuses what score() takes: {error}"

    def test_references_of_right_pairs_pass_the_check(self, driver: Any) -> None:
        for _, reference in self.pairs if hasattr(driver, "check") else ():
            driver.check(reference, Task("t", reference=reference))

    def test_what_it_looks_at_is_the_end_of_a_sentence(self, driver: Any) -> None:
        if not hasattr(driver, "shape_only"):
            pytest.skip("it does not say what it looks at")
        references = [reference for _, reference in self.pairs]
        for several in (references[:1] * 3, references * 2):
            seen = driver.shape_only([Task(f"t{number}", reference=each) for number, each in enumerate(several)])
            assert isinstance(seen, str), f"shape_only() returned a {type(seen).__name__}"
            assert seen == seen.strip().rstrip("."), 'it ends a sentence that goes on: "the scorer looks ..."'

    def test_a_judge_that_fails_is_no_low_score(self, driver: Any) -> None:
        class Away(ScriptedJudge):
            def chat(self, *_: Any, **__: Any) -> Any:
                raise CallTimeout("no reply in time")

        answer, reference = self.pairs[0]
        task = Task("t", reference=reference)
        if not self.asks:
            assert driver.score(answer, reference, task, Away()).hard == 1.0, "a scorer that asks no judge needs none"
            assert driver.score(answer, reference, task, None).hard == 1.0
            return
        with pytest.raises(ModelError):
            driver.score(answer, reference, task, Away())
        with pytest.raises(EnvironmentFailure):
            driver.score(answer, reference, task, None)

    def test_many_threads_at_once_score_as_one(self, driver: Any) -> None:
        asked = [(answer, reference, True) for answer, reference in self.pairs]
        asked += [("no", reference, False) for _, reference in self.pairs]
        alone = [self.score(driver, *each) for each in asked]
        with ThreadPoolExecutor(4) as pool:
            together = list(pool.map(lambda each: self.score(driver, *each), asked * 3))
        assert together == alone * 3
