"""Texts that must stand in an answer, patterns, labels, and similarity of the spelling."""

import pytest
from skillopt_kernel.errors import ConfigError, EnvironmentFailure
from skillopt_kernel.records import Task
from skillopt_scorers.choices import ChoiceScorer
from skillopt_scorers.patterns import RegexScorer
from skillopt_scorers.settings import AnlsSettings, ChoiceSettings, ContainsSettings, RegexSettings
from skillopt_scorers.spelling import AnlsScorer
from skillopt_scorers.substrings import ContainsScorer

TASK = Task("t")
CITIES = Task("t", inputs={"choices": ["London", "Paris", "Rome", "Oslo"]})


@pytest.mark.parametrize(
    ("answer", "reference", "settings", "hard", "soft"),
    [
        ("It is in PARIS.", "paris", {}, 1, 1),
        ("It is in PARIS.", "paris", {"ignore_case": False}, 0, 0),
        ("Paris", ["Rome", "Paris"], {}, 1, 1),
        ("Paris", ["Rome", "Paris"], {"require": "all"}, 0, 0.5),
        ("Rome, then Paris", ["Rome", "Paris"], {"require": "all"}, 1, 1),
        ("concatenate", "cat", {}, 1, 1),
        ("concatenate", "cat", {"whole_words": True}, 0, 0),
        ("concatenate a cat!", "cat", {"whole_words": True}, 1, 1),
        ("17", "7", {"whole_words": True}, 0, 0),
        ("New\n  York", "new york", {}, 1, 1),
        ("Beyonce\u0301", "Beyonc\u00e9", {}, 1, 1),
        ("", "x", {}, 0, 0),
        ("Pa\u200bris\ufeff", "Paris", {}, 1, 1),
        ("C++ it is", "C++", {"whole_words": True}, 1, 1),
    ],
)
def test_contains(answer, reference, settings, hard, soft):
    score = ContainsScorer(ContainsSettings(**settings)).score(answer, reference, TASK)
    assert (score.hard, score.soft) == (hard, soft)
    assert hard or "it lacks" in score.feedback


@pytest.mark.parametrize("reference", ["", " ", "\u200b", [], ["a", ""], None, 3])
def test_nothing_to_look_for_is_an_error(reference):
    with pytest.raises(ValueError, match=r"empty|must be a text"):
        ContainsScorer().check(reference, TASK)


@pytest.mark.parametrize(
    ("answer", "reference", "settings", "hard"),
    [
        ("In 1889.", r"\b18\d\d\b", {}, 1),
        ("In 1889.", r"18\d\d", {"whole": True}, 0),
        ("1889", r"18\d\d", {"whole": True}, 1),
        ("PARIS", "paris", {}, 0),
        ("PARIS", "paris", {"ignore_case": True}, 1),
        ("a\nb", "^b$", {}, 0),
        ("a\nb", "^b$", {"multiline": True}, 1),
        ("a\nb", "a.b", {"dot_all": True}, 1),
        ("x7", ["a", r"\d"], {}, 1),
        ("x7", None, {"pattern": r"\d"}, 1),
        ("x", None, {"pattern": r"\d"}, 0),
    ],
)
def test_regex(answer, reference, settings, hard):
    score = RegexScorer(RegexSettings(**settings)).score(answer, reference, TASK)
    assert score.hard == hard
    assert hard or "does not match" in score.feedback


@pytest.mark.parametrize("labels", ["", "AAB", "A B", "Aa", "A,B", "é!"])
def test_labels_that_cannot_be_told_apart_are_told(labels):
    with pytest.raises(ConfigError, match="the scorer choice: `labels` must be letters or digits, each once"):
        ChoiceScorer(ChoiceSettings(labels=labels))


def test_a_pattern_that_calls_itself_without_end_is_no_zero():
    with pytest.raises(EnvironmentFailure, match=r"matching '\(\?R\)' (needs too much memory|took more than)"):
        RegexScorer().score("x", "(?R)", TASK)


def test_a_pattern_that_is_none_is_told():
    with pytest.raises(ConfigError, match=r"the scorer regex: '\(' is no regular expression"):
        RegexScorer(RegexSettings(pattern="("))
    with pytest.raises(ValueError, match=r"'\[' is no regular expression"):
        RegexScorer().check("[", TASK)
    with pytest.raises(ValueError, match="no pattern to match"):
        RegexScorer().check("", TASK)


@pytest.mark.parametrize("pattern", ["^(a|a)*$", "^(a|aa)+$", "^(.*a){25}$"])
def test_a_pattern_without_end_is_given_up_and_is_no_zero(pattern):
    scorer = RegexScorer(RegexSettings(time_limit=0.1))
    assert scorer.score("aaa", "^a*$", TASK).hard == 1
    try:
        assert scorer.score("a" * 5000 + "!", pattern, TASK).hard == 0
    except EnvironmentFailure as error:
        assert "took more than 0.1 seconds on an answer of 5001 characters" in str(error)


