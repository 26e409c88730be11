"""The scorer `math`: whether two mathematical expressions are equal, by math-verify, which the extra `math` brings."""

from __future__ import annotations

import json
import os
import signal
import weakref
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from skillopt_kernel.errors import EnvironmentFailure
from skillopt_kernel.records import Score
from skillopt_lib_env.children import plain_environment

from skillopt_scorers.accepted import accepted_answers, named, quoted
from skillopt_scorers.extras import needed
from skillopt_scorers.settings import MathSettings
from skillopt_scorers.workers import Pool, WorkerEnded

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task

_LONGEST_ANSWER = 4_000
"""Characters; what is longer is no expression, and would only keep the parser busy."""
_MOST_WORKERS = 4
_PATIENCE = 120.0
"""Seconds of waiting beside the computing time, for a machine that is busy with something else."""


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
        workers = min(_MOST_WORKERS, os.cpu_count() or 1)
        self._pool = Pool("skillopt_scorers.math_worker", plain_environment(), workers)
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
        found = self._asked({**job, "seconds": given.time_limit})
        if "unread" in found:
            raise ValueError(
                f"the reference {found['unread']!r:.200} holds no mathematical expression that can be read"
            )
        if found.get("problem") and not answer:
            raise ValueError(f"the reference {accepted[0]!r:.200} cannot be read in {given.time_limit:g} seconds")
        return found

    def _asked(self, job: dict[str, Any]) -> dict[str, Any]:
        """The reply to a job; with "problem" when it needed too much computing. Raises `EnvironmentFailure`."""
        seconds = job["seconds"] + _PATIENCE
        try:
            found: dict[str, Any] = json.loads(self._pool.ask(json.dumps(job).encode() + b"\n", seconds))
        except WorkerEnded as error:
            if not error.seconds and error.code == -getattr(signal, "SIGXCPU", 0) and error.code:
                return {"equal": False, "read": True, "problem": "time"}
            raise EnvironmentFailure(f"the process that compares mathematical expressions {error}") from error
        return found
