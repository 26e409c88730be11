"""One line of a text, and a few of many names."""

import pytest
from skillopt_lib_env.wording import few_of, one_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ""),
        (" \n ", ""),
        ("a\n b\tc", "a b c"),
        ("x" * 10, "x" * 10),
        ("x" * 11, "x" * 7 + "..."),
        ("🙂" * 11, "🙂" * 7 + "..."),
    ],
)
def test_a_text_on_one_line(text, line):
    assert one_line(text, 10) == line


def test_a_description_has_a_hundred_characters():
    assert len(one_line("word " * 100)) <= 100


@pytest.mark.parametrize(
    ("names", "told"), [([], ""), (["a"], "a"), (list("abc"), "a, b, c"), (list("abcde"), "a, b, c and 2 more")]
)
def test_a_few_of_the_names(names, told):
    assert few_of(names) == told
