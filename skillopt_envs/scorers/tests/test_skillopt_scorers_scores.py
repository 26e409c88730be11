"""The scorers against the official rule, and the words they give to whoever improves the skill."""

import pytest
import skillopt_scorers
from skillopt_kernel.plugins.manifest import ACCEPTED_APIS
from skillopt_kernel.records import Task
from skillopt_scorers.exact_match import ExactScorer
from skillopt_scorers.settings import ExactSettings
from skillopt_scorers.token_overlap import TokenF1Scorer

TASK = Task("t")


@pytest.mark.parametrize(
    ("answer", "gold", "hard", "soft"),
    [
        ("Abraham Lincoln", ["Abraham Lincoln"], 1, 1),
        ("abraham lincoln.", ["Abraham Lincoln"], 1, 1),
        ("The Beatles", ["Beatles"], 1, 1),
        ("a an the", ["The"], 1, 0),  # two texts without words: exact match, and by SQuAD v1.1 no F1
        ("   ", [""], 1, 0),
        ("O'Brien", ["OBrien"], 1, 1),
        ("O’Brien", ["O'Brien"], 0, 0),
        ("10%", ["10 percent"], 0, 2 / 3),
        ("William Jefferson Clinton", ["Bill Clinton", "Clinton"], 0, 0.5),
        ("fum fum fum", ["fum"], 0, 0.5),
        ("July 4, 1776", ["4 July 1776"], 0, 1),
        ("Jif", ["!", "Jif"], 1, 1),
        ("Jif", [], 0, 0),
        ("Jif", "Jif", 1, 1),
    ],
)
def test_official_scores(answer, gold, hard, soft):
    score = TokenF1Scorer().score(answer, gold, TASK)
    assert (score.hard, score.soft) == (hard, pytest.approx(soft))
    exact = ExactScorer(ExactSettings("squad")).score(answer, gold, TASK)
    assert (exact.hard, exact.soft) == (hard, hard)


@pytest.mark.parametrize(
    ("answer", "gold", "named"),
    [
        ("a an the", ["The"], {"reference_f1": 1, "f1": 0, "sub_em": 0, "reference_sub_em": 1}),
        ("", ["fum"], {"sub_em": 0, "reference_sub_em": 1, "reference_f1": 0}),
        ("I think it is Jif", ["Jif"], {"sub_em": 1, "reference_sub_em": 1}),
        ("Jif", ["!"], {"sub_em": 0, "reference_sub_em": 0, "reference_f1": 0}),
        ("twenty–five men", ["twenty-five"], {"f1": 0, "lenient_em": 0, "lenient_f1": 0.8}),
        ("Beyoncé", ["Beyonce"], {"em": 0, "lenient_em": 1, "lenient_f1": 1}),
    ],
)
def test_further_scores_have_names_of_their_own(answer, gold, named):
    scores = TokenF1Scorer().score(answer, gold, TASK).named
    assert {name: scores[name] for name in named} == pytest.approx(named)
    assert set(scores) == {"em", "f1", "sub_em", "lenient_em", "lenient_f1", "reference_f1", "reference_sub_em"}


@pytest.mark.parametrize(
    ("answer", "gold", "feedback"),
    [
        ("Jif", ["Jif"], "Right."),
        ("", ["Jif"], 'Wrong: there is no answer; accepted: "Jif".'),
        ("Skippy", ["Jif"], 'Wrong: answered "Skippy"; accepted: "Jif". They share no word.'),
        (
            "the Blackwater company",
            ["Blackwater Worldwide", "Academi"],
            'Wrong: answered "the Blackwater company"; accepted: "Blackwater Worldwide" or "Academi". '
            'Partly right: it has "company" too many and lacks "worldwide".',
        ),
        (
            "July 4, 1776",
            ["4 July 1776"],
            'Wrong: answered "July 4, 1776"; accepted: "4 July 1776". The words are right, their order is not.',
        ),
        (
            "red-cent",
            ["red cent"],
            'Wrong: answered "red-cent"; accepted: "red cent". Only signs, accents or hyphens differ.',
        ),
        ("Jif", [], 'Wrong: answered "Jif"; accepted: nothing (the task has no accepted answer). They share no word.'),
    ],
)
def test_feedback_says_what_is_wrong(answer, gold, feedback):
    assert TokenF1Scorer().score(answer, gold, TASK).feedback == feedback


@pytest.mark.parametrize(
    ("answer", "gold", "ignore", "hard"),
    [
        ("  Paris\n", "paris", "case", 1),
        ("Paris.", "Paris", "case", 1),
        ("Stra\u00dfe", "STRASSE", "case", 1),
        ("Beyonce\u0301", "Beyonc\u00e9", "case", 1),
        ("-5", "5", "case", 0),
        ("3.5", "35", "case", 0),
        ("C++", "C", "case", 0),
        ("The Beatles", "Beatles", "case", 0),
        ("wait...", "wait..", "case", 0),
        ("-5", "5", "squad", 1),  # the official rule, which is why it is not the default
        ("\u200bParis\ufeff", "Paris", "case", 1),
        ("\u200bParis", "Paris", "nothing", 0),
        ("Paris", "paris", "nothing", 0),
        ("Paris", "Paris", "nothing", 1),
    ],
)
def test_what_exact_ignores(answer, gold, ignore, hard):
    assert ExactScorer(ExactSettings(ignore)).score(answer, gold, TASK).hard == hard
    if ignore == "case":
        assert ExactScorer().score(answer, gold, TASK).hard == hard


def test_exact_feedback():
    assert ExactScorer().score("Jif", ["jif"], TASK).feedback == "Right."
    wrong = ExactScorer().score("red-cent", ["red cent"], TASK)
    assert wrong.feedback == (
        'Wrong: answered "red-cent"; accepted: "red cent" (only articles, signs, accents or hyphens differ).'
    )
    assert wrong.named == {"em": 0.0, "lenient_em": 1.0}
    assert "no answer" in ExactScorer().score(" ", ["x"], TASK).feedback


def test_long_answers_and_many_accepted_ones_are_shortened():
    feedback = TokenF1Scorer().score("x " * 400, [f"gold {number}" for number in range(9)], TASK).feedback
    assert '..."; accepted: "gold 0" or ' in feedback
    assert '"gold 4" (and 4 more)' in feedback
    assert len(feedback) < 600


@pytest.mark.parametrize("scorer", [ExactScorer(), TokenF1Scorer()])
@pytest.mark.parametrize("reference", [None, 3, ["a", 2], {"a": "b"}])
def test_another_reference_is_an_error_and_not_a_wrong_answer(scorer, reference):
    with pytest.raises(ValueError, match="a text or a list of texts"):
        scorer.score("a", reference, TASK)


def test_a_rubric_under_another_scorer_is_told_where_it_belongs():
    """O-H3: a task with a rubric and literal checks must not be scored by the checks alone, unnoticed."""
    with pytest.raises(ValueError, match="a rubric is for the scorer llm_judge"):
        ExactScorer().check({"rubric": "It gives the mean.", "contains": ["## Results"]}, TASK)


def test_each_manifest_names_what_makes_its_scorer():
    for name, made in (("exact", ExactScorer), ("token_f1", TokenF1Scorer)):
        manifest = getattr(skillopt_scorers, name)
        assert (manifest.kind, manifest.name) == ("scorer", name)
        assert manifest.api in ACCEPTED_APIS
        module, _, attribute = manifest.factory.partition(":")
        assert (made.__module__, made.__qualname__) == (module, attribute)
