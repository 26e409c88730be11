"""Files written whole or not at all, names that are safe, journals that tolerate a torn line."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.files import (
    Journal,
    json_line,
    last_lines,
    read_json,
    read_lines,
    read_text,
    safe_name,
    write_bytes,
    write_json,
    write_text,
)


@pytest.mark.parametrize("identifier", ["q1", "sb_train-0012", "a.b", "x" * 80])
def test_a_safe_identifier_is_its_own_name(identifier: str) -> None:
    assert safe_name(identifier) == identifier


@pytest.mark.parametrize(
    "identifier",
    [
        "", ".", "..", "...", "a/b", "../../etc/passwd", "C:\\x", "nul", "NUL", "con.txt", "Com1", "lpt9.log", "a b",
        "trailing.", ".hidden", "名前", "x" * 81, "a\0b", "new\nline", "\ud800", "/" * 500,
    ],
)  # fmt: skip
def test_any_other_identifier_gets_a_safe_name_with_six_hex_digits(identifier: str, tmp_path: Path) -> None:
    name = safe_name(identifier)
    assert 0 < len(name) <= 80
    assert set(name) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
    assert name.strip(".") == name
    assert name.split(".")[0].lower() not in {"con", "nul", "com1", "lpt9"}
    int(name[-6:], 16)
    (tmp_path / name).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_identifiers_that_differ_only_where_something_is_replaced_get_different_names() -> None:
    assert len({safe_name(text) for text in ("a b", "a_b", "a/b", "a\tb", "a__b")}) == 5


def test_files_are_private_and_newlines_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.md"
    write_text(path, "ä\r\nb\n")
    assert path.read_bytes() == b"\xc3\xa4\r\nb\n"
    assert read_text(path) == "ä\r\nb\n"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.md"]
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_half_a_surrogate_pair_survives_in_json_and_does_not_stop_a_text(tmp_path: Path) -> None:
    write_json(tmp_path / "value.json", {"text": "a\ud800b", "more": "é"})
    assert read_json(tmp_path / "value.json") == {"text": "a\ud800b", "more": "é"}
    write_text(tmp_path / "text.md", "a\ud800b")
    assert read_text(tmp_path / "text.md") == "a?b"


def test_a_value_that_json_has_not_is_refused_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    write_json(path, [1])
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, [float("nan")])
    assert read_json(path) == [1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1,\n "b": }', r"value\.json: this is not valid JSON \(.*line 2 "),
        (b"", r"value\.json: this is not valid JSON \(.*line 1 "),
        (b"\xff", r"value\.json: .* byte 0xff in position 0"),
        (b"[" * 200_000, r"value\.json: this is not valid JSON"),
        (b"9" * 5000, r"value\.json: this is not valid JSON"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "value.json").write_bytes(content)
    with pytest.raises(RunDirectoryError, match=message):
        read_json(tmp_path / "value.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match=r"gone\.json: No such file"):
        read_json(tmp_path / "gone.json")


def test_a_file_in_the_place_of_a_folder_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "steps").write_text("")
    with pytest.raises(
        RunDirectoryError, match=r"cannot write .*: (Not a directory|File exists)\. .*move what is in the way"
    ):
        write_text(tmp_path / "steps" / "step_0001" / "x.md", "text")


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_a_read_only_folder_is_said_in_a_sentence(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RunDirectoryError, match=r"Permission denied. .*correct the permissions"):
        write_text(tmp_path / "x.md", "text")


REPLACING = """
import sys
from pathlib import Path
from skillopt_kernel.store.files import write_json
path, number = Path(sys.argv[1]), 0
while True:
    number += 1
    write_json(path, {"number": number, "padding": str(number % 10) * 200_000})
    if number == 1:
        print("begun", flush=True)
