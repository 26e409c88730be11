"""Labels in every spelling, and no guess where there is none."""

import pytest
from skillopt_lib_env.labels import label_of, labels_of

CITIES = ("London", "Paris", "Rome", "Oslo")


@pytest.mark.parametrize(
    "text",
    [
        "B", "b", " B\n", "Ⓑ", "(B)", "[b].", "B.", "B)", "**B**", "`B`", "$B$", '"B"',
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
     "AB", "é", "A and B", "A, B", "A.B", "a) b) c)", "(A) or (B)", "The answer is (A) or (B)",
     "The answer is A, B", "The answer is A or B", "Between (A) and (C)", "Par", "\x00", "<answer>"],
)  # fmt: skip
def test_no_guess_is_made(text):
    assert label_of(text, "ABCD", CITIES) is None


def test_other_labels_and_choices_that_are_alike():
    assert label_of("(3)", "1234") == "3"
    assert label_of("ä", "ÄÖ") == "Ä"
    assert label_of("same", "AB", ["same", "same"]) is None
    assert label_of("same", "AB", ["same", "Same!"]) == "A"
    assert label_of("", "AB", ["", "x"]) is None


@pytest.mark.parametrize(
    ("choices", "text", "label"),
    [
        (["x>0", "x<0"], "x<0", "B"), (["x>0", "y"], "x<0", None), (["$x>0$", "$x<0$"], "x > 0", None),
        (["$x>0$", "$x<0$"], "The answer is x>0", "A"), (["x", "y"], "-x", None), (["1.5", "7"], "15", None),
        (["f'", "g"], "f", None), (["(a, b)", "[0, 1]"], "[a, b]", None), (["São Paulo", "Rome"], "sao paulo.", "A"),
        (["résumé", "resume"], "Resume", "B"), (["the Moon", "Mars"], "Moon", "A"), (["A prime", "x"], "A prime", "A"),
    ],
)  # fmt: skip
def test_the_text_of_a_choice_is_taken_as_it_is_written(choices, text, label):
    """In mathematics a sign makes another statement; words may be spelt as a reader takes for the same."""
    assert label_of(text, "AB", choices) == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("The answer is B because 3 is odd", "B"), ("The answer is a because", "A"), ("B, since (A) fails", "B"),
        ("B is correct", "B"), ("B is the only correct one", "B"), ("B is wrong", None), ("B is not correct", None),
        ("not (B)", None), ("I eliminate (B)", None), ("I eliminate option B.", None), ("B, Q", None),
        ("I would go with option B.", "B"), ("I, for one, doubt it", None), ("I - well", None), ("I) one", "I"),
        ("The answer is A+B", None), ("The answer is C++", None), ("A = B", None), ("A-invariant", None),
        ("the answer is a dog", None), ("b) Paris", "B"), ("a set", None), ("e.g. this", None),
    ],
)  # fmt: skip
def test_a_label_is_told_from_a_word_and_from_a_formula(text, label):
    assert label_of(text) == label


def test_labels_that_are_digits_are_told_from_numbers():
    assert label_of("The answer is 3.", "1234") == "3"
    assert label_of("The answer is 3.5", "1234") is None
    assert label_of("3.5 is right", "1234") is None
    assert label_of("3. It is the largest", "1234") == "3"


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
     "\\boxed{" * 40_000, "\\boxed{" + " " * 500_000, "B" + " " * 500_000 + "x y",
     "\\text{" * 20_000 + "}" * 20_000, "answer:" + "*" * 500_000, "\\text{" * 50_000],
)  # fmt: skip
def test_long_texts_take_linear_time(text):
    """With quadratic time none of these would end."""
    assert label_of(text, "ABCD") is None
    assert not labels_of(text, "ABCD")
