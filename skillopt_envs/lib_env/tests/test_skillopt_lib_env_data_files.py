"""Data files: every form that is read, and an error with its place for every one that is not."""

import json
import os
from pathlib import Path

import pytest
from skillopt_kernel.errors import DataError
from skillopt_lib_env.data_files import Item, data_file_in, read_items

TWO = [{"id": "a"}, {"id": "b"}]


def written(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.json", json.dumps(TWO)),
        ("d.json", json.dumps(TWO, indent=2)),
        ("d.json", json.dumps({"data": TWO, "version": 1})),
        ("d.json", json.dumps({"a": {}, "b": {}})),
        ("d.json", json.dumps({"first": {"id": "a"}, "second": {"id": "b"}})),
        ("d.json", '{"id": "a"}\n{"id": "b"}\n'),
        ("d.jsonl", '{"id": "a"}\n\n{"id": "b"}'),
        ("d.jsonl", '{"id": "a"}\r\n{"id": "b"}\r\n'),
        ("d.ndjson", '{"id": "a"}\n{"id": "b"}\n'),
        ("d.csv", "id\na\nb\n"),
        ("d.CSV", "id\r\na\r\n\r\nb\r\n"),
        ("d.jsonl", b'\xef\xbb\xbf{"id": "a"}\n{"id": "b"}\n'),  # O-D2
        ("d.json", b"\xef\xbb\xbf" + json.dumps(TWO).encode()),
        ("d.csv", b"\xef\xbb\xbfid\na\nb\n"),
        ("d.csv", 'id\n""\n  \na\n"\t"\nb\n'),
        ("d.csv", "id,, \na,,\n,,\nb, ,\n"),  # columns and rows that spreadsheets write beside the table
        ("d.tsv", "id\na\nb\n"),
        ("d.tsv", "id\t\na\t\nb\t\n"),
        ("d.txt", '{"id": "a"}\n{"id": "b"}\n'),
        ("d", json.dumps(TWO)),
    ],
)
def test_two_items_are_read(tmp_path, name, content):
    assert [dict(item.fields) for item in read_items(written(tmp_path, name, content))] == TWO


@pytest.mark.parametrize("name", ["d.jsonl", "d.json"])
def test_o_d1_one_line_is_one_item(tmp_path, name):
    path = written(tmp_path, name, '{"id":"t1","question":"2+2?","answer":"4"}\n')
    (item,) = read_items(path)
    assert item.fields == {"id": "t1", "question": "2+2?", "answer": "4"}


