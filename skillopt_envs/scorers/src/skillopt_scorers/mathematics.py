"""The scorer `math`: whether two mathematical expressions are equal, by math-verify, which the extra `math` brings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from attrs import define, field
from skillopt_kernel.errors import EnvironmentFailure
from skillopt_kernel.records import Score
from skillopt_lib_env.children import kill_group, plain_environment

from skillopt_scorers.accepted import accepted_answers, named, quoted
from skillopt_scorers.extras import needed
from skillopt_scorers.settings import MathSettings

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task

_LONGEST_ANSWER = 4_000
"""Characters; what is longer is no expression, and would only keep the parser busy."""
_MOST_WORKERS = 4
_PATIENCE = 120.0
"""Seconds of waiting beside the computing time, for a machine that is busy with something else."""
_SECONDS_TO_END = 10.0


class MathScorer:
    """hard = soft = whether the answer equals an accepted expression, in LaTeX or plain: 1/2, \\frac{1}{2} and 0.5.

    Each comparison is made in a process of its own kind, with a limit of computing time: an answer that needs more is
    not shown to be equal and counts as wrong. A process that fails for another reason leaves no score.
    """

    def __init__(self, settings: MathSettings | None = None, context: DriverContext | None = None) -> None:
        self._settings = settings or MathSettings()
        with needed("math", "mathematical expressions (the scorer math)"):
            if find_spec("math_verify") is None:
                raise ModuleNotFoundError("No module named 'math_verify'", name="math_verify")
        self._pool = _Pool()
        weakref.finalize(self, self._pool.close)

    def check(self, reference: Any, task: Task) -> None:
        """Raise `ValueError` for a reference that holds no expression that can be read."""
        self._compared("", self._accepted(reference))

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Compare with a reference of one expression or a list. Raises as `check`, and `EnvironmentFailure`."""
        accepted = self._accepted(reference)
        if not answer.strip():
            return Score(0.0, 0.0, f"Wrong: there is no answer; accepted: {named(accepted)}.")
        if len(answer) > _LONGEST_ANSWER:
            sentence = f"Wrong: an answer of {len(answer)} characters is no expression"
            return Score(0.0, 0.0, f"{sentence}; accepted: {named(accepted)}.")
        found = self._compared(answer, accepted)
        if found.get("equal"):
            return Score(1.0, 1.0, "Right.")
        why = "" if found.get("read") else " No mathematical expression can be read in it."
        if found.get("problem"):
            why = f" Comparing took more than {self._settings.time_limit:g} seconds of computing, or too much memory."
        return Score(0.0, 0.0, f"Wrong: answered {quoted(answer)}; accepted: {named(accepted)}.{why}")

    def _accepted(self, reference: Any) -> tuple[str, ...]:
        if isinstance(reference, int | float) and not isinstance(reference, bool):
            reference = repr(reference)
        accepted = accepted_answers(reference)
        if not accepted or not all(each.strip() for each in accepted):
            raise ValueError("there is no expression to compare with, or an empty one")
        return accepted

    def _compared(self, answer: str, accepted: tuple[str, ...]) -> dict[str, Any]:
        given = self._settings
        job = {"answer": answer, "accepted": accepted, "digits": given.digits, "strict": given.strict}
        found = self._pool.ask({**job, "seconds": given.time_limit})
        if "unread" in found:
            raise ValueError(
                f"the reference {found['unread']!r:.200} holds no mathematical expression that can be read"
            )
        if found.get("problem") and not answer:
            raise ValueError(f"the reference {accepted[0]!r:.200} cannot be read in {given.time_limit:g} seconds")
        return found


class _Pool:
    """Processes that wait for work; as many at a time as may compute side by side."""

    def __init__(self) -> None:
        self._room = threading.BoundedSemaphore(min(_MOST_WORKERS, os.cpu_count() or 1))
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        """The reply to a job; with "problem" when it needed too much computing. Raises `EnvironmentFailure`."""
        with self._room:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            worker = worker or _Worker()
            reply = worker.ask(job)
            if worker.child.poll() is None:
                with self._lock:
                    self._idle.append(worker)
            return reply

    def close(self) -> None:
        with self._lock:
            while self._idle:
                self._idle.pop().end()


def _started() -> subprocess.Popen[bytes]:
    # -P: a file beside the user's configuration must not stand in for a library.
    command = [sys.executable, "-P", "-m", "skillopt_scorers.math_worker"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=plain_environment(), start_new_session=True,
    )  # fmt: skip


@define(eq=False)
class _Worker:
    child: subprocess.Popen[bytes] = field(factory=_started)

    def ask(self, job: dict[str, Any]) -> dict[str, Any]:
        assert self.child.stdin and self.child.stdout
        late = threading.Event()

        def give_up() -> None:
            late.set()
            kill_group(self.child)

        patience = threading.Timer(job["seconds"] + _PATIENCE, give_up)
        patience.start()
        try:
            self.child.stdin.write(json.dumps(job).encode() + b"\n")
            self.child.stdin.flush()
            line = self.child.stdout.readline()
        except OSError:
            line = b""
        finally:
            patience.cancel()
        if line.endswith(b"\n"):
            reply: dict[str, Any] = json.loads(line)
            return reply
        code = self.end()
        if not late.is_set() and code == -getattr(signal, "SIGXCPU", 0) and code:
            return {"equal": False, "read": True, "problem": "time"}
        waited = (
            f"gave no reply in {job['seconds'] + _PATIENCE:g} seconds" if late.is_set() else f"ended with code {code}"
        )
        raise EnvironmentFailure(f"the process that compares mathematical expressions {waited}")

    def end(self) -> int:
        """Wait for a process that ends, kill one that does not, and return its exit code."""
        with suppress(OSError):  # bytes that it did not read
            self.child.stdin.close()  # type: ignore[union-attr]
        try:
            return self.child.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            kill_group(self.child)
            return self.child.wait()
        finally:
            self.child.stdout.close()  # type: ignore[union-attr]
