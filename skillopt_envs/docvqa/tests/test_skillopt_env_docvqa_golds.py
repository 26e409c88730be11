import warnings

import pytest
from skillopt_env_docvqa.golds import accepted_answers


@pytest.mark.parametrize(
    ("value", "golds"),
    [
        (None, []),
        ("", []),
        ("  ", []),
        ("[]", []),
        ("''", []),
        ("0.50", ["0.50"]),
        ("0x10", ["0x10"]),
        ("(1993)", ["(1993)"]),
        ("[1, 2]", ["[1, 2]"]),
        ("[see page 2]", ["[see page 2]"]),
        ("['0.50', '1,250']", ["0.50", "1,250"]),
        ('["a\\u00e9", "b"]', ["aé", "b"]),
        ("{'answers': ['x', 'y']}", ["x", "y"]),
        ('{"a": 1}', ['{"a": 1}']),
        ('"A" or "B"', ['"A" or "B"']),
        ("'90s", ["'90s"]),
        (["  x ", "", "y"], ["x", "y"]),
        ([5, "007"], ["5", "007"]),
        (["[1]"], ["[1]"]),
        (["['a', 'b']"], ["['a', 'b']"]),
        ([{"text": "x"}, {"answer": "y"}, {"value": 3}], ["x", "y", "3"]),
        ({"ground_truth": "['a']"}, ["a"]),
        (12, ["12"]),
    ],
)
def test_golds_stay_as_they_are_written(value, golds):
    assert accepted_answers(value) == golds


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (0.5, r'the number 0\.5, of which it is not known how it was written .*"0\.5"'),
        ([0.5], r"the number 0\.5"),
        (True, "must be a text, not True"),
        ([None], "must be a text, not None"),
        ([["a"]], "must be a text"),
        ({"gold": "x"}, "without any of the keys 'answers', 'ground_truth', 'answer'"),
        ([{"gold": "x"}], "without any of the keys 'text', 'answer', 'value'"),
        ("['a', 5]", "holds texts and others; put each answer in quotation marks"),
        ("['0.28' '0.29']", "lacks commas between its texts"),
        ("['0.28'\n '0.29']", "lacks commas between its texts"),
    ],
)
def test_what_cannot_be_read_for_certain_is_refused(value, sentence):
    with pytest.raises(ValueError, match=sentence):
        accepted_answers(value)


def test_a_backslash_in_a_list_is_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert accepted_answers(r"['a\d', 'b']") == [r"a\d", "b"]
