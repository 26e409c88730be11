"""Mathematical expressions: what is equal, and what would compute without end."""

import pytest
from skillopt_kernel.records import Task
from skillopt_lib_env.children import plain_environment
from skillopt_scorers.mathematics import MathScorer
from skillopt_scorers.settings import MathSettings
from skillopt_scorers.workers import Pool
from skillopt_testkit import ScorerConformance

TASK = Task("t")


@pytest.fixture(scope="module")
def scorer():
    """One for all tests of the file, with one process, which takes seconds to start."""
    scorer = MathScorer(MathSettings(time_limit=2))
    scorer._pool = Pool("skillopt_scorers.math_worker", plain_environment(), most=1)
    return scorer


@pytest.mark.parametrize(
    ("answer", "reference"),
    [
        ("1/2", "\\frac{1}{2}"),
        ("0.5", "\\frac12"),
        ("The answer is $\\frac{1}{2}$.", "1/2"),
        ("\\boxed{x^2+2x+1}", "(x+1)^2"),
        ("x^2 + 2x + 1", "(x+1)^2"),
        ("\\{1,2\\}", "\\{2,1\\}"),
        ("x=5", "5"),
        ("\\sqrt{8}", "2\\sqrt{2}"),
        ("1,000", 1000),
        ("y=2x+1", ["7", "y=1+2x"]),
    ],
)
def test_equal(scorer, answer, reference):
    assert scorer.score(answer, reference, TASK).hard == 1


@pytest.mark.parametrize(
    ("answer", "reference", "feedback"),
    [
        ("3", "4", 'answered "3"; accepted: "4".'),
        ("[1,2]", "(1,2)", 'accepted: "(1,2)".'),
        ("banana", "1", "No mathematical expression can be read in it."),
        ("", "7", "there is no answer"),
        ("1+" * 3000, "1", "an answer of 6000 characters is no expression"),
        ("__import__('os').abort()", "1", "No mathematical expression"),
    ],
)
def test_not_equal(scorer, answer, reference, feedback):
    score = scorer.score(answer, reference, TASK)
    assert (score.hard, score.soft) == (0, 0)
    assert feedback in score.feedback


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        ("banana", "'banana' holds no mathematical expression"),
        ([], "no expression"),
        (True, "must be a text"),
        ("", "empty"),
    ],
)
def test_a_reference_without_an_expression_is_an_error(scorer, reference, sentence):
    with pytest.raises(ValueError, match=sentence):
        scorer.check(reference, TASK)


def with_settings(scorer, **settings):
    """Another scorer with the same process."""
    other = MathScorer(MathSettings(**settings))
    other._pool = scorer._pool
    return other


def test_settings(scorer):
    assert scorer.score("1.23", "1.21", TASK).hard == 0
    assert with_settings(scorer, digits=1).score("1.23", "1.21", TASK).hard == 1
    assert scorer.score("x+1", "y+1", TASK).hard == 0
    assert with_settings(scorer, strict=False).score("x+1", "y+1", TASK).hard == 1


class TestMathConformance(ScorerConformance):
    name = "math"
    pairs = (("$\\frac{2}{4}$", "1/2"), ("0.5", ["3", "\\frac{1}{2}"]))

    @pytest.fixture
    def driver(self, scorer):
        return scorer


def test_what_computes_without_end_is_not_equal_and_its_process_is_ended(scorer):
    """The last test: another process would have to start."""
    score = scorer.score("9^{9^{9^{9}}}", "1", TASK)
    assert (score.hard, score.soft) == (0, 0)
    assert "took more than 2 seconds of computing, or too much memory" in score.feedback
    scorer._pool.close()
    assert scorer._pool._idle == []
