"""Ratios, cuts and written splits: vectors of the specification and bad data."""

import json
from pathlib import Path

import pytest
from skillopt_kernel.errors import DataError
from skillopt_lib_env import ratio_split

GOLDEN = [19, 5, 14, 4, 9, 13, 15, 18, 6, 12, 17, 10, 1, 11, 2, 16, 7, 8, 0, 3]


@pytest.mark.parametrize(
    ("total", "ratio", "counts"),
    [
        (10, (2, 1, 7), (2, 1, 7)),
        (100, (2, 1, 7), (20, 10, 70)),
        (177, (2, 1, 7), (35, 18, 124)),
        (246, (2, 1, 7), (49, 25, 172)),
        (534, (2, 1, 7), (107, 53, 374)),
        (7, (2, 1, 7), (1, 1, 5)),
        (5, (2, 1, 7), (1, 0, 4)),
        (3, (2, 1, 7), (1, 0, 2)),
        (1, (2, 1, 7), (0, 0, 1)),
        (10, (1, 1, 1), (4, 3, 3)),
        (11, (1, 1, 1), (4, 4, 3)),
        (10, (8, 2, 0), (8, 2, 0)),
    ],
)
def test_split_counts(total, ratio, counts):
    assert ratio_split.split_counts(total, ratio) == counts
    assert sum(counts) == total


@pytest.mark.parametrize(
    ("text", "ratio"),
    [
        ("2:1:7", (2, 1, 7)), (" 2 : 1 : 7 ", (2, 1, 7)), ("8:2", (8, 2, 0)), ("10:1:1", (10, 1, 1)),
        ("2:1:0", (2, 1, 0)), ("3:0:1", (3, 0, 1)), ("8:0", (8, 0, 0)), ("50:25:25", (50, 25, 25)),
        ("0.5:0.25:0.25", (2, 1, 1)), (".5:.25:.25", (2, 1, 1)), ("0.8:0.2", (4, 1, 0)), ("0.75:0.25:0.0", (3, 1, 0)),
        ("0.75:0:0.25", (3, 0, 1)), ("0.333:0.333:0.334", (333, 333, 334)), ("0.1:0.2:0.7", (1, 2, 7)),
    ],
)  # fmt: skip
def test_a_ratio_is_read(text, ratio):
    assert ratio_split.parse_split_ratio(text) == ratio


@pytest.mark.parametrize(
    "text",
    ["0:1:1", "a:b:c", "2::7", "", "8", "1:1:1:1", "-1:2:3", "1e2:1:1", "²:1:1", "1.:1:1", "0.0:0.5:0.5", "nan:1:1"],
)
def test_what_is_no_ratio_is_refused_with_the_right_form(text):
    with pytest.raises(DataError, match=r"env\.split_ratio is .* '2:1:7'.*'8:2'") as caught:
        ratio_split.parse_split_ratio(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(("text", "total"), [("0.5:0.25", "0.75"), ("1.5:1:1", "3.5"), ("0.5:0.25:0.2", "0.95")])
def test_shares_that_do_not_add_up_are_refused(text, total):
    with pytest.raises(DataError, match=f"these shares add up to {total}, and must add up to 1"):
        ratio_split.parse_split_ratio(text)


@pytest.mark.parametrize("text", ["2:1:1", "0.5:0.25:0.25"])
def test_o_s2_twenty_tasks_split_in_half_and_quarters_on_every_machine(text):
    parts = ratio_split.split_by_ratio(range(20), ratio_split.parse_split_ratio(text), seed=42)
    assert parts == {
        "train": GOLDEN[:10],
        "selection": GOLDEN[10:15],
        "test": GOLDEN[15:],
    }  # the shuffle of Python's Mersenne Twister with seed 42, written down: it is the same everywhere


def test_o_s2_an_explicit_zero_is_honoured():
    without_test = ratio_split.split_by_ratio(range(20), ratio_split.parse_split_ratio("2:1:0"), seed=42)
    assert {part: len(items) for part, items in without_test.items()} == {"train": 13, "selection": 7, "test": 0}
    assert without_test == ratio_split.split_by_ratio(range(20), ratio_split.parse_split_ratio("2:1"), seed=42)
    without_selection = ratio_split.split_by_ratio(range(20), ratio_split.parse_split_ratio("3:0:1"), seed=42)
    assert {part: len(items) for part, items in without_selection.items()} == {"train": 15, "selection": 0, "test": 5}
    assert ratio_split.minimum_size((3, 0, 1)) == 3


@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_o_s3_a_tiny_ratio_split_names_the_minimum_size(size):
    with pytest.raises(DataError, match=f"{size} items are too few to split 2:1:7 .*at least 6 items"):
        ratio_split.split_by_ratio(range(size), (2, 1, 7), seed=42)


@pytest.mark.parametrize("ratio", [(2, 1, 7), (1, 1, 1), (8, 2, 0), (50, 1, 1), (7, 3, 90), (3, 3, 2), (1, 3, 3)])
def test_from_the_minimum_size_on_no_part_is_empty(ratio):
    minimum = ratio_split.minimum_size(ratio)
    for total in range(minimum, minimum + 3 * sum(ratio)):
        counts = ratio_split.split_counts(total, ratio)
        assert all(count > 0 for count, weight in zip(counts, ratio, strict=True) if weight)
    assert not all(c > 0 for c, w in zip(ratio_split.split_counts(minimum - 1, ratio), ratio, strict=True) if w)


def test_an_absurd_ratio_is_refused_at_once():
    with pytest.raises(DataError, match="10 items are too few"):
        ratio_split.split_by_ratio(range(10), (1, 1, 10**15), seed=42)


def test_a_ratio_split_shuffles_with_its_seed_and_cuts_in_order():
    parts = ratio_split.split_by_ratio(range(10), (2, 1, 7), seed=42)
    assert parts == {"train": [7, 3], "selection": [2], "test": [8, 5, 6, 9, 4, 0, 1]}
    assert ratio_split.split_by_ratio(range(10), (8, 2, 0), seed=42)["test"] == []
    assert ratio_split.split_by_ratio(range(10), (2, 1, 7), seed=0) != ratio_split.split_by_ratio(
        range(10), (2, 1, 7), seed=42
    )


def test_a_split_is_written_with_its_manifest_last(tmp_path: Path):
    parts = {"train": [{"id": "ä"}], "selection": [{"id": "b"}], "test": []}
    ratio_split.write_splits(tmp_path / "s", parts, source="d.json", ratio="1:1:1", seed=3)
    written = sorted(path.relative_to(tmp_path / "s").as_posix() for path in (tmp_path / "s").rglob("*.json"))
    assert written == ["split_manifest.json", "test/items.json", "train/items.json", "val/items.json"]
    assert json.loads((tmp_path / "s/split_manifest.json").read_text("utf-8")) == {
        "source_data_path": "d.json",
        "split_mode": "ratio",
        "split_ratio": "1:1:1",
        "split_seed": 3,
        "counts": {"train": 1, "val": 1, "test": 0},
    }
    assert json.loads((tmp_path / "s/train/items.json").read_bytes()) == [{"id": "ä"}]
    ratio_split.write_splits(tmp_path / "s", {**parts, "test": [{"id": "c"}]}, source="d.json", ratio="1:1:1", seed=3)
    assert json.loads((tmp_path / "s/test/items.json").read_bytes()) == [{"id": "c"}]
