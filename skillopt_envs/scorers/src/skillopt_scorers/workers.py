"""Processes that wait for work: a line for each job, a line for its result, and an end for one that takes too long."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from attrs import define, field
from skillopt_lib_env.children import kill_group

_SECONDS_TO_END = 10.0


class WorkerEnded(Exception):
    """A process gave no result: it was killed after so many `seconds`, or (0) ended by itself with `code`."""

    def __init__(self, code: int, seconds: float) -> None:
        self.code, self.seconds = code, seconds
        super().__init__(f"ran out of {seconds:g} seconds" if seconds else f"ended with code {code}")


Between = Callable[[bytes], bytes | None]


def _is_result(line: bytes) -> bytes | None:
    return None


class Pool:
    """Processes of one module, at most `most` at work at the same time; one that fails is replaced by the next job.

    first    a line that each is sent when it starts; empty: none
    greeted  called with its reply, which it has `patience` seconds for; raises where it cannot be used
    quiet    whether what it writes to its errors is thrown away, else it stands among those of this process
    """

    def __init__(
        self,
        module: str,
        environment: Mapping[str, str] | None,
        most: int,
        *,
        first: bytes = b"",
        greeted: Callable[[bytes], None] = lambda _: None,
        patience: float = 0.0,
        quiet: bool = True,
    ) -> None:
        # -P: a file in the working directory must not stand in for a library.
        self._command = [sys.executable, "-P", "-m", module]
        self._environment, self._errors = environment, subprocess.DEVNULL if quiet else None
        self._first, self._greeted, self._patience = first, greeted, patience
        self._room = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._closed = False

    def ask(self, job: bytes, seconds: float, between: Between = _is_result) -> bytes:
        """The line with the result of a job, which is a line as well. Raises `WorkerEnded`.

        between  what is sent back for a line that is no result yet, `None` for the result; it does not count as time
        """
        with self._room:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            worker = worker or self._started()
            try:
                line = worker.ask(job, seconds, between)
            except BaseException:
                worker.end(at_once=True)
                raise
            self._keep(worker)
            return line

    def start(self) -> None:
        """Start one process, so that what it cannot do is known. Raises `WorkerEnded`, and what `greeted` raises."""
        self._keep(self._started())

    def _keep(self, worker: _Worker) -> None:
        with self._lock:
            keep = not self._closed
            if keep:
                self._idle.append(worker)
        if not keep:
            worker.end()

    def close(self) -> None:
        """End the processes that wait."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def _started(self) -> _Worker:
        child = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
            env=None if self._environment is None else dict(self._environment), start_new_session=True,
        )  # fmt: skip
        worker = _Worker(child)
        if self._first:
            try:
                self._greeted(worker.ask(self._first, self._patience))
            except BaseException:
                worker.end(at_once=True)
                raise
        return worker


@define(eq=False)
class _Worker:
    child: subprocess.Popen[bytes]
    late: threading.Event = field(factory=threading.Event)

    def ask(self, job: bytes, seconds: float, between: Between = _is_result) -> bytes:
        left = seconds
        while True:
            began = time.monotonic()
            line = self._reply(job, left)
            left -= time.monotonic() - began
            answer = between(line) if line.endswith(b"\n") else None
            if answer is not None:
                job = answer
            elif line.endswith(b"\n"):
                return line
            else:
                raise WorkerEnded(self.end(), seconds if self.late.is_set() else 0.0)

    def _reply(self, sent: bytes, seconds: float) -> bytes:
        """The next line; none, or a part of one, from a process that has ended."""
        assert self.child.stdin and self.child.stdout
        clock = threading.Timer(max(seconds, 0.0), self._give_up)
        clock.daemon = True
        clock.start()
        line = b""
        try:
            self.child.stdin.write(sent)
            self.child.stdin.flush()
            line = self.child.stdout.readline()
        except OSError:  # it ended before it had read the line
            pass
        finally:
            clock.cancel()
        return line

    def _give_up(self) -> None:
        self.late.set()
        kill_group(self.child)

    def end(self, at_once: bool = False) -> int:
        """Wait for a process that ends, kill one that does not, and return its exit code."""
        if at_once and self.child.poll() is None:
            kill_group(self.child)
        with suppress(OSError):  # bytes that it did not read
            self.child.stdin.close()  # type: ignore[union-attr]
        try:
            return self.child.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            kill_group(self.child)
            return self.child.wait()
        finally:
            self.child.stdout.close()  # type: ignore[union-attr]