def test_a_line_of_json_lines_ends_with_a_newline_only(tmp_path):
    path = written(tmp_path, "d.jsonl", json.dumps({"id": "a\u2028b\x85c"}, ensure_ascii=False) + "\n")
    assert [item.fields["id"] for item in read_items(path)] == ["a\u2028b\x85c"]
    path = written(tmp_path, "d.csv", 'id,text\na,"two\nlines, quoted"\nb,one\u2028line\n')
    assert [item.fields["text"] for item in read_items(path)] == ["two\nlines, quoted", "one\u2028line"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.json", "", r"d\.json: the file is empty"),
        ("d.csv", b"\xef\xbb\xbf \n", r"d\.csv: the file is empty"),
        ("d.json", '[\n {"id": "a"},\n {"id": }\n]', r"d\.json:3:9: the file is not valid JSON"),
        ("d.jsonl", '{"id": "a"}\n{"id": "b"', r"d\.jsonl:2:\d+: the file is not valid JSON"),
        ("d.json", '{"id": "a"}\n{"id": "b"', r"d\.json:2:\d+: the file is not valid JSON"),
        ("d.ndjson", "[1]", r"d\.ndjson: the file ends in \.ndjson, but holds a list"),
        ("d.jsonl", '{"id": "a"}\n\n[1]', r"d\.jsonl:3: each line must hold an object, not a list"),
        ("d.json", '[{"id": "a"}, 3]', r"d\.json, item 2: an item must be an object, not a number"),
        ("d.json", "[null]", r"item 1: an item must be an object, not null"),
        ("d.json", '"text"', r"d\.json: the file holds text; it should hold a list"),
        ("d.json", "[" * 100_000, r"d\.json:1: the JSON is nested too deeply"),
        ("d.json", b'[{"id": "caf\xe9"}]', r"d\.json:1: byte 12 is not UTF-8 \(0xe9\); save the file as UTF-8"),
        ("d.jsonl", '{"id": "a"}\n{"id": "\\ud83d"}', r"d\.jsonl:2: the text holds half a character .*\\ud83d"),
        ("d.csv", "id,text\na,b\nc\n", r"d\.csv:3: the row has 1 values, the header names 2 columns"),
        ("d.csv", "id,text\na,b,c\n", r"d\.csv:2: the row has 3 values"),
        ("d.csv", "id,id\na,b\n", r"d\.csv:1: every column needs a name of its own"),
        ("d.csv", "id,\na,\nb,c\n", r"d\.csv:3: column 2 has a value and no name in the header; every column needs"),
        ("d.csv", ",\na,b\n", r"d\.csv:1: every column needs a name of its own"),
        ("d.tsv", "id\ttext\na\tb\tc\n", r"d\.tsv:2: the row has 3 values, .* quotation marks around it"),
        ("d.txt", "id,text\na,b\n", r"d\.txt: the name does not say what the file is.* Rename it .*\.csv, \.tsv\."),
        ("d", "id,text\na,b\n", r"d: the name does not say what the file is"),
        ("d.jsonl", json.dumps(TWO, indent=2), r"d\.jsonl: the file ends in \.jsonl, but holds a list: .* \.json\."),
        ("d.csv", 'id,text\na,b\nc,"open\n', r"d\.csv:3: the row is not valid CSV"),
        ("d.csv", b"id\ncaf\xe9\n", r"d\.csv:2: byte 6 is not UTF-8"),
        ("d.csv", b"\xef\xbb\xbfid\ncaf\xe9\n", r"d\.csv:2: byte 9 is not UTF-8 \(0xe9\)"),
        ("d.csv", "id,text\na,b\n".encode("utf-16"), r"d\.csv:1: byte 0 .* looks like UTF-16; save the file as UTF-8"),
        ("d.csv", "id\na\n".encode("utf-16-le"), r"d\.csv:1: there is a NUL character"),
        ("d.csv", "id,text\na,b\0\n", r"d\.csv:2: there is a NUL character"),
        ("d.csv", "id,text\na," + "x" * 200_000 + "\n", r"d\.csv:2: .* more than 131,072 characters, .*quotation mark"),
        ("d.csv", 'id,text\na,"' + "x\n" * 100_000, r"d\.csv:2: .* more than 131,072 characters"),
        ("d.csv", "sep=;\n", r"d\.csv:2: every column needs a name of its own; the header is blank"),
        ("d.csv", "sep=;\nid;text\na;b\nc\n", r"d\.csv:4: the row has 1 values"),
        ("d.xlsx", b"PK\x03\x04", r"d\.xlsx: the file is a spreadsheet; save it as CSV \(UTF-8\)"),
        ("d.parquet", b"PAR1", r"d\.parquet: the file is in columns"),
        ("d.jsonl.gz", b"\x1f\x8b", r"d\.jsonl\.gz: the file is compressed; unpack it"),
    ],
)
def test_a_bad_file_is_an_error_with_its_place(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        read_items(written(tmp_path, name, content))


def test_a_whole_character_written_as_escapes_is_read(tmp_path):
    (item,) = read_items(written(tmp_path, "d.json", '[{"id": "\\ud83d\\ude00"}]'))
    assert item.fields["id"] == "\U0001f600"


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.json: the file cannot be read"):
        read_items(tmp_path / "none.json")
    with pytest.raises(DataError, match=r"is a folder; name the file in it that holds the data"):
        read_items(tmp_path)


def test_fields_are_taken_strictly_and_errors_name_the_item():
    item = Item({"id": 7, "question": "q", "answers": ["x", " ", 3], "one": "y", "flag": True, "blank": " "}, "f:3")
    assert item.text("id") == "7"
    assert item.text("context", "") == ""
    assert item.texts("answers") == ("x", "3")
    assert item.texts("one") == ("y",)
    for call, message in [
        (lambda: item.text("context"), "f:3: the field 'context' is missing; the fields given are 'id', 'question'"),
        (lambda: item.text("answers"), "f:3: the field 'answers' must be text, not a list"),
        (lambda: item.text("flag"), "f:3: the field 'flag' must be text, not true or false"),
        (lambda: item.required_text("blank"), "f:3: the field 'blank' is blank"),
        (
            lambda: Item({"answers": [None]}, "g:1").texts("answers"),
            "g:1: the list 'answers' must hold texts, not null",
        ),
    ]:
        with pytest.raises(DataError) as caught:
            call()
        assert str(caught.value).startswith(message)


def test_the_data_file_of_a_folder(tmp_path):
    with pytest.raises(DataError, match="there is no such folder"):
        data_file_in(tmp_path / "none")
    with pytest.raises(DataError, match=r"is neither a file nor a folder; .* save it as a file"):
        data_file_in(Path(os.devnull))
    with pytest.raises(DataError, match="holds no data file"):
        data_file_in(tmp_path)
    for name in ("b.csv", "c.jsonl", "b.json", "z.txt"):
        written(tmp_path, name, "[]")
        assert data_file_in(tmp_path).suffix in (".csv", ".jsonl", ".json")
    assert data_file_in(tmp_path).name == "b.json"
    with pytest.raises(DataError, match=r"several data files \(b\.json, c\.jsonl, b\.csv\); name the one"):
        data_file_in(tmp_path, single=True)
    assert data_file_in(written(tmp_path, "items.json", "[]").parent).name == "items.json"


@pytest.mark.parametrize(
    "content",
    [
        'id,text\na,"x; y"\n',
        "id;text\r\na;x; y\r\n".replace("x; y", '"x; y"'),
        "id\ttext\na\tx; y\n",
        'sep=;\r\nid;text\r\na;"x; y"\r\n',
        '\ufeff"sep=|"\nid|text\na|x; y\n',
    ],
)
def test_the_delimiter_is_seen_in_the_header(tmp_path, content):
    (item,) = read_items(written(tmp_path, "d.csv", content))
    assert item.fields == {"id": "a", "text": "x; y"}


def test_tsv_is_divided_by_tabs(tmp_path):
    (item,) = read_items(written(tmp_path, "d.tsv", "question, in short\tanswer\nIs it, or not?\tno\n"))
    assert item.fields == {"question, in short": "Is it, or not?", "answer": "no"}


def test_a_comma_stays_the_delimiter_where_another_sign_stands_in_a_name(tmp_path):
    (item,) = read_items(written(tmp_path, "d.csv", "id;old,text\na,b;c\n"))
    assert item.fields == {"id;old": "a", "text": "b;c"}


def test_the_longest_cell_that_is_read(tmp_path):
    (item,) = read_items(written(tmp_path, "d.csv", "id,text\na," + "x" * 131_072 + "\n"))
    assert len(item.fields["text"]) == 131_072
