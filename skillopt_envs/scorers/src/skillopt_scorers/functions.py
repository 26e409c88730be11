"""The scorer `python`: a function of one's own, by object path, in processes of their own."""

from __future__ import annotations

import sys
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

from skillopt_kernel.errors import ConfigError, EnvironmentFailure
from skillopt_kernel.plugins.errors import PASSED_ON
from skillopt_kernel.records import Score
from skillopt_lib_env.scoring import content_hash

from skillopt_scorers.function_worker import packed, unpacked
from skillopt_scorers.settings import PythonSettings
from skillopt_scorers.workers import Pool, WorkerEnded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task

_MOST_WORKERS = 16
_PATIENCE = 120.0
"""Seconds for a process to start and to import the function, beside the time for an answer."""


class PythonScorer:
    """What the function returns: true or false, a number from 0 to 1, a mapping, or a `Score`.

    It is called with those of `answer`, `reference`, `task` and `judge` that it names, and with `arguments`, in
    processes that wait for the next answer: one that takes more than `time_limit` is killed, and the time that a judge
    takes does not count. What fails leaves the outcome without a score.
    """

    def __init__(self, settings: PythonSettings | None = None, context: DriverContext | None = None) -> None:
        self._settings = settings = settings or PythonSettings()
        if not settings.function:
            raise ConfigError("the scorer python needs `function`, the path of yours as package.module:name")
        first = {"function": settings.function, "path": settings.path, "arguments": dict(settings.arguments)}
        self._pool = Pool(
            "skillopt_scorers.function_worker", None, _MOST_WORKERS, first=packed({**first, "search": list(sys.path)}),
            greeted=partial(_refuse, settings, _source(settings)), patience=_PATIENCE, quiet=False,
        )  # fmt: skip
        weakref.finalize(self, self._pool.close)
        try:
            self._pool.start()
        except WorkerEnded as error:
            raise ConfigError(
                f"the scorer python: a process that imports {settings.function} {_ending(error)}"
            ) from error

    def shape_only(self, tasks: Sequence[Task]) -> str:
        """Nothing is known of what the function looks at."""
        return ""

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Raises `EnvironmentFailure` when it fails or returns no score, and what its judge raises."""
        job = {"answer": answer, "reference": reference, "task": task, "judge": judge is not None}
        result = self._ask(job, judge, self._settings.time_limit)
        if "score" not in result:
            raise EnvironmentFailure(result["failed"])
        return Score(*result["score"])

    def _ask(self, job: dict[str, Any], judge: Judge | None, seconds: float) -> dict[str, Any]:
        raised: list[BaseException] = []

        def between(line: bytes) -> bytes | None:
            asked = unpacked(line)
            if "messages" not in asked:
                return None
            try:
                assert judge is not None
                return packed({"reply": judge.chat(asked["messages"], schema=asked["schema"])})
            except Exception as error:
                raised.append(error)
                return packed({})

        who = f"the function {self._settings.function}"
        try:
            result = unpacked(self._pool.ask(packed(job), seconds, between))
        except WorkerEnded as error:
            why = f"{_ending(error)}; see `time_limit`" if error.seconds == seconds else _ending(error)
            raise EnvironmentFailure(f"{who} {why}") from error
        except (*PASSED_ON, EnvironmentFailure):
            raise
        except Exception as error:  # what pickle raises has many types
            raise EnvironmentFailure(f"what {who} is given or asks cannot be sent to its process: {error}") from error
        if "judge_failed" in result:
            raise raised[-1]
        return result


def _refuse(settings: PythonSettings, source: str, line: bytes) -> None:
    """Look at what a process says that has started. A run must not go on with another function."""
    told = unpacked(line)
    if _source(settings) != source:
        raise EnvironmentFailure(
            f"the source of {settings.function} was changed during the run: put it back, or begin another run"
        )
    if "unusable" in told:
        raise ConfigError(f"the scorer python: {told['unusable']}")


def _source(settings: PythonSettings) -> str:
    return "".join(map(content_hash, settings.files().values()))


def _ending(error: WorkerEnded) -> str:
    if error.seconds:
        return f"took more than {error.seconds:g} seconds and was killed"
    return f"ended with exit code {error.code}" if error.code >= 0 else f"was ended by signal {-error.code}"
