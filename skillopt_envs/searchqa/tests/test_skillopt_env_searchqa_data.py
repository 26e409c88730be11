"""`skillopt data searchqa`: the published split from a data set of the same shape, or from files of its rows."""

import json
import os
import sys
from pathlib import Path

import pytest
from skillopt_kernel.cli.main import main
from skillopt_kernel.config.packaged import package_path
from skillopt_lib_env.data_files import read_items
from skillopt_lib_env.split_manifest import read_manifest

DATA = Path(os.environ["SKILLOPT_TEST_DATA"]) if os.environ.get("SKILLOPT_TEST_DATA") else None
ROWS = Path(__file__).parent / "data" / "rows"
KEYS = [row.fields["key"] for name in ("train", "validation") for row in read_items(ROWS / f"{name}.jsonl")]
SPLIT = {"train": KEYS[7::-1], "val": KEYS[12:], "test": KEYS[8:12]}


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Runs the command in an empty folder with a manifest of the 16 rows; the package `datasets` is offline."""
    monkeypatch.chdir(tmp_path)
    for name, keys in SPLIT.items():
        (tmp_path / "ids" / name).mkdir(parents=True)
        (tmp_path / "ids" / name / "items.json").write_text(json.dumps([{"id": key} for key in keys]))

    def words(*arguments, manifest="ids"):
        code = main(["data", "searchqa", "--manifest", manifest, *map(str, arguments)])
        told = capsys.readouterr()
        return code, told.out + told.err

    return words


@pytest.fixture
def offline(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    config = pytest.importorskip("datasets").config
    monkeypatch.setattr(config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))


def written(out="data/searchqa_split"):
    return {name: [row.fields for row in read_items(Path(out) / name / "items.json")] for name in SPLIT}


def rows_file(tmp_path, *changes, name="rows.jsonl"):
    """All rows in one file, with changes (a row's place, field, value) made to it; the value `None` drops the field."""
    rows = [dict(row.fields) for part in ("train", "validation") for row in read_items(ROWS / f"{part}.jsonl")]
    for place, field, value in changes:
        rows[place] = {**rows[place], field: value}
        if value is None:
            del rows[place][field]
    (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return name


def test_rows_of_all_splits_of_the_data_set_are_written_in_the_manifests_order(run, offline):
    code, text = run("--dataset", ROWS)
    assert code == 0, text
    assert "8 train, 4 selection, 4 test tasks." in text
    found = written()
    assert {name: [item["id"] for item in items] for name, items in found.items()} == SPLIT
    assert found["train"][-1] == {
        "id": KEYS[0],
        "question": "This town on the river Orl burned down in 1702",
        "context": read_items(ROWS / "train.jsonl")[0].fields["context"],
        "answers": ["Velmar"],
    }
    facts = json.loads(Path("data/searchqa_split/split_manifest.json").read_text("utf-8"))
    assert facts == {
        "benchmark": "SearchQA",
        "source": str(ROWS),
        "item_fields": ["id", "question", "context", "answers"],
        "counts": {"train": 8, "val": 4, "test": 4},
    }


def test_rows_may_come_from_files(run):
    code, text = run("--from", ROWS / "train.jsonl", "--from", ROWS / "validation.jsonl")
    assert code == 0, text
    assert {name: [item["id"] for item in items] for name, items in written().items()} == SPLIT


def test_what_the_published_manifest_names_and_the_data_lacks_is_counted(run, offline):
    manifest = package_path("package:skillopt_env_searchqa/manifest")
    first = read_manifest(manifest).ids[:5]
    code, text = run("--dataset", ROWS, manifest="package:skillopt_env_searchqa/manifest")
    assert code == 2
    assert f"{ROWS} lacks 2000 ids of the 2000 that the split in {manifest} names" in text
    assert f"{', '.join(map(repr, first))} and 1995 more." in text
    assert not Path("data").exists()


@pytest.mark.skipif(DATA is None, reason="SKILLOPT_TEST_DATA is not set")
def test_the_packaged_manifest_is_the_published_one():
    ours = read_manifest(package_path("package:skillopt_env_searchqa/manifest"))
    published = read_manifest(DATA / "searchqa" / "manifest")
    assert ours.ids == published.ids
    assert ours.facts["counts"] == published.facts["counts"] == {"train": 400, "val": 200, "test": 1400}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ([(3, "key", None)], "rows.jsonl:4: the field 'key' is missing"),
        ([(3, "key", " ")], "rows.jsonl:4: the field 'key' is blank"),
        ([(3, "key", KEYS[4])], f"holds 1 id of the split more than once: '{KEYS[4]}' (rows.jsonl:4 and rows.jsonl:5)"),
        ([(3, "key", "other")], f"rows.jsonl lacks 1 id of the 16 that the split in ids names: '{KEYS[3]}'."),
        ([(3, "question", None)], "rows.jsonl:4: the field 'question' is missing"),
        ([(3, "question", "")], "rows.jsonl:4: the field 'question' is blank"),
        ([(3, "context", None)], "rows.jsonl:4: the field 'context' is missing"),
        ([(3, "answers", None)], "rows.jsonl:4: the field 'answers' is missing"),
        ([(3, "answers", [])], "rows.jsonl:4: the list 'answers' is empty"),
        ([(3, "answers", "['nine']")], "rows.jsonl:4: 'answers' is a list written as text"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(run, tmp_path, changes, message):
    code, text = run("--from", rows_file(tmp_path, *changes))
    assert code == 2
    assert message in text
    assert not Path("data").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--from", "none.jsonl"), "--from: there is no file none.jsonl."),
        (("--from", "ids"), "--from: there is no file ids."),
        (("--from", "x.jsonl", "--dataset", "y"), "--from names files, --dataset and --revision a data set"),
        (("--dataset", "none"), "the data set 'none' cannot be loaded"),
        (("--out", "ids"), "--out: ids holds test, train, val already"),
        (("--out", "ids", "--replace"), "it is no split that could be replaced"),
    ],
)
def test_mistakes_are_sentences(run, offline, words, message):
    code, text = run(*words)
    assert code == 2
    assert message in text


def test_without_the_loader_the_sentence_says_how_to_get_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    code, text = run()
    assert code == 2
    assert "reading the data set 'lucadiliello/searchqa' needs the package datasets" in text
    assert "pip install 'skillopt-env-searchqa[datasets]'" in text
    assert "`--from FILE`" in text
