"""Ratios, names, checks, written splits and batches: vectors of the specification and bad data."""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from skillopt_kernel import splits
from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Splits, Task

GOLDEN = [19, 5, 14, 4, 9, 13, 15, 18, 6, 12, 17, 10, 1, 11, 2, 16, 7, 8, 0, 3]


def tasks(*ids: str) -> tuple[Task, ...]:
    return tuple(Task(one) for one in ids)


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
    assert splits.split_counts(total, ratio) == counts
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
    assert splits.parse_split_ratio(text) == ratio


@pytest.mark.parametrize(
    "text",
    ["0:1:1", "a:b:c", "2::7", "", "8", "1:1:1:1", "-1:2:3", "1e2:1:1", "²:1:1", "1.:1:1", "0.0:0.5:0.5", "nan:1:1"],
)
def test_what_is_no_ratio_is_refused_with_the_right_form(text):
    with pytest.raises(DataError, match=r"env\.split_ratio is .* '2:1:7'.*'8:2'") as caught:
        splits.parse_split_ratio(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(("text", "total"), [("0.5:0.25", "0.75"), ("1.5:1:1", "3.5"), ("0.5:0.25:0.2", "0.95")])
def test_shares_that_do_not_add_up_are_refused(text, total):
    with pytest.raises(DataError, match=f"these shares add up to {total}, and must add up to 1"):
        splits.parse_split_ratio(text)


@pytest.mark.parametrize("text", ["2:1:1", "0.5:0.25:0.25"])
def test_o_s2_twenty_tasks_split_in_half_and_quarters_on_every_machine(text):
    parts = splits.split_by_ratio(range(20), splits.parse_split_ratio(text), seed=42)
    assert parts == {
        "train": GOLDEN[:10],
        "selection": GOLDEN[10:15],
        "test": GOLDEN[15:],
    }  # the shuffle of Python's Mersenne Twister with seed 42, written down: it is the same everywhere


def test_o_s2_an_explicit_zero_is_honoured():
    without_test = splits.split_by_ratio(range(20), splits.parse_split_ratio("2:1:0"), seed=42)
    assert {part: len(items) for part, items in without_test.items()} == {"train": 13, "selection": 7, "test": 0}
    assert without_test == splits.split_by_ratio(range(20), splits.parse_split_ratio("2:1"), seed=42)
    without_selection = splits.split_by_ratio(range(20), splits.parse_split_ratio("3:0:1"), seed=42)
    assert {part: len(items) for part, items in without_selection.items()} == {"train": 15, "selection": 0, "test": 5}
    assert splits.minimum_size((3, 0, 1)) == 3


@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_o_s3_a_tiny_ratio_split_names_the_minimum_size(size):
    with pytest.raises(DataError, match=f"{size} items are too few to split 2:1:7 .*at least 6 items"):
        splits.split_by_ratio(range(size), (2, 1, 7), seed=42)


@pytest.mark.parametrize("ratio", [(2, 1, 7), (1, 1, 1), (8, 2, 0), (50, 1, 1), (7, 3, 90), (3, 3, 2), (1, 3, 3)])
def test_from_the_minimum_size_on_no_part_is_empty(ratio):
    minimum = splits.minimum_size(ratio)
    for total in range(minimum, minimum + 3 * sum(ratio)):
        counts = splits.split_counts(total, ratio)
        assert all(count > 0 for count, weight in zip(counts, ratio, strict=True) if weight)
    assert not all(c > 0 for c, w in zip(splits.split_counts(minimum - 1, ratio), ratio, strict=True) if w)


def test_an_absurd_ratio_is_refused_at_once():
    with pytest.raises(DataError, match="10 items are too few"):
        splits.split_by_ratio(range(10), (1, 1, 10**15), seed=42)


def test_a_ratio_split_shuffles_with_its_seed_and_cuts_in_order():
    parts = splits.split_by_ratio(range(10), (2, 1, 7), seed=42)
    assert parts == {"train": [7, 3], "selection": [2], "test": [8, 5, 6, 9, 4, 0, 1]}
    assert splits.split_by_ratio(range(10), (8, 2, 0), seed=42)["test"] == []
    assert splits.split_by_ratio(range(10), (2, 1, 7), seed=0) != splits.split_by_ratio(range(10), (2, 1, 7), seed=42)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("train", "train"),
        ("val", "selection"),
        ("selection", "selection"),
        ("valid_seen", "selection"),
        ("test", "test"),
        ("valid_unseen", "test"),
    ],
)
def test_a_split_is_known_by_its_names(name, part):
    given = Splits(tasks("a"), tasks("b"), tasks("c"))
    assert splits.split_name(name) == part
    assert splits.tasks_of(given, name) == getattr(given, part)


def test_an_unknown_split_is_an_error_and_not_the_selection_split():
    with pytest.raises(DataError, match=r"no split 'validation'; .*train, selection, test, val, "):
        splits.split_name("validation")


