"""The names of the splits on which a skill is evaluated."""

import pytest
from skillopt_commands.evaluation import split_name
from skillopt_kernel.errors import DataError


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("train", "train"),
        ("val", "selection"),
        ("selection", "selection"),
        ("valid_seen", "selection"),
        ("test", "test"),
        ("valid_unseen", "test"),
        (" ALL ", "all"),
    ],
)
def test_a_split_is_known_by_its_names(name, part):
    assert split_name(name) == part


def test_an_unknown_split_is_an_error_and_not_the_selection_split():
    with pytest.raises(DataError, match=r"no split 'validation'; .*train, selection, test, val, "):
        split_name("validation")