def test_one_pattern_surely_never_ends():
    with pytest.raises(EnvironmentFailure, match="took more than"):
        RegexScorer(RegexSettings(time_limit=0.1)).score("a" * 60 + "!", "^(a|a)*$", TASK)


@pytest.mark.parametrize(
    ("answer", "reference", "task", "hard"),
    [
        ("B", "B", TASK, 1),
        ("(b)", "B", TASK, 1),
        ("The answer is **B**.", "b", TASK, 1),
        ("\\boxed{B}", ["A", "B"], TASK, 1),
        ("C", "B", TASK, 0),
        ("A or B", "B", TASK, 0),
        ("Paris", "B", CITIES, 1),
        ("B", "Paris", CITIES, 1),
        ("E", "B", CITIES, 0),
        ("Par", "B", CITIES, 0),
        ("2", "2", Task("t", inputs={"choices": {"1": "one", "2": "two"}}), 1),
        ("two", "2", Task("t", inputs={"choices": {"1": "one", "2": "two"}}), 1),
        ("B (Paris)", "B", CITIES, 1),
        ("B (Rome)", "C", CITIES, 0),
        ("I believe the correct option is B", "B", CITIES, 1),
        ("I would say that B is correct", "B", CITIES, 1),
        ("I believe that A is wrong", "A", CITIES, 0),
        ("not B", "B", CITIES, 0),
        ("both A and B", "B", CITIES, 0),
        ("A, B", "B", CITIES, 0),
        ("\uff22", "B", CITIES, 1),
    ],
)
def test_choice(answer, reference, task, hard):
    score = ChoiceScorer().score(answer, reference, task)
    assert (score.hard, score.soft) == (hard, hard)
    assert hard or "Wrong: " in score.feedback


@pytest.mark.parametrize(
    ("answer", "reference", "hard", "soft"),
    [
        ("A and C", ["A", "C"], 1, 1),
        ("C, A", "AC", 1, 1),
        ("A", ["A", "C"], 0, 0.5),
        ("A, B, C", ["A", "C"], 0, 2 / 3),
        ("B", ["A", "C"], 0, 0),
        ("none of them", ["A"], 0, 0),
    ],
)
def test_several_choices(answer, reference, hard, soft):
    score = ChoiceScorer(ChoiceSettings(several=True)).score(answer, reference, TASK)
    assert (score.hard, score.soft) == (hard, pytest.approx(soft))


@pytest.mark.parametrize(
    ("reference", "sentence"), [("Madrid", "none of the labels ABCD"), ([], "empty"), ("", "none"), (7, "text")]
)
def test_a_reference_that_is_no_choice_is_an_error(reference, sentence):
    with pytest.raises(ValueError, match=sentence):
        ChoiceScorer().check(reference, CITIES)


@pytest.mark.parametrize(
    ("answer", "gold", "hard", "soft", "earlier"),
    [
        ("1/8/93", ["1/8/93"], 1, 1, 1),
        ("University of California", ["university  of California"], 1, 1, 1),
        ("0.28", ["0.28", ".28"], 1, 1, 1),
        ("1250", ["1,250.00"], 0, 0.5, 0),  # 4 edits of 8: the public scripts keep exactly the threshold
        ("abcd", ["abxy"], 0, 0.5, 0),
        ("abcde", ["abcxy"], 0, 0.6, 0.6),
        ("abcdefghi", ["abcdewxyz"], 0, 5 / 9, 5 / 9),
        ("abcdefghi", ["abcdvwxyz"], 0, 0, 0),
        ("café", ["cafe"], 0, 0.75, 0.75),
        ("", [""], 1, 1, 1),
        ("", [], 0, 0, 1),  # earlier trainers took a task without an answer for solved
        ("a" * 999 + "c", ["a" * 999 + "b"], 0, 0.999, 0.999),
    ],
)
def test_anls(answer, gold, hard, soft, earlier):
    score = AnlsScorer().score(answer, gold, TASK)
    assert (score.hard, score.soft) == (hard, pytest.approx(soft))
    assert score.named["anls"] == score.soft
    assert score.named["reference_anls"] == pytest.approx(earlier)
    assert score.named["reference_hard"] == (earlier >= 0.999)


def test_anls_settings():
    assert AnlsScorer(AnlsSettings(right_from=0.9)).score("abcdefghix", ["abcdefghij"], TASK).hard == 1
    assert AnlsScorer(AnlsSettings(threshold=0.8)).score("abcde", ["abcxy"], TASK).soft == 0
    assert AnlsScorer(AnlsSettings(ignore_case=False)).score("AB", ["ab"], TASK).soft == 0
    feedback = AnlsScorer().score("abcde", ["abcxy"], TASK).feedback
    assert feedback == 'Wrong: answered "abcde"; accepted: "abcxy". The spelling agrees to 60%.'
