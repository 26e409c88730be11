"""Published splits: read and checked, rows found by id, and written to a folder that a run can use."""

import json
import os
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from skillopt_kernel.errors import ConfigError, DataError, RunDirectoryError
from skillopt_lib_env.data_files import Item, read_items
from skillopt_lib_env.materialising import prepare_folder, split_options, write_split
from skillopt_lib_env.split_manifest import read_manifest

DATA = Path(os.environ["SKILLOPT_TEST_DATA"]) if os.environ.get("SKILLOPT_TEST_DATA") else None


@pytest.fixture
def manifest(tmp_path):
    """Writes a manifest of these ids and returns its folder."""

    def write(train=("a", "b"), val=("c",), test=("d",), **facts):
        for name, ids in (("train", train), ("val", val), ("test", test)):
            (tmp_path / "ids" / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / "ids" / name / "items.json").write_text(json.dumps([{"id": one} for one in ids]))
        if facts:
            (tmp_path / "ids" / "split_manifest.json").write_text(json.dumps(facts))
        return tmp_path / "ids"

    return write


def rows(*ids):
    return [Item({"key": one, "text": f"of {one}"}, f"data, row {number}") for number, one in enumerate(ids, 1)]


def key(row):
    return row.required_text("key")


def test_rows_are_found_in_the_manifests_order(manifest):
    read = read_manifest(manifest(counts={"train": 2, "val": 1, "test": 1}, benchmark="b"))
    assert read.ids == ("a", "b", "c", "d")
    assert read.facts["benchmark"] == "b"
    found = read.matched(rows("x", "d", "c", "b", "a"), key, "data")
    texts = {part: [row.fields["text"] for row in items] for part, items in found.items()}
    assert texts == {"train": ["of a", "of b"], "selection": ["of c"], "test": ["of d"]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val": ("a",)}, r"names 1 id more than once, in one part or in two: 'a'"),
        ({"train": ("a", "a", "b", "b")}, r"names 2 ids more than once, in one part or in two: 'a', 'b'"),
        ({"counts": {"test": 2}}, r"split_manifest\.json declares 2 items of test, but test/ lists 1"),
        ({"counts": 4}, r"'counts' must be an object"),
        ({"train": ("a", " ")}, r"item 2: the field 'id' is blank"),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(manifest, changes, message):
    with pytest.raises(DataError, match=message):
        read_manifest(manifest(**changes))


@pytest.mark.parametrize(("text", "message"), [("{", "cannot be read as JSON"), ("[]", "must hold an object of facts")])
def test_facts_that_cannot_be_read_are_told_with_their_file(manifest, text, message):
    (manifest() / "split_manifest.json").write_text(text)
    with pytest.raises(DataError, match=rf"split_manifest\.json {message}"):
        read_manifest(manifest())


def test_a_folder_that_is_no_manifest_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no folder"):
        read_manifest(tmp_path / "none")
    (tmp_path / "train").mkdir()
    with pytest.raises(DataError, match="it holds no 'val' and no 'test'"):
        read_manifest(tmp_path)


def test_ids_that_the_source_lacks_are_counted_and_the_first_five_named(manifest):
    read = read_manifest(manifest(train=tuple("abcdefgh"), val=("i",), test=()))
    with pytest.raises(DataError) as caught:
        read.matched(rows("b", "i"), key, "the data set")
    assert "the data set lacks 7 ids of the 9" in str(caught.value)
    assert "'a', 'c', 'd', 'e', 'f' and 2 more." in str(caught.value)


def test_a_wanted_id_that_is_there_twice_is_refused_another_is_not(manifest):
    read = read_manifest(manifest())
    assert read.matched(rows("a", "b", "c", "d", "x", "x"), key, "data")
    with pytest.raises(DataError, match=r"holds 1 id of the split more than once: 'b' \(data, row 2 and data, row 5\)"):
        read.matched(rows("a", "b", "c", "d", "b"), key, "data")


def test_a_row_without_its_id_is_named(manifest):
    with pytest.raises(DataError, match=r"^data, row 2: the field 'key' is missing"):
        read_manifest(manifest()).matched([rows("a")[0], Item({"text": ""}, "data, row 2")], key, "data")


@pytest.mark.skipif(DATA is None, reason="SKILLOPT_TEST_DATA is not set")
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("searchqa", (400, 200, 1400)),
        ("docvqa", (107, 53, 374)),
        ("officeqa", (50, 24, 172)),
        ("livemathematicianbench", (35, 17, 125)),
        ("spreadsheetbench", (80, 40, 280)),
        ("alfworld", (39, 18, 134)),
    ],
)
def test_the_published_manifests_are_sound(name, counts):
    assert tuple(map(len, read_manifest(DATA / name / "manifest").parts.values())) == counts


