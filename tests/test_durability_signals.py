"""A run that is told to stop, or whose terminal or reader goes away: it ends in order or goes on, and loses nothing."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from struck_runs import Struck

STATED = "Stopping: what is in flight is finished and saved."


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Struck:
    return Struck.make(tmp_path_factory.mktemp("signals"))


@pytest.fixture
def struck(made: Struck, request: pytest.FixtureRequest) -> Iterator[tuple[Struck, str]]:
    """The project, and the name of a run of this test alone."""
    yield made, "".join(c if c.isalnum() else "-" for c in request.node.name)
    made.happens("pass")


def heeding(number: int, how: signal.Handlers) -> Callable[[], None]:
    """What a process begins with: a shell or a supervisor may have had it ignore the signal."""

    def prepare() -> None:
        signal.signal(number, how)

    return prepare


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_the_run_in_order_and_the_same_command_goes_on(struck: tuple[Struck, str], name: str) -> None:
    made, out = struck
    number = getattr(signal, name)
    made.happens(f"os.kill(os.getpid(), signal.{name})")
    done = made.train(out, prepare=heeding(number, signal.SIG_DFL))
    assert done.code == 128 + number, done.err
    assert done.err.splitlines() == [
        f"{STATED} Ctrl-C again stops at once.",
        "Interrupted: the run was asked to stop; its state is saved. Run the same command again to go on.",
    ]
    made.goes_on(out)


@pytest.mark.parametrize(("second", "at_once"), [("SIGTERM", True), ("SIGINT", True), ("SIGHUP", False)])
def test_a_second_signal_stops_at_once_but_for_that_of_a_terminal(
    struck: tuple[Struck, str], second: str, at_once: bool
) -> None:
    made, out = struck
    made.happens(f"os.kill(os.getpid(), signal.SIGTERM); os.kill(os.getpid(), signal.{second})")
    done = made.train(out, prepare=heeding(signal.SIGHUP, signal.SIG_DFL))
    assert done.code == 128 + (getattr(signal, second) if at_once else signal.SIGTERM), done.err
    assert ("Stopped at once. Every finished attempt is saved" in done.err) == at_once
    assert "Traceback" not in done.err
    made.goes_on(out)


def test_case_o_r1_what_was_scored_before_a_stop_is_not_scored_again(struck: tuple[Struck, str]) -> None:
    """Stopped after one step: the start skill's scores, which the first gate rested on, are not paid for twice."""
    made, out = struck
    made.happens("os.kill(os.getpid(), signal.SIGTERM)")
    assert made.train(out, "-q").code == 143
    folder = made.project.folder / out
    before = (folder / "outcomes.jsonl").read_bytes()
    scored = {row["id"] for row in made.project.lines(folder / "outcomes.jsonl")}
    assert {item["id"] for item in made.project.json("data/val/items.json")} <= scored
    made.goes_on(out)
    assert (folder / "outcomes.jsonl").read_bytes().startswith(before)


def of_a_terminal(slave: int, how: signal.Handlers) -> Callable[[], None]:
    def prepare() -> None:
        signal.signal(signal.SIGHUP, how)
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)

    return prepare


@pytest.mark.parametrize(("how", "code"), [(signal.SIG_DFL, 129), (signal.SIG_IGN, 0)], ids=["plain", "nohup"])
def test_a_terminal_that_goes_away(struck: tuple[Struck, str], how: signal.Handlers, code: int) -> None:
    """The run ends in order; under `nohup` it goes on to its end, though nothing can be shown any more."""
    made, out = struck
    here, there, folder = *pty.openpty(), made.project.folder
    gone = "until(run.stop.is_set)" if code else "until(Path('gone').exists)"
    made.happens(f"Path('reached').touch(); {gone}")
    begun = made.start(
        "train", "mine.yaml", "--out", out, prepare=of_a_terminal(there, how), stdin=there, stdout=there, stderr=there
    )
    os.close(there)
    while not (folder / "reached").exists():
        os.read(here, 10_000)
    os.close(here)
    (folder / "gone").touch()
    assert begun.wait().code == code
    for name in ("reached", "gone"):
        (folder / name).unlink()
    assert (folder / out / "summary.json").exists() == (code == 0)
    made.goes_on(out)


# Where nobody reads, or nothing can be written ---------------------------------------------------------------


@pytest.fixture
def unread() -> Iterator[int]:
    """The end of a pipe for writing, of which nobody has the other."""
    reads, writes = os.pipe()
    os.close(reads)
    yield writes
    os.close(writes)


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_run_whose_reader_has_ended_goes_on_to_its_end(
    struck: tuple[Struck, str], unread: int, options: tuple[str, ...]
) -> None:
    made, out = struck
    done = made.train(out, *options, stdout=unread)
    assert (done.code, done.err) == (0, "")
    made.goes_on(out)


def test_a_run_whose_output_and_errors_nobody_reads_goes_on_to_its_end(struck: tuple[Struck, str], unread: int) -> None:
    made, out = struck
    assert made.train(out, stdout=unread, stderr=unread).code == 0
    made.goes_on(out)


def test_a_run_without_standard_output_goes_on_to_its_end(struck: tuple[Struck, str]) -> None:
    made, out = struck
    done = made.train(out, prepare=lambda: os.close(1))
    assert (done.code, done.err) == (0, "")
    made.goes_on(out)


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")


@needs_full
def test_output_that_cannot_be_written_is_told_once_and_ends_no_run(struck: tuple[Struck, str]) -> None:
    made, out = struck
    with Path("/dev/full").open("wb") as full:
        done = made.train(out, stdout=full)
    assert done.code == 0
    (line,) = done.err.splitlines()
    assert "'console' failed" in line and "cannot write the output: No space left on device" in line
    made.goes_on(out)


@needs_full
def test_a_listing_that_cannot_be_written_is_an_error_and_one_that_nobody_reads_is_none(
    made: Struck, unread: int
) -> None:
    with Path("/dev/full").open("wb") as full:
        done = made.start("calls", "unbroken", "--list", stdout=full).wait()
    assert done.code == 2
    assert done.err == (
        "Error: cannot write the output: No space left on device. Free the space, or send it somewhere else.\n"
    )
    done = made.start("calls", "unbroken", "--list", stdout=unread).wait()
    assert (done.code, done.err) == (0, "")


def test_what_a_display_has_left_unwritten_is_no_error_of_the_command(
    unread: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # with it nothing is held back
    code = (
        "import click, sys; from skillopt_kernel.cli.main import run_command as run; "
        "sys.exit(run(click.Command('c', callback=lambda: print(end='held back')), []))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=unread, check=False).returncode == 0
