"""Rows of a data set by id: read by the package `datasets` from a folder as from the Hub."""

import json
import sys

import pytest
from skillopt_kernel.errors import ConfigError, DataError
from skillopt_lib_env.data_sets import read_data_set, rows_of_ids


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Writes a data set of two splits and returns its folder; the package is offline and keeps its caches there."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    config = pytest.importorskip("datasets").config
    monkeypatch.setattr(config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))

    def write(train, validation=()):
        for name, rows in (("train", train), ("validation", validation)):
            if rows:
                (tmp_path / "set").mkdir(exist_ok=True)
                text = "\n".join(json.dumps(row) for row in rows)
                (tmp_path / "set" / f"{name}.jsonl").write_text(text, "utf-8")
        return str(tmp_path / "set")

    return write


def row(name, **more):
    return {"key": name, "question": f"Q {name}?", **more}


def test_rows_of_all_splits_come_in_order_with_their_place(folder):
    place = folder([row("a"), row("b"), row("c")], [row("d"), row("e")])
    found = rows_of_ids(place, "key", {"c", "e", "b", "z"})
    assert [item.fields["key"] for item in found] == ["b", "c", "e"]
    assert [item.where for item in found] == [
        f"{place}, split train, row 2",
        f"{place}, split train, row 3",
        f"{place}, split validation, row 2",
    ]


def test_ids_that_are_numbers_are_found_by_their_text(folder):
    place = folder([{"key": 7, "question": "?"}, {"key": 8, "question": "?"}])
    assert [item.fields["key"] for item in rows_of_ids(place, "key", {"8"})] == [8]


@pytest.mark.parametrize(
    ("rows", "column", "message"),
    [
        ([row("a")], "id", r"split train: there is no column 'id'; it has key, question\."),
        ([row("a"), row(None)], "key", r"split train, row 2: the column 'key' holds nothing\."),
        ([row("a"), row(" ")], "key", r"split train, row 2: the column 'key' holds nothing\."),
    ],
)
def test_rows_that_no_id_can_be_read_from(folder, rows, column, message):
    with pytest.raises(DataError, match=message):
        rows_of_ids(folder(rows), column, {"a"})


def test_what_cannot_be_loaded_is_a_sentence(folder, tmp_path):
    folder([row("a")])
    with pytest.raises(DataError, match=r"the data set '.*nothing' cannot be loaded: \w+: .*Hub can be reached\."):
        rows_of_ids(str(tmp_path / "nothing"), "key", {"a"})
    with pytest.raises(DataError, match=r"the split 'dev' of the data set '.*set' cannot be loaded: ValueError"):
        read_data_set(str(tmp_path / "set"), split="dev")


def test_without_the_package_the_sentence_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ConfigError, match=r"pip install 'skillopt-env-acme\[datasets\]'"):
        rows_of_ids("owner/name", "key", {"a"}, extra="skillopt-env-acme[datasets]")