def written(out, text="x", files=None):
    parts = {"train": [{"id": "a", "text": text}], "selection": [{"id": "b"}], "test": []}
    prepare_folder(out, replace=True)
    write_split("acme", out, parts, {"benchmark": "Acme"}, files)


def test_a_split_is_written_with_its_facts_and_how_to_train_on_it(tmp_path, capsys):
    out = tmp_path / "data" / "acme_split"
    written(out, "é", files=lambda folder: (folder / "pages").mkdir())
    assert [item.fields for item in read_items(out / "train" / "items.json")] == [{"id": "a", "text": "é"}]
    facts = json.loads((out / "split_manifest.json").read_text("utf-8"))
    assert facts == {"benchmark": "Acme", "counts": {"train": 1, "val": 1, "test": 0}}
    assert sorted(path.name for path in out.parent.iterdir()) == ["acme_split"]
    assert (out / "pages").is_dir()
    told = capsys.readouterr().out
    assert f"{out}: 1 train, 1 selection, 0 test tasks." in told
    assert f"skillopt train acme -o env.split_dir={out}" in told


def test_it_is_replaced_where_that_is_asked_for_and_nothing_else_is_touched(tmp_path):
    out = tmp_path / "split"
    written(out)
    (out / "notes.txt").write_text("mine")
    with pytest.raises(DataError, match=r"holds notes\.txt, split_manifest\.json, test and 2 more already.*--replace"):
        prepare_folder(out, replace=False)
    written(out, "new")
    assert "new" in (out / "train" / "items.json").read_text("utf-8")
    assert (out / "notes.txt").read_text() == "mine"


def test_what_fails_half_way_leaves_the_earlier_split_whole(tmp_path):
    out = tmp_path / "split"
    written(out)

    def fails(folder):
        raise DataError("no more pages")

    with pytest.raises(DataError, match="no more pages"):
        written(out, "new", files=fails)
    assert '"x"' in (out / "train" / "items.json").read_text("utf-8")
    assert [path.name for path in tmp_path.iterdir()] == ["split"]


def test_a_folder_that_is_something_else_is_never_written_to(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "work" / "train").mkdir(parents=True)
    with pytest.raises(DataError, match="is a file"):
        prepare_folder(tmp_path / "file", replace=True)
    with pytest.raises(DataError, match=r"holds train and no split_manifest\.json"):
        prepare_folder(tmp_path / "work", replace=True)
    for unnamed in (".", "..", "/"):
        with pytest.raises(DataError, match="names no folder that could be made"):
            prepare_folder(Path(unnamed), replace=True)


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match=r"cannot write .*file"):
        written(tmp_path / "file" / "split")


@click.command()
@split_options("acme", manifest="package:skillopt_lib_env/py.typed")
def command(out, manifest, replace):
    click.echo(f"{out.as_posix()} {manifest.name} {replace}")


def test_the_options_of_a_command_have_defaults_that_a_run_finds():
    def run(*words):
        return CliRunner().invoke(command, words, catch_exceptions=False).output

    assert run() == "data/acme_split py.typed False\n"
    assert run("--out", "o", "--manifest", "m/n", "--replace") == "o n True\n"
    assert "data/acme_split" in run("--help")
    with pytest.raises(ConfigError, match="--manifest: 'package:skillopt_lib_env/gone'"):
        run("--manifest", "package:skillopt_lib_env/gone")
