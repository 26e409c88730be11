"""Which task is for what."""

import json
from collections import Counter

import pytest
from skillopt_kernel.errors import DataError


def parts(splits):
    return {part: [task.id for task in getattr(splits, part)] for part in ("train", "selection", "test")}


def sizes(splits):
    return tuple(len(ids) for ids in parts(splits).values())


def rows(count, **more):
    return [{"id": f"t{n}", "question": f"Which is {n}?", "answer": f"number {n}", **more} for n in range(count)]


@pytest.fixture
def data(written):
    return lambda rows, name="d.json": written(name, json.dumps(rows))


@pytest.mark.parametrize(
    ("count", "expected"), [(10, (4, 2, 4)), (20, (8, 4, 8)), (50, (20, 10, 20)), (53, (21, 11, 21))]
)
def test_forty_twenty_forty(data, environment, count, expected):
    assert sizes(environment(data(rows(count))).splits()) == expected


def test_the_split_follows_seed_and_id_and_not_the_row(data, environment):
    made = environment(data(rows(40))).splits()
    moved = environment(data(rows(40)[::-1], "moved.json")).splits()
    assert {part: set(ids) for part, ids in parts(made).items()} == {p: set(ids) for p, ids in parts(moved).items()}
    other = environment(data(rows(40)), common={"split_seed": 43}).splits()
    assert set(parts(made)["train"]) != set(parts(other)["train"])
    again = environment(data(rows(40))).splits()
    assert again == made
    numbers = [int(task_id[1:]) for task_id in parts(made)["test"]]
    assert numbers == sorted(numbers), "a part has the order of the file"


def test_added_tasks_move_few(data, environment):
    before, after = (parts(environment(data(rows(count), f"{count}.json")).splits()) for count in (200, 205))
    stayed = sum(len(set(before[part]) & set(after[part])) for part in before)
    assert stayed >= 195


def test_another_ratio(data, environment):
    assert sizes(environment(data(rows(20)), common={"split_ratio": "3:1:0"}).splits()) == (15, 5, 0)
    assert sizes(environment(data(rows(20)), common={"split_ratio": "0.5:0.25:0.25"}).splits()) == (10, 5, 5)


@pytest.mark.parametrize("count", [1, 2, 9])
def test_too_few_tasks_are_refused_in_words(data, environment, count):
    with pytest.raises(DataError, match=r"too few: at least 10 are needed \(4 train, 2 selection, 4 test\)"):
        environment(data(rows(count))).splits()


def test_few_tasks_are_warned_of(data, environment, caplog):
    environment(data(rows(20))).splits()
    assert (
        "the selection split has only 4 tasks (train 8, test 8): one more or less right moves its score by 0.25"
        in caplog.text
    )
    caplog.clear()
    environment(data(rows(50), "fifty.json")).splits()
    assert not caplog.text


def test_the_same_input_is_in_one_split_only(data, environment, caplog):
    items = [{"id": f"t{n}", "question": f"Which is {n // 3}? ", "answer": f"{n}"} for n in range(30)]
    for seed in range(8):
        splits = environment(data(items), common={"split_seed": seed}).splits()
        where = {}
        for part in ("train", "selection", "test"):
            for task in getattr(splits, part):
                where.setdefault(task.inputs["question"], set()).add(part)
        assert all(len(found) == 1 for found in where.values())
        assert sizes(splits) == (12, 6, 12)
    assert "20 tasks ask the same as another one" in caplog.text


def test_too_few_different_inputs_are_refused(data, environment):
    items = [{"id": f"t{n}", "question": f"Which is {n % 2}?", "answer": f"{n}"} for n in range(12)]
    with pytest.raises(DataError, match=r"12 tasks have only 2 different inputs, too few to split 2:1:2"):
        environment(data(items)).splits()


def test_a_column_says_where_each_task_belongs(data, environment):
    words = ("train", "val", "test", "training"[:5], "selection", "validation", "dev", "valid_unseen", " Train ")
    items = [{**row, "split": word} for row, word in zip(rows(9), words, strict=True)]
    assert Counter(sizes(environment(data(items)).splits())) == Counter((3, 4, 2))
    with pytest.raises(DataError, match=r"item 3: the field 'split' says where .* there is no split 'tset'"):
        environment(data([*items[:2], {**items[2], "split": "tset"}], "wrong.json")).splits()


def test_a_split_column_of_another_name(data, environment):
    items = [{**row, "fold": ("train", "val", "test")[n % 3]} for n, row in enumerate(rows(9))]
    assert sizes(environment(data(items), fields={"split": "fold"}).splits()) == (3, 3, 3)


def test_what_is_split_already_must_not_share_inputs(data, environment, written):
    items = [{**row, "split": ("train", "val", "test")[n % 3]} for n, row in enumerate(rows(9))]
    items[5]["question"] = items[0]["question"] + " "
    message = r"item 6: the test task 't5' asks the same as the train task 't0' at .*item 1; what is tested must not"
    with pytest.raises(DataError, match=message):
        environment(data(items)).splits()
    for part in ("train", "val", "test"):
        written(f"data/{part}/items.json", json.dumps([item for item in items if item["split"] == part]))
    folder = data([]).parent / "data"
    with pytest.raises(DataError, match=r"items\.json, item 2: the test task 't5' asks the same as the train task"):
        environment(common={"split_mode": "split_dir", "split_dir": folder}).splits()


def test_a_split_that_was_written_is_the_same_again(sums, environment, tmp_path):
    made = environment(sums(20))
    made.save_splits(tmp_path / "run")
    folder = tmp_path / "run" / "_generated_splits" / "tasks_2-1-2_seed42"
    assert json.loads((folder / "split_manifest.json").read_text())["counts"] == {"train": 8, "val": 4, "test": 8}
    assert environment(common={"split_mode": "split_dir", "split_dir": folder}).splits() == made.splits()


def test_limit_takes_the_first_of_each_part(sums, environment):
    whole, cut = (environment(sums(30), common={"limit": limit}).splits() for limit in (0, 3))
    assert sizes(cut) == (3, 3, 3)
    assert cut.train == whole.train[:3]


def alike(count):
    return [{**row, "answer": "## Results"} for row in rows(count)]


def test_o_h3_a_scorer_that_looks_at_the_same_in_every_answer_is_told(data, environment, caplog):
    sentence = "in all 20 training tasks the scorer looks for the same answer, since they have one reference, so that"
    made = environment(data(alike(50)))
    assert made.notes() == (), "nothing is known before the data is read"
    assert [(result, text[: len(sentence)]) for result, text in made.check()] == [("warning", sentence)]
    made.splits()
    assert f"Warning: {sentence}" in caplog.text
    (note,) = made.notes()
    assert note.startswith(f"I{sentence[1:]}")
    apart = environment(data(rows(50), "apart.json"))
    apart.splits()
    assert (apart.notes(), apart.check()) == ((), [])


def test_a_check_tells_what_splits_warns_of_and_leaves_errors_to_it(data, environment):
    (finding,) = environment(data(rows(20))).check()
    assert finding[0] == "warning"
    assert finding[1].startswith("the selection split has only 4 tasks")
    assert environment(data(rows(3), "few.json")).check() == []
    assert environment(None).check() == []
