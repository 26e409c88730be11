"""Files as a crash of the machine leaves them: torn, empty, ending in zeros or in rubbish. Each resumed, or told."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from killed_runs import Place, decided, differences, run_until
from skillopt_kernel import train
from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.models.ledger import Ledger
from skillopt_testkit.project import KINDS, Project, question
from small_worlds import two_rules_a_kind

Damage = Callable[[Path], object]
PLACE = Place("gate", "before", 3)
"""In the third of four steps: something is committed, and something is not."""


@frozen
class Killed:
    """A run `killed` at `PLACE`, each of whose tests gets a copy, and what an unbroken one decided."""

    config: Path
    expected: dict[str, Any]

    def copy(self, out: Path) -> Path:
        shutil.copytree(self.config.parent / "killed", out)
        return out


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    folder = tmp_path_factory.mktemp("damage")
    project = Project.make(folder)
    for split, count in (("train", 8), ("val", 6), ("test", 4)):
        items = [question(list(KINDS)[number % 4], number) for number in range(count)]
        for item in items:
            item["id"] = f"größe→{split}-{item['id']}"  # two and three bytes that can be torn apart
        project.write(f"data/{split}/items.json", json.dumps(items))
    project.write("world.yaml", two_rules_a_kind("{insight: 1.0, harmful: 0.0, distractors: 0.5}"))
    settings = {"_base_": "config.yaml", "train": {"num_epochs": 2, "batch_size": 4}}
    config = project.write("mine.yaml", json.dumps(settings))
    run_until(config, folder / "unbroken")
    run_until(config, folder / "killed", PLACE)
    return Killed(config, decided(folder / "unbroken"))


def torn_in_a_character(path: Path) -> None:
    data = path.read_bytes()
    at = data.rfind("→".encode())
    assert at > 0
    path.write_bytes(data[: at + 1])


def whole_and_last(path: Path) -> tuple[bytes, bytes]:
    data = path.read_bytes()
    at = data.rstrip(b"\n").rfind(b"\n") + 1
    return data[:at], data[at:]


def half_a_line(path: Path) -> None:
    whole, last = whole_and_last(path)
    path.write_bytes(whole + last[: len(last) // 2])


def zeros_for_a_line(path: Path) -> None:
    whole, last = whole_and_last(path)
    path.write_bytes(whole + bytes(len(last)))


def rubbish_in_the_middle(path: Path) -> None:
    first, newline, rest = path.read_bytes().partition(b"\n")
    path.write_bytes(first + newline + b"\xff\xfe{\n\0\0\n[1]\n" + rest)


DAMAGES: dict[str, Damage] = {
    "half a line": half_a_line,
    "half a character": torn_in_a_character,
    "no newline": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "zeros at the end": lambda path: path.write_bytes(path.read_bytes() + bytes(10_000)),
    "zeros for a line": zeros_for_a_line,
    "zeros and a newline": lambda path: path.write_bytes(path.read_bytes() + bytes(4096) + b"\n"),
    "rubbish": lambda path: path.write_bytes(path.read_bytes() + bytes(range(256)) * 3),
    "rubbish in the middle": rubbish_in_the_middle,
    "empty": lambda path: path.write_bytes(b""),
    "gone": Path.unlink,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_files_that_grow_are_taken_up_after_their_last_whole_line(killed: Killed, tmp_path: Path, damage: str) -> None:
    """What was lost of the outcomes is asked again, from the ledger; nothing is decided otherwise."""
    out = killed.copy(tmp_path / "run")
    for name in ("outcomes.jsonl", "events.jsonl"):
        DAMAGES[damage](out / name)
    train(killed.config, out=out)
    assert not differences(out, killed.expected)
    ledger = Ledger(out / "calls.sqlite", read_only=True)
    asked = [(call["role"], call["scope"], call["ordinal"]) for call in ledger.calls()]
    ledger.close()
    assert len(asked) == len(set(asked)), "a call was made again"
    if "rubbish" not in damage and damage != "zeros and a newline":  # what has newlines stays, and is passed over
        for name in ("outcomes.jsonl", "events.jsonl"):
            assert all(json.loads(line) for line in (out / name).read_text("utf-8").splitlines())


def log_torn(run: Path) -> None:
    data = (run / "calls.sqlite-wal").read_bytes()
    (run / "calls.sqlite-wal").write_bytes(data[: len(data) // 2 + 17])


def log_ends_in_zeros(run: Path) -> None:
    data = (run / "calls.sqlite-wal").read_bytes()
    (run / "calls.sqlite-wal").write_bytes(data[:-5000] + bytes(5000))


def removed(run: Path, pattern: str) -> None:
    for path in run.glob(pattern):
        path.unlink()


WAL: dict[str, Damage] = {
    "log torn": log_torn,
    "log ends in zeros": log_ends_in_zeros,
    "log is rubbish": lambda run: (run / "calls.sqlite-wal").write_bytes(bytes(range(256)) * 100),
    "log is empty": lambda run: (run / "calls.sqlite-wal").write_bytes(b""),
    "index is rubbish": lambda run: (run / "calls.sqlite-shm").write_bytes(bytes(range(256)) * 128),
    "log and index are gone": lambda run: removed(run, "calls.sqlite-*"),
    "all are gone": lambda run: removed(run, "calls.sqlite*"),
}


@pytest.mark.parametrize("damage", WAL)
def test_a_ledger_whose_log_is_torn_goes_on_with_the_calls_that_are_whole(
    killed: Killed, tmp_path: Path, damage: str
) -> None:
    out = killed.copy(tmp_path / "run")
    assert (out / "calls.sqlite-wal").stat().st_size > 10_000
    WAL[damage](out)
    train(killed.config, out=out)
    assert not differences(out, killed.expected)


def test_a_ledger_that_is_damaged_is_told_and_the_run_goes_on_without_it(killed: Killed, tmp_path: Path) -> None:
    out = killed.copy(tmp_path / "run")
    (out / "calls.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(RunDirectoryError, match=r"calls\.sqlite is damaged .* move it away: the run goes on without"):
        train(killed.config, out=out)
    for path in out.glob("calls.sqlite*"):
        path.rename(tmp_path / path.name)
    train(killed.config, out=out)
    assert not differences(out, killed.expected)


# Files that are replaced ----------------------------------------------------------------------------------------

CURE = {
    "fingerprint.json": r"is not valid JSON .* restore it, or start again with --fresh",
    "runtime_state.json": r"is not valid JSON .* restore it, or start again with --fresh",
    "history.json": r"is not valid JSON .* restore it, or start again with --fresh",
    "skills/skill_v0000.md": r"differs from the one to be saved now\. It was changed from outside; restore it",
    "skills/skill_v0001.md": r"the saved state names this skill, and it was changed since\. Restore the file",
    "skills/skill_v0002.md": r"the saved state names this skill, and it was changed since\. Restore the file",
}
"""File -> the pattern of what is said of it when it is empty."""


@pytest.mark.parametrize("name", CURE)
def test_an_empty_file_where_one_was_replaced_is_told_and_never_taken_for_a_beginning(
    killed: Killed, tmp_path: Path, name: str
) -> None:
    out = killed.copy(tmp_path / "run")
    before = (out / name).read_bytes()
    (out / name).write_bytes(b"")
    kept = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(RunDirectoryError, match=f"{Path(name).name}.*{CURE[name]}"):
        train(killed.config, out=out)
    for path in (out / "runtime_state.json", out / "history.json", out / "outcomes.jsonl"):
        assert path.read_bytes() == kept[path], "what was saved stays as it is"
    (out / name).write_bytes(before)
    train(killed.config, out=out)
    assert not differences(out, killed.expected)


REMADE = ("config.json", "best_skill.md", "steps/step_0003/merged_patch.json", "steps/step_0003/rollout/results.jsonl")


def test_an_empty_file_that_nothing_rests_on_is_made_again(killed: Killed, tmp_path: Path) -> None:
    out = killed.copy(tmp_path / "run")
    for name in REMADE:
        (out / name).write_bytes(b"")
    train(killed.config, out=out)
    assert not differences(out, killed.expected)


def test_an_empty_summary_is_told_and_made_again_without_a_call(killed: Killed, tmp_path: Path) -> None:
    out = killed.copy(tmp_path / "run")
    train(killed.config, out=out)
    outcomes = (out / "outcomes.jsonl").read_bytes()
    (out / "summary.json").write_bytes(b"")
    with pytest.raises(RunDirectoryError, match=r"summary\.json.* is not valid JSON"):
        train(killed.config, out=out)
    (out / "summary.json").unlink()
    train(killed.config, out=out)
    assert not differences(out, killed.expected)
    assert (out / "outcomes.jsonl").read_bytes() == outcomes
