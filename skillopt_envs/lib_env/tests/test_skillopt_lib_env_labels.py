"""Labels in every spelling, and no guess where there is none."""

import pytest
from skillopt_lib_env.labels import label_of, labels_of

CITIES = ("London", "Paris", "Rome", "Oslo")


@pytest.mark.parametrize(
    "text",
    [
        "B", "b", " B\n", "(B)", "[b].", "B.", "B)", "**B**", "`B`", "$B$", '"B"',
        "\\boxed{B}", "$\\boxed{\\text{(B)}}$",
        "\\text{B}", "The answer is B.", "Answer: B", "answer is (b)", "The correct answer is option B", "Option B",
        "choice b", "Answer:\nB", "The final answer is: **(B)**", "B) Paris", "B. Paris", "B: Paris", "**B**: Paris",
        "**B.** Paris", "B - Paris", "I think A is wrong, so the answer is B", "So it must be (B), clearly",
        "The answer is A. No wait, the answer is B.", "answer: B, since A is wrong", "The answer is (B) and not (A)",
        "Paris", "paris ", "Paris.",
    ],
)  # fmt: skip
def test_spellings(text):
    assert label_of(text, "ABCD", CITIES) == "B"


@pytest.mark.parametrize(
    "text",
    ["", " ", "A dog", "I", "I do not know", "The answer is a dog", "The answer is I don't know", "option a little",
     "E",
     "AB", "é", "Ⓑ", "A and B", "A, B", "A.B", "a) b) c)", "(A) or (B)", "The answer is (A) or (B)",
     "The answer is A, B", "The answer is A or B", "Between (A) and (C)", "Par", "\x00", "<answer>"],
)  # fmt: skip
def test_no_guess_is_made(text):
    assert label_of(text, "ABCD", CITIES) is None


def test_other_labels_and_choices_that_are_alike():
    assert label_of("(3)", "1234") == "3"
    assert label_of("ä", "ÄÖ") == "Ä"
    assert label_of("same", "AB", ["same", "Same!"]) is None
    assert label_of("", "AB", ["", "x"]) is None


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("A, C and D", "ACD"), ("(a) (c)", "AC"), ("ACD", "ACD"), ("The answers are A and C.", "AC"), ("B", "B"),
        ("Options: A; D", "AD"), ("Paris", "B"), ("A man", ""), ("", ""), ("ABACUS", ""), ("A, E", ""),
    ],
)  # fmt: skip
def test_several(text, labels):
    assert labels_of(text, "ABCD", CITIES) == set(labels)


@pytest.mark.parametrize(
    "text",
    ["(" * 200_000, "answer " * 50_000, "**" * 100_000 + "B x", " " * 500_000 + "z", "answer is " * 40_000,
     "\\boxed{" * 40_000, "\\boxed{" + " " * 500_000, "answer:" + "*" * 500_000, "\\text{" * 50_000],
)  # fmt: skip
def test_long_texts_take_linear_time(text):
    """With quadratic time none of these would end."""
    assert label_of(text, "ABCD") is None
    assert not labels_of(text, "ABCD")
