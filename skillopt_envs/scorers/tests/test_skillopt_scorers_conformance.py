"""Every scorer of ours keeps what the suite asks of any."""
# ruff: noqa: RUF012 - `options` and `pairs` are the suite's class attributes

import logging
import sys

import pytest
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_lib_env.scoring import ScorerChoice
from skillopt_scorers.settings import NumericSettings, PythonSettings
from skillopt_testkit import ScorerConformance
from skillopt_testkit.conformance.scorer import HUGE_ANSWERS, ODD_ANSWERS

PLAIN = DriverContext(logging.getLogger("test"))
TEXTS = (("The  eiffel tower.", ["The Eiffel Tower"]), ("seven", "Seven"))


class TestExactConformance(ScorerConformance):
    name = "exact"
    pairs = TEXTS


class TestTokenF1Conformance(ScorerConformance):
    name = "token_f1"
    pairs = TEXTS


class TestContainsConformance(ScorerConformance):
    name = "contains"
    options = {"require": "all"}
    pairs = (("It is the Eiffel Tower, in Paris.", ["eiffel tower", "paris"]), ("seven!", "Seven"))


class TestRegexConformance(ScorerConformance):
    name = "regex"
    options = {"time_limit": 0.2}
    pairs = (("In 1889, I think.", r"\b18\d\d\b"), ("seven", ["^six$", "^seven$"]))
    endless = ("a" * 60 + "!", "^(a|a)*$")


@pytest.fixture(scope="module")
def numeric():
    """One for all tests: it reads its units once."""
    return make_driver("scorer", "numeric", NumericSettings(**TestNumericConformance.options), PLAIN)


class TestNumericConformance(ScorerConformance):
    name = "numeric"
    options = {"relative_tolerance": 0.01}
    pairs = (("12.1 km", "12 km"), ("7", [7, 8]), ("1,250", 1250.5))

    @pytest.fixture
    def driver(self, numeric):
        return numeric


class TestChoiceConformance(ScorerConformance):
    name = "choice"
    pairs = (("The answer is (b).", "B"), ("C", ["B", "C"]))


class TestJsonConformance(ScorerConformance):
    name = "json"
    options = {"schema": {"type": "object", "properties": {"name": {"type": "string"}}}}
    pairs = (
        ('{"name": "Jif", "sizes": [1, 2]}', {"name": "Jif", "sizes": [1.0, 2]}),
        ('```json\n{"a": 1}\n```', '{"a": 1}'),
    )


class TestJsonByFieldConformance(ScorerConformance):
    name = "json"
    options = {"fields": {"name": ScorerChoice("exact"), "size.0": ScorerChoice("numeric")}}
    pairs = (('{"name": "jif", "size": ["1.0"]}', {"name": "Jif", "size": [1]}),)

    @pytest.fixture
    def context(self):
        """As a run makes it: with what makes the scorers of the fields."""
        return DriverContext(
            PLAIN.logger, driver=lambda kind, name, settings=None: make_driver(kind, name, settings, PLAIN)
        )


class TestAnlsConformance(ScorerConformance):
    name = "anls"
    pairs = (("the eiffel  tower", ["The Eiffel Tower"]), ("seven", "Seven"))


class TestJudgeConformance(ScorerConformance):
    name = "llm_judge"
    options = {"rubric": "It names the tower."}
    pairs = (
        ("The Eiffel Tower.", "Eiffel Tower"),
        ("It is that tower.", {"rubric": "It says tower.", "contains": ["tower"]}),
    )
    judge_reply = '{"reasoning": "It names it.", "score": 1}'
    wrong_reply = '{"reasoning": "It does not name it.", "score": 0.25}'
    asks = True


@pytest.fixture(scope="module")
def same(tmp_path_factory):
    """One for all tests, whose processes wait for the next answer."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "mine.py").write_text("def same(answer, reference):\n    return answer == reference\n")
    return make_driver("scorer", "python", PythonSettings(function="mine:same", path=(folder,)), PLAIN)


class TestPythonConformance(ScorerConformance):
    name = "python"
    options = {"function": "operator:eq"}
    pairs = (("seven", "seven"),)

    @pytest.fixture
    def settings(self, same):
        return same._settings

    @pytest.fixture
    def driver(self, same):
        return same


class TestCommandConformance(ScorerConformance):
    """A program each time: of odd answers, huge ones and references a few stand for all."""

    name = "command"
    options = {
        "command": (
            sys.executable,
            "-c",
            "import json,sys; d=json.load(sys.stdin); print(json.dumps(d['answer']==d['reference']))",
        )
    }
    pairs = (("seven", "seven"),)

    @pytest.mark.parametrize("answer", ODD_ANSWERS[:5])
    def test_odd_answers_are_scored_and_say_why(self, driver, answer):
        super().test_odd_answers_are_scored_and_say_why(driver, answer)

    @pytest.mark.parametrize("answer", list(HUGE_ANSWERS.values())[:1])
    def test_huge_answers_are_scored_and_quoted_in_short(self, driver, answer):
        super().test_huge_answers_are_scored_and_quoted_in_short(driver, answer)

    @pytest.mark.parametrize("reference", [None, float("nan"), object()])
    def test_a_reference_is_used_or_refused(self, driver, reference):
        super().test_a_reference_is_used_or_refused(driver, reference)
