"""Events: in order, numbered without gaps over resumes, free of secrets, and no observer holds anything up."""

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.event_log import EVENTS, EventLog
from skillopt_kernel.store.events import Event
from skillopt_kernel.store.files import read_lines
from skillopt_kernel.store.redaction import MARKER, Redactor


def lines(folder: Path) -> list[dict[str, Any]]:
    return [row for _, row in read_lines(folder / "events.jsonl")]


def emit_25(log: EventLog) -> None:
    for _ in range(25):
        log.emit("attempt_finished", step=2, hard=0.5)


def test_events_are_written_and_then_delivered_in_order_from_many_threads(tmp_path: Path) -> None:
    delivered: list[Event] = []

    def deliver(event: Event) -> None:
        assert any(f'"seq": {event.seq},' in line for line in (tmp_path / "events.jsonl").read_text().splitlines())
        delivered.append(event)

    with closing(EventLog(tmp_path, "run-1", deliver)) as log:
        threads = [threading.Thread(target=emit_25, args=(log,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        log.flush()
        assert len(delivered) == 100
    assert [event.seq for event in delivered] == list(range(1, 101))
    assert lines(tmp_path) == [json.loads(json.dumps(event.as_json())) for event in delivered]
    first = lines(tmp_path)[0]
    assert {key: first[key] for key in ("v", "seq", "event", "run", "step", "hard")} == {
        "v": 1, "seq": 1, "event": "attempt_finished", "run": "run-1", "step": 2, "hard": 0.5,
    }  # fmt: skip
    assert first["time"].endswith("Z")
    assert not first.keys() & {"epoch", "stage"}


def test_a_resumed_run_goes_on_with_the_number_whatever_was_torn(tmp_path: Path) -> None:
    with closing(EventLog(tmp_path, "run")) as log:
        for number in range(3):
            log.emit("step_started", step=number)
    whole = (tmp_path / "events.jsonl").read_bytes()
    last = whole.rstrip().rfind(b"\n") + 1
    for cut in (*range(last, len(whole), 7), len(whole)):
        (tmp_path / "events.jsonl").write_bytes(whole[:cut])
        with closing(EventLog(tmp_path, "run")) as log:
            log.emit("step_finished")
        assert [row["seq"] for row in lines(tmp_path)] == ([1, 2, 3, 4] if cut == len(whole) else [1, 2, 3])


def test_a_long_file_is_taken_up_from_its_end(tmp_path: Path) -> None:
    line = json.dumps({"v": 1, "seq": 77, "event": "model_called", "padding": "x" * 1000}) + "\n"
    (tmp_path / "events.jsonl").write_text(line * (64_000_000 // len(line)))
    began = time.monotonic()
    with closing(EventLog(tmp_path, "run")) as log:
        seconds = time.monotonic() - began
        log.emit("run_started")
    assert seconds < 2
    with (tmp_path / "events.jsonl").open("rb") as handle:
        handle.seek(-200, 2)
        assert b'"seq": 78,' in handle.read()


def test_no_secret_and_no_odd_value_reaches_the_file(tmp_path: Path) -> None:
    delivered: list[Event] = []
    data: dict[str, Any] = {
        "message": "401: Authorization: Bearer abc123def456ghi789",
        "key": {"my-credential-1": ["x my-credential-1", 1, None, True]},
        "score": float("nan"),
        "bound": float("inf"),
        "folder": Path("steps") / "step_0001",
        "kinds": ("a", "b"),
        "error": ValueError("my-credential-1"),
    }
    with closing(EventLog(tmp_path, "run", delivered.append, Redactor(["my-credential-1"]))) as log:
        log.emit("run_failed", **data)
    row = lines(tmp_path)[0]
    assert row["message"] == f"401: Authorization: Bearer {MARKER}"
    assert row["key"] == {MARKER: [f"x {MARKER}", 1, None, True]}
    assert (row["score"], row["bound"], row["folder"], row["kinds"]) == (None, None, "steps/step_0001", ["a", "b"])
    assert row["error"] == MARKER
    assert delivered[0].data["error"] == MARKER


def test_what_every_event_has_is_not_replaced_by_its_data(tmp_path: Path) -> None:
    with closing(EventLog(tmp_path, "run")) as log:
        log.emit("step_started", seq=5, run="another", text="kept")
    row = lines(tmp_path)[0]
    assert (row["seq"], row["run"], row["text"]) == (1, "run", "kept")


def test_an_observer_that_raises_is_told_once_and_stops_nothing(tmp_path: Path) -> None:
    delivered: list[int] = []

    def deliver(event: Event) -> None:
        if event.seq == 1:
            raise RuntimeError("the tracker is down")
        delivered.append(event.seq)

    log = EventLog(tmp_path, "run", deliver)
    log.emit("a")
    log.emit("b")
    with pytest.raises(RuntimeError, match="the tracker is down"):
        log.flush()
    log.flush()
    log.close()
    assert delivered == [2]
    assert len(lines(tmp_path)) == 2


def test_a_slow_observer_holds_nobody_up(tmp_path: Path) -> None:
    go_on = threading.Event()

    def deliver(event: Event) -> None:
        go_on.wait(60)

    log = EventLog(tmp_path, "run", deliver)
    began = time.monotonic()
    for _ in range(500):
        log.emit("attempt_started")
    assert time.monotonic() - began < 50
    go_on.set()
    log.close()
    assert len(lines(tmp_path)) == 500


def test_an_observer_may_emit_and_flush(tmp_path: Path) -> None:
    def deliver(event: Event) -> None:
        if event.name == "a":
            log.emit("b")
            log.flush()

    log = EventLog(tmp_path, "run", deliver)
    log.emit("a")
    log.flush()
    log.close()
    log.close()
    log.emit("after the end")
    log.flush()
    assert [row["event"] for row in lines(tmp_path)] == ["a", "b"]


def test_a_log_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunDirectoryError, match="cannot write"):
        EventLog(tmp_path / "file", "run")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_log_on_a_full_disk_ends_the_work_and_not_only_the_run(tmp_path: Path) -> None:
    """What comes after the line that could not be written is refused, so that nothing goes on unseen."""
    (tmp_path / EVENTS).symlink_to("/dev/full")
    log = EventLog(tmp_path, "run")
    with pytest.raises(RunDirectoryError, match=r"cannot write .*events\.jsonl"):
        while True:
            log.emit("attempt_started")
    with pytest.raises(RunDirectoryError, match="cannot write"):
        log.close()


EMITTING = """
import sys
from pathlib import Path
from skillopt_kernel.store.event_log import EventLog
log = EventLog(Path(sys.argv[1]), "run", lambda event: print(event.seq, flush=True))
while True:
    log.emit("attempt_finished", text="x" * 500)
    log.flush()
"""


def test_what_was_delivered_is_in_the_file_after_a_kill(tmp_path: Path) -> None:
    for number in (1, 2):
        process = subprocess.Popen([sys.executable, "-c", EMITTING, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(40)]
        process.send_signal(signal.SIGKILL)
        said += [line for line in process.communicate()[0].splitlines(keepends=True) if line.endswith("\n")]
        numbers = [row["seq"] for row in lines(tmp_path)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert numbers[-1] >= int(said[-1])
        assert int(said[0]) == 1 or number == 2
