"""Splits from files in both modes, and what is said when they cannot be used."""

import json
from pathlib import Path

import pytest
from attrs import evolve, frozen
from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Task
from skillopt_lib_env.split_loading import load_splits


@frozen
class Settings:
    split_mode: str = "split_dir"
    split_ratio: str = "2:1:7"
    split_seed: int = 42
    split_dir: Path | None = None
    data_path: Path | None = None
    split_output_dir: Path | None = None
    limit: int = 0


def to_task(item):
    return None if item.fields.get("skip") else Task(item.required_text("id"))


def load(settings, **options):
    return load_splits(settings, to_task, name="mine", cure="Make it so.", **options)


def rows(*ids, **more):
    return [{"id": one} | more for one in ids]


def split_folder(root: Path, **parts) -> Path:
    for part, items in parts.items():
        (root / part).mkdir(parents=True)
        (root / part / "items.json").write_text(json.dumps(items), "utf-8")
    return root


def ids(tasks):
    return [task.id for task in tasks]


def test_a_folder_that_is_split_already(tmp_path):
    root = split_folder(tmp_path / "d", train=rows("a", "b"), val=rows("c"), test=[])
    splits = load(Settings(split_dir=root))
    assert (ids(splits.train), ids(splits.selection), ids(splits.test)) == (["a", "b"], ["c"], [])
    assert ids(load(Settings(split_dir=root, limit=1)).train) == ["a"]


def test_a_file_split_by_a_ratio_and_written_out(tmp_path):
    path = tmp_path / "all.json"
    path.write_text(json.dumps(rows(*map(str, range(10)))), "utf-8")
    settings = Settings("ratio", data_path=path)
    splits = load(settings, folder=tmp_path / "run")
    assert (ids(splits.train), ids(splits.selection)) == (["7", "3"], ["2"])
    out = tmp_path / "run/_generated_splits/mine_2-1-7_seed42"
    assert json.loads((out / "split_manifest.json").read_text("utf-8"))["counts"] == {"train": 2, "val": 1, "test": 7}
    assert load(Settings(split_dir=out)) == splits
    assert load(evolve(settings, split_output_dir=tmp_path / "own")) == splits
    assert load(Settings(split_dir=tmp_path / "own")) == splits


def test_two_parts_leave_no_test_split(tmp_path):
    path = tmp_path / "all.json"
    path.write_text(json.dumps(rows(*map(str, range(10)))), "utf-8")
    splits = load(Settings("ratio", "8:2", data_path=path))
    assert (len(splits.train), len(splits.selection), splits.test) == (8, 2, ())
    assert not (tmp_path / "_generated_splits").exists()


def test_o_s2_an_explicit_zero_leaves_a_part_empty_and_the_written_split_says_which(tmp_path):
    path = tmp_path / "all.json"
    path.write_text(json.dumps(rows(*map(str, range(20)))), "utf-8")
    settings = Settings("ratio", "3:0:1", data_path=path)
    splits = load(settings, folder=tmp_path / "run")
    assert (len(splits.train), splits.selection, len(splits.test)) == (15, (), 5)
    manifest = tmp_path / "run/_generated_splits/mine_3-0-1_seed42/split_manifest.json"
    assert json.loads(manifest.read_text("utf-8"))["counts"] == {"train": 15, "val": 0, "test": 5}
    assert load(evolve(settings, split_ratio="0.75:0:0.25")) == splits


def test_a_folder_with_one_file_can_be_split(tmp_path):
    (tmp_path / "all.jsonl").write_text("\n".join(json.dumps(row) for row in rows(*map(str, range(10)))), "utf-8")
    assert len(load(Settings("ratio", data_path=tmp_path)).test) == 7


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings("folds"), "env.split_mode is 'folds'; it must be 'split_dir' or 'ratio'"),
        (Settings(), r"env\.split_dir names no folder\. Make it so\."),
        (Settings(split_dir=Path("no/such")), r"there is no folder no/such\. Make it so\."),
        (Settings("ratio"), r"env\.data_path names no data to split\. Make it so\."),
        (Settings("ratio", data_path=Path("no/such.json")), r"no file or folder no/such\.json\. Make it so\."),
        (Settings("ratio", "2:x", data_path=Path("no")), r"env\.split_ratio is '2:x'"),
    ],
)
def test_missing_data_says_what_is_missing_and_how_to_make_it(settings, message):
    with pytest.raises(DataError, match=message):
        load(settings)


def test_missing_folders_are_named(tmp_path):
    root = split_folder(tmp_path / "d", train=rows("a"))
    with pytest.raises(DataError, match=r"holds no 'val' and no 'test'; it needs the folders .*Make it so\."):
        load(Settings(split_dir=root))


def test_a_split_folder_is_not_split_again(tmp_path):
    root = split_folder(tmp_path / "d", train=rows("a"), val=rows("b"), test=rows("c"))
    with pytest.raises(DataError, match=r"is split already\. Set env\.split_mode to split_dir"):
        load(Settings("ratio", data_path=root))


def test_o_s1_overlap_and_duplicates_are_refused(tmp_path):
    root = split_folder(tmp_path / "d", train=rows("q1", "q2"), val=rows("q2"), test=rows("q3", "q3"))
    with pytest.raises(DataError) as caught:
        load(Settings(split_dir=root, limit=1))
    assert f"{root} cannot be used" in str(caught.value)
    assert "in both train and selection: 'q2'" in str(caught.value)
    assert "more than once: 'q3'" in str(caught.value)


def test_o_s3_a_tiny_file_is_refused_by_ratio(tmp_path):
    path = tmp_path / "all.json"
    path.write_text(json.dumps(rows("a", "b", "c", "d", "e")), "utf-8")
    with pytest.raises(DataError, match=r"5 items are too few .* at least 6 items"):
        load(Settings("ratio", data_path=path))


@pytest.mark.parametrize("part", ["train", "val"])
def test_o_d3_an_empty_split_names_file_and_split(tmp_path, part):
    root = split_folder(tmp_path / "d", **({"train": rows("a"), "val": rows("b"), "test": []} | {part: []}))
    split = {"train": "train", "val": "selection"}[part]
    with pytest.raises(DataError, match=rf"{part}.items\.json: the {split} split is empty: the file holds 0 items"):
        load(Settings(split_dir=root))


def test_o_d3_a_split_whose_every_item_is_left_out_is_told_with_counts(tmp_path):
    root = split_folder(tmp_path / "d", train=rows("a", "b", skip=1), val=rows("c"), test=[])
    message = r"train.items\.json: nothing is left of the train split: 2 items were read and all 2 left out"
    with pytest.raises(DataError, match=message):
        load(Settings(split_dir=root))
    path = tmp_path / "all.json"
    path.write_text(json.dumps(rows("a", "b", skip=1)), "utf-8")
    with pytest.raises(DataError, match=r"all\.json: nothing is left of the data: 2 items were read"):
        load(Settings("ratio", data_path=path))


def test_a_bad_row_is_named(tmp_path):
    root = split_folder(tmp_path / "d", train=[{"question": "q"}], val=rows("b"), test=[])
    with pytest.raises(DataError, match=r"train.items\.json, item 1: the field 'id' is missing"):
        load(Settings(split_dir=root))