def test_o_s1_duplicate_ids_are_refused_for_each_split_and_pair():
    given = Splits(tasks("q1", "q2"), tasks("q2"), tasks("q3", "q3"))
    with pytest.raises(DataError) as caught:
        splits.check_splits(given, "data/here")
    text = str(caught.value)
    assert "data/here cannot be used" in text
    assert "the test split holds 1 id more than once: 'q3'" in text
    assert "1 id in both train and selection: 'q2'" in text
    assert "train and test" not in text


def test_many_offending_ids_are_counted_and_the_first_named():
    same = tasks(*(f"q{number}" for number in range(25)))
    with pytest.raises(DataError, match=r"25 ids in both train and selection: 'q0', .*'q19' and 5 more"):
        splits.check_splits(Splits(same, same))


@pytest.mark.parametrize(("part", "given"), [("train", ((), ("b",))), ("selection", (("a",), ()))])
def test_an_empty_part_is_refused(part, given):
    with pytest.raises(DataError, match=f"the {part} split of the data is empty"):
        splits.check_splits(Splits(tasks(*given[0]), tasks(*given[1])))


def test_an_empty_test_split_is_allowed_and_an_empty_selection_split_where_nothing_needs_it():
    given = Splits(tasks("a"), tasks("b"))
    assert splits.check_splits(given) is given
    given = Splits(tasks("a"), ())
    assert splits.check_splits(given, selection_needed=False) is given


def test_a_limit_cuts_each_split():
    given = Splits(tasks("a", "b"), tasks("c", "d"), tasks("e"))
    assert splits.limited(given, 1) == Splits(tasks("a"), tasks("c"), tasks("e"))
    assert splits.limited(given, 0) == given


def test_a_train_size_that_is_not_that_of_the_data_is_refused():
    splits.check_train_size(0, 7)
    splits.check_train_size(7, 7)
    with pytest.raises(DataError, match=r"train\.train_size is 400, but the train split holds 7 tasks.*or to 0"):
        splits.check_train_size(400, 7)


def test_a_split_is_written_with_its_manifest_last(tmp_path: Path):
    parts = {"train": [{"id": "ä"}], "selection": [{"id": "b"}], "test": []}
    splits.write_splits(tmp_path / "s", parts, source="d.json", ratio="1:1:1", seed=3)
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
    splits.write_splits(tmp_path / "s", {**parts, "test": [{"id": "c"}]}, source="d.json", ratio="1:1:1", seed=3)
    assert json.loads((tmp_path / "s/test/items.json").read_bytes()) == [{"id": "c"}]


def test_the_epoch_plan_of_the_specification():
    assert splits.epoch_batches(10, 4, 1, epoch=1, seed=42) == (
        splits.Batch(1043, (6, 4, 1, 9)),
        splits.Batch(1044, (7, 8, 0, 5)),
        splits.Batch(1045, (2, 3)),
    )
    assert splits.epoch_batches(10, 4, 1, epoch=2, seed=42) == (
        splits.Batch(2043, (1, 4, 6, 9)),
        splits.Batch(2044, (8, 0, 7, 2)),
        splits.Batch(2045, (3, 5)),
    )


def test_an_epoch_asks_every_task_once_and_refills_empty_batches():
    batches = splits.epoch_batches(5, 4, 4, epoch=1, seed=0)
    assert len(batches) == splits.steps_per_epoch(5, 4, 4) * 4 == 4
    assert sorted(index for batch in batches[:2] for index in batch.indices) == [0, 1, 2, 3, 4]
    for batch in batches[2:]:
        again = list(range(5))
        Random(batch.seed).shuffle(again)
        assert batch.indices == tuple(again[:4])


@pytest.mark.parametrize(("size", "batch", "accumulation", "steps"), [(400, 40, 1, 10), (107, 40, 1, 3), (9, 4, 2, 2)])
def test_steps_per_epoch(size, batch, accumulation, steps):
    assert splits.steps_per_epoch(size, batch, accumulation) == steps


def test_an_ad_hoc_sample():
    assert splits.sample_tasks(range(10), 10, seed=42) == (7, 3, 2, 8, 5, 6, 9, 4, 0, 1)
    assert splits.sample_tasks(range(10), 4, seed=4042) == (6, 7, 5, 3)
    assert Counter(splits.sample_tasks(range(3), 9, seed=1)) == Counter(range(3))


def test_minibatches():
    assert splits.minibatches(range(10), 8, seed=43) == ((8, 1, 5, 6, 9, 7, 3, 2), (4, 0))
    assert splits.minibatches(range(10), 8, seed=44) == ((4, 5, 0, 2, 9, 3, 7, 1), (8, 6))
    assert splits.minibatches((), 8, seed=43) == ()
    assert splits.minibatches("aaaa", 3, seed=43) == (("a", "a", "a"), ("a",)), "equal items are not one unit"


def test_items_of_one_unit_stay_side_by_side_in_their_order():
    items = [(task, attempt) for attempt in range(3) for task in range(10)]
    groups = splits.minibatches(items, 8, seed=43, unit=lambda item: item[0])
    assert [item for group in groups for item in group] == [
        (task, attempt) for task in (8, 1, 5, 6, 9, 7, 3, 2, 4, 0) for attempt in range(3)
    ]
    assert [len(group) for group in groups] == [8, 8, 8, 6]
