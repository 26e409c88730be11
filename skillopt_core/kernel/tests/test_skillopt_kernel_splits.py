"""Names, checks and batches: vectors of the specification and bad data."""

from collections import Counter
from random import Random

import pytest
from skillopt_kernel import splits
from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Splits, Task


def tasks(*ids: str) -> tuple[Task, ...]:
    return tuple(Task(one) for one in ids)


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


def test_a_train_size_that_is_not_that_of_the_data_is_refused():
    splits.check_train_size(0, 7)
    splits.check_train_size(7, 7)
    with pytest.raises(DataError, match=r"train\.train_size is 400, but the train split holds 7 tasks.*or to 0"):
        splits.check_train_size(400, 7)


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
