"""A program run to its end: in a session of its own, with a deadline that ends all that it has started.

What it says goes into files, not pipes: nothing blocks, no thread waits for it, and a grandchild that holds its output
open delays nobody. The prompt comes from a file, too, never from the command line.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal

from attrs import define, field, frozen
from skillopt_kernel.errors import PassingError

from skillopt_lib_agent.descendants import Descendant, descendants
from skillopt_lib_agent.guard import Guard
from skillopt_lib_agent.handing import handed_on

LOOK_AROUND = 0.1
"""Seconds between two looks at a program that runs."""

GRACE = 1.0
"""Seconds that a program has to end by itself once it was asked to."""

MOST_OUTPUT = 64_000_000
"""Bytes that a program may print."""

How = Literal["by itself", "deadline", "cancelled", "output"]


@frozen
class Finished:
    """How a program ended.

    code     its exit code; negative: the signal that ended it
    stdout   the file with what it printed; stderr: what it said there, its last 20,000 characters
    how      "by itself", or what it was ended for: "deadline", "cancelled" (see `Processes.close`), "output"
    """

    code: int
    stdout: Path
    stderr: str
    seconds: float
    how: How = "by itself"


@define(eq=False)
class Processes:
    """Runs programs, from many threads at once, and knows which ones run."""

    _running: set[subprocess.Popen[bytes]] = field(init=False, factory=set)
    _closed: threading.Event = field(init=False, factory=threading.Event)
    _guard: Guard = field(init=False, factory=Guard)
    _lock: Any = field(init=False, factory=threading.Lock)

    def run(
        self,
        command: Sequence[str],
        *,
        stdin: str,
        streams: Path,
        folder: Path,
        variables: Mapping[str, str],
        deadline: float,
        most_output: int = MOST_OUTPUT,
        handed: Mapping[str, str] | None = None,
        guarded: bool = False,
    ) -> Finished:
        """Run `command` in `folder` and wait for its end, and for that of all that it left behind.

        stdin     what it reads there, in UTF-8; streams: the folder for the files of its streams
        deadline  `time.monotonic()` seconds; guarded: it is ended as well when this process is killed
        handed    variable -> secret that is read from the pipe whose number the variable has (see `handing`)
        Raises `OSError` when it cannot be started.
        """
        began = time.monotonic()
        (streams / "stdin").write_bytes(stdin.encode("utf-8", "replace"))
        with contextlib.ExitStack() as files:
            names = (("stdin", "rb"), ("stdout", "wb"), ("stderr", "wb"))
            read, out, said = (files.enter_context((streams / name).open(mode)) for name, mode in names)
            numbers, pipes = files.enter_context(handed_on(handed or {}))
            process = self._start(command, read, out, said, folder, {**variables, **numbers}, pipes)
        try:
            if guarded:
                self._guard.begins(process.pid)
            how = self._wait(process, streams, deadline, most_output)
        finally:
            self._end(process)
        stderr = _last_text(streams / "stderr", 20_000)
        return Finished(process.returncode, streams / "stdout", stderr, time.monotonic() - began, how)

    def close(self) -> None:
        """End whatever runs; its `run` returns "cancelled". Nothing can be started any more."""
        self._closed.set()

    def _start(
        self,
        command: Sequence[str],
        read: Any,
        out: Any,
        said: Any,
        folder: Path,
        variables: Mapping[str, str],
        pipes: Sequence[int],
    ) -> subprocess.Popen[bytes]:
        if self._closed.is_set():
            raise PassingError("the run is over, and its programs are ended")
        process = subprocess.Popen(
            list(command),
            stdin=read,
            stdout=out,
            stderr=said,
            cwd=folder,
            env=dict(variables),
            pass_fds=pipes,
            start_new_session=os.name == "posix",
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
        )
        with self._lock:
            self._running.add(process)
        return process

    def _wait(self, process: subprocess.Popen[bytes], streams: Path, deadline: float, most_output: int) -> How:
        with _exit_watch(process) as has_ended:
            while not has_ended(min(LOOK_AROUND, max(0.0, deadline - time.monotonic()))):
                if self._closed.is_set():
                    return "cancelled"
                if time.monotonic() >= deadline:
                    return "deadline"
                if sum((streams / name).stat().st_size for name in ("stdout", "stderr")) > most_output:
                    return "output"
        return "by itself"

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        """End the program's group and what left it; first with a request, then for good."""
        try:
            end_all(process, self._guard.ended)
        finally:
            with self._lock:
                self._running.discard(process)


def end_all(process: subprocess.Popen[bytes], before: Callable[[int], None] = lambda _: None) -> None:
    """End a program with all that it has started, and take its exit code; `before` that is told its number.

    The group is ended before the exit code is taken: as long as that waits, the group's number belongs to nobody else.
    """
    if os.name != "posix":
        subprocess.run(["taskkill", "/F", "/T", "/PID", str(process.pid)], capture_output=True, check=False)
        process.wait()
        return
    left: set[Descendant] = set()
    with _exit_watch(process) as has_ended:
        if not has_ended(0.0):  # the children of what has ended are nobody's any more
            left = descendants(process.pid)
            _signal_group(process.pid, signal.SIGTERM)
            has_ended(GRACE)
            left |= descendants(process.pid)
    _signal_group(process.pid, signal.SIGKILL)
    for one in left:
        one.kill()
    before(process.pid)
    process.wait()


def _signal_group(number: int, with_signal: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(number, with_signal)


@contextlib.contextmanager
def _exit_watch(process: subprocess.Popen[bytes]) -> Iterator[Any]:
    """A function that waits so many seconds for the program's end, and says whether it has come.

    Where the system can tell of an end without the exit code being taken, it is left.
    """
    try:
        watched = os.pidfd_open(process.pid)  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError):

        def by_asking(seconds: float) -> bool:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
            return process.returncode is not None

        yield by_asking
        return
    try:
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        yield lambda seconds: process.returncode is not None or bool(poll.poll(seconds * 1000))
    finally:
        os.close(watched)


def _last_text(path: Path, length: int) -> str:
    with path.open("rb") as file:
        _seek_back(file, 4 * length)
        return file.read().decode("utf-8", "replace")[-length:]


def _seek_back(file: BinaryIO, most: int) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - most))
