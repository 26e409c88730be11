"""Which choice an answer names, by our rule and by that of earlier trainers."""

import pytest
from skillopt_env_livemathematicianbench.answers import chosen, earlier_label
from skillopt_env_livemathematicianbench.questions import Choice

CHOICES = [
    Choice(label, text)
    for label, text in zip("ABCDE", ["x is even", "x is odd", "A prime", "finite", "If x>0, then y"], strict=True)
]


def label(answer, choices=CHOICES):
    found = chosen(answer, choices)
    return found.label if found else None


@pytest.mark.parametrize(
    "answer",
    [
        "B", "b", " B\n", "B.", "B)", "(B)", "(b).", "[B]", "{B}", "B:", "B!", "**B**", "__B__", "`B`", "$B$", "$$B$$",
        r"\(B\)", r"\[B\]", r"\boxed{B}", r"$\boxed{B}$", r"\boxed{\text{(B)}}", r"\text{B}", r"\mathbf{B}.", "\uff22",
        "\u24b7", "Option B", "option (b)", "Choice B.", "Answer: B", "Final: B", "**Answer:** B", "The answer is B",
        "The correct option is **(B)**.", "Therefore, the final answer is: B.", "I choose B", "So it must be B",
        "B is correct", "B is the right choice.", "B must be it", "B. x is odd", "B) because 3 is odd", "(B) x is odd",
        "B: x is odd", "B - x is odd", "B \u2014 since $3$ is odd", "B x is odd", "B, since (A) fails for 3",
        "B\nSince A fails.", "x is odd", "X IS ODD", "x  is\nodd", "**x is odd**", "The answer is x is odd",
        "B) and hence (A) fails", "It's B", "It\u2019s (B).", "#### B", "## Answer: B", "B (x is odd)",
    ],
)  # fmt: skip
def test_the_usual_spellings_of_a_label_are_read(answer):
    assert label(answer) == "B"


@pytest.mark.parametrize(
    "answer",
    [
        "", " ", "-", "?", "A prime number", "a set", "B or C", "B, C", "B/C", "B and C", "B & C", "(B) or (C)",
        "(B), (C)", "B; C", "either B or C", "B. C.", "The answer is B or C", "Not B", "not (B)", "B is not correct",
        "neither", "F", "Option F", "BC", "Bx", "B's", "B x is even", "the odd one", "I do not know.",
        "If x<0, then y", "x>0",
        "1", "B or maybe C", "Both B and C", "AB", "B C", "B, C and D", "B; C or D", "(B), (C) and (D)", "B, C, D",
    ],
)  # fmt: skip
def test_nothing_is_guessed(answer):
    assert label(answer) is None


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("A prime", "C"),
        ("a prime", "C"),
        ("A", "A"),
        ("a", "A"),
        ("A. A prime", "A"),
        ("C. A prime", "C"),
        ("B. A set is odd", "B"),
        ("If x>0, then y", "E"),
        ("Only e", None),
        ("It is finite", "D"),
        ("I", None),
    ],
)
def test_labels_are_kept_apart_from_words(answer, expected):
    assert label(answer) == expected


def test_texts_that_differ_in_case_only_are_kept_apart():
    choices = [Choice("A", "$x \\in X$"), Choice("B", "$X \\in x$"), Choice("C", "$x\\in X$ exactly")]
    assert label("$x \\in X$", choices) == "A"
    assert label("$X \\in x$", choices) == "B"
    assert label("$X \\in X$", choices) is None


def test_a_text_that_two_choices_have_names_neither():
    choices = [Choice("A", "same"), Choice("B", "same"), Choice("C", "other")]
    assert label("same", choices) is None
    assert label("B. same", choices) == "B"


def test_a_sign_makes_another_statement():
    choices = [Choice("A", "$x>0$"), Choice("B", "$x<0$"), Choice("C", "$-x<0$")]
    assert [label(choice.text, choices) for choice in choices] == ["A", "B", "C"]
    assert [label(choice.text.strip("$"), choices) for choice in choices] == ["A", "B", "C"]


@pytest.mark.parametrize("answer", ["B" * 20_000, "(" * 5_000, "the " * 20_000 + "B", "\\text{" * 2_000 + "B"])
def test_long_answers_are_read_at_once(answer):
    assert label(answer) in (None, "B")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("B", "B"), ("b).", "B"), ("(B)", "(B"), ("Option B", "OPTION B"), ("B or C", "B"), ("A prime number", "A"),
        ("A prime", "C"), ("x is odd", "B"), ("x  is odd", "X  IS ODD"), ("", ""), ("B, C", "B, C"),
    ],
)  # fmt: skip
def test_the_earlier_rule_is_kept_beside_ours(answer, expected):
    assert earlier_label(answer, CHOICES) == expected