"""


def test_a_file_that_is_replaced_is_whole_after_a_kill_at_any_moment(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    for wait in (0.0, 0.003, 0.011):
        process = subprocess.Popen([sys.executable, "-c", REPLACING, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(wait)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        value = read_json(path)
        assert value["padding"] == str(value["number"] % 10) * 200_000


def test_a_journal_torn_at_any_byte_goes_on_after_its_last_whole_line(tmp_path: Path) -> None:
    lines = [json_line({"number": number, "text": "ä\n\u2028" * number}) for number in range(3)]
    whole = b"".join(lines)
    path = tmp_path / "journal.jsonl"
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        complete = sum(len(b"".join(lines[: count + 1])) <= cut for count in range(3))
        assert [row["number"] for _, row in read_lines(path)] == list(range(complete))
        assert [row["number"] for row in last_lines(path, 2)] == list(range(complete))[-2:]
        journal = Journal(path)
        offset = journal.append(json_line({"number": 99}))
        journal.close()
        assert offset == len(b"".join(lines[:complete]))
        assert [row["number"] for _, row in read_lines(path)] == [*range(complete), 99]


def test_a_damaged_line_in_the_middle_is_passed_over_with_its_number(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(b'{"a": 1}\n{"a": \x00\x00\n[3]\n{"a": 4}\n')
    assert [row for _, row in read_lines(path)] == [{"a": 1}, {"a": 4}]
    assert "journal.jsonl:2: a damaged line" in caplog.text


def test_the_end_of_a_long_file_is_found_in_blocks(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    line = json_line({"text": "x" * 150_000})
    path.write_bytes(line * 3 + b'{"torn": "' + b"y" * 300_000)
    journal = Journal(path)
    journal.close()
    assert journal.size == path.stat().st_size == 3 * len(line)
    assert last_lines(path, 2) == [json.loads(line)] * 2
    assert len(last_lines(path, 9)) == 3
    assert last_lines(path, 0) == []


FULL = """
import resource, sys
from pathlib import Path
from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.files import Journal, json_line, write_bytes
path = Path(sys.argv[1])
journal = Journal(path)
journal.append(json_line({"number": 0}))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
for action in (lambda: journal.append(json_line({"text": "x" * 2000})), lambda: write_bytes(path, b"x" * 2000)):
    try:
        action()
    except RunDirectoryError as error:
        print(error)
journal.append(json_line({"number": 1}))
"""


def test_a_file_that_cannot_grow_keeps_whole_lines_and_the_error_is_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    result = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True)
    assert result.stdout.count(f"cannot write {path}: ") == 2
    assert "run the same command again" in result.stdout
    assert [row for _, row in read_lines(path)] == [{"number": 0}, {"number": 1}]
    assert [entry.name for entry in tmp_path.iterdir()] == ["journal.jsonl"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY  # the limit was the child's own


UTF8 = """
import sys
from contextlib import closing
from pathlib import Path
from skillopt_kernel.store.event_log import EventLog
from skillopt_kernel.store.files import read_text, write_json, write_text
folder = Path(sys.argv[1])
write_text(folder / "a.md", "\\u2192 \\u540d\\u524d\\n")
write_json(folder / "a.json", "\\u2192 \\u540d\\u524d")
with closing(EventLog(folder, "run")) as log:
    log.emit("step_started", text="\\u2192 \\u540d\\u524d")
assert read_text(folder / "a.md") == "\\u2192 \\u540d\\u524d\\n"
"""


def test_case_o_w1_files_are_utf8_whatever_console_and_locale_say(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "PYTHONIOENCODING": "cp1252",
        "LC_ALL": "C",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
    subprocess.run([sys.executable, "-c", UTF8, str(tmp_path)], env=environment, check=True)
    for name in ("a.md", "a.json", "events.jsonl"):
        assert "→ 名前" in (tmp_path / name).read_text(encoding="utf-8")


def test_writing_twice_replaces(tmp_path: Path) -> None:
    write_bytes(tmp_path / "x", b"1")
    write_bytes(tmp_path / "x", b"2")
    assert (tmp_path / "x").read_bytes() == b"2"
