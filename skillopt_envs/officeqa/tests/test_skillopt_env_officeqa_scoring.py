"""The published rules beyond the shared cases: what counts as the same number, and what is told of a wrong one."""

import pytest
from officeqa_world import TASK, environment
from skillopt_env_officeqa.numbers import numbers_in
from skillopt_env_officeqa.scoring import judged
from skillopt_kernel.records import Attempt


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("[8, 152,260]", "[8, 152260]"),
        ("8, 5", "5, 8"),
        ("-$5", "-5"),
        ("$-5", "-5"),
        ("($5)", "-5"),
        ("1939-1940", "1939-1940"),
        ("2602 in 1944", "2602"),
        ("$1,234.56 million", "1234.56"),
        ("1944", "1944"),
        ("0.0", "0"),
        (".5", "0.5"),
        ("<FINAL_ANSWER>4</FINAL_ANSWER> <FINAL_ANSWER> 5 </FINAL_ANSWER>", "5"),
        ("Federal Reserve", "federal reserve (FR)"),
        ("5 M", "5 million"),
        (["0.1 + 0.2", "0.3"][1], "0.3"),
    ],
)
def test_right(answer, reference):
    assert judged(answer, reference, 0.0).right


@pytest.mark.parametrize(
    ("answer", "reference", "why"),
    [
        ("2.6 billion", "2.6 million", "the scale is billion, not million"),
        ("5", "-5", "the sign is wrong"),
        ("101", "100", "off by 1 %"),
        ("1", "0", "off by 1 from 0"),
        ("[152260, 8]", "[8, 152260]", "number 1 of 2: in the wrong order"),
        ("5 or 6", "5", "2 numbers where the answer has 1 number"),
        ("**5**", "5", "markup"),
        ("$\\boxed{5}$", "5", "markup"),
        ("5\n5", "5", "several lines"),
        ("5" + " " * 300 + "x", "5", "302 characters"),
        ("April 1977", "March 1977", "'march' are missing"),
        ("five", "5", "has no number"),
        ("gold", "silver", "the text differs"),
        ("", "5", "there is no answer"),
    ],
)
def test_wrong_with_why(answer, reference, why):
    verdict = judged(answer, reference, 0.0)
    assert not verdict.right
    assert why in verdict.reason


@pytest.mark.parametrize("digits", ["9" * 240, "0." + "0" * 200 + "1", "1e999", "1" * 90 + "," + "0" * 90])
def test_odd_numbers_are_scored(digits):
    assert not judged(digits, "5", 0.05).right
    assert judged(digits, "0", 0.0).right in (True, False)


def test_the_tolerance_is_exact_at_its_limit():
    assert judged("101", "100", 0.01).right
    assert not judged("101.0000001", "100", 0.01).right
    assert judged("0.101", "0.1", 0.01).right, "decimal arithmetic: no rounding of the computer decides"


def test_numbers_with_units():
    found = [(str(number.value), number.unit) for number in numbers_in("$1,204 million, then (3.5) bn and 7 thousand")]
    assert found == [("1204", "million"), ("-3.5", ""), ("7", "thousand")]


@pytest.mark.parametrize(("answer", "soft"), [("636.6", 1.0), ("637", 0.75), ("640", 0.5), ("660", 0.25), ("700", 0.0)])
def test_soft_tells_how_near_an_answer_is(answer, soft):
    score = environment().score(TASK, Attempt(answer, state={"reason": "", "earlier": answer}), None)
    assert score.soft == soft
    assert score.hard == float(soft == 1.0)


def test_the_tolerance_of_hard_can_be_chosen():
    made = environment(tolerance=0.01)
    score = made.score(TASK, Attempt("640", state={}), None)
    assert (score.hard, score.soft, score.named["official_0"], score.named["official_1"]) == (1.0, 1.0, 0.0, 1.0)
    assert score.feedback == "Right."
