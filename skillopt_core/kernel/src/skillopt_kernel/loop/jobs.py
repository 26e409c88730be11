"""From an ask to a committed outcome: the job handed to the executor, its end written down, a lost one run again."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import attrs

from skillopt_kernel.execution import AttemptJob, AttemptResult, ModelCalls
from skillopt_kernel.interfaces import Executor
from skillopt_kernel.loop.attempts import Ended, Purpose
from skillopt_kernel.records import Ask, Missing, Outcome
from skillopt_kernel.skill import shown
from skillopt_kernel.store.outcomes import OutcomeStore

TRIES = 3
"""How often a job is run whose worker is lost: once, and twice again."""


@attrs.frozen
class Limits:
    """Time limits of attempts in seconds (`None`: none), the run's seed, and how the target is asked."""

    call_timeout: float | None
    attempt_timeout: float | None
    seed: int = 0
    kind: str = "chat"

    def seed_of(self, ask: Ask) -> int:
        """31 bits from the run's seed, the task and the sample."""
        return zlib.crc32(f"{self.seed}|{ask.task.id}|{ask.sample}".encode()) & 0x7FFFFFFF


@attrs.define(eq=False)
class AttemptJobs:
    """Starts asks as jobs and commits how they end. This, in the run's process, is the only writer.

    calls    the model calls of one job; asked anew for each time that it runs
    digest   the skill hash of a text
    stop     once set, nothing that was lost is run again
    scoring_failed    told of an attempt that was kept and could not be scored
    """

    _executor: Executor
    _calls: Callable[[Ask, Purpose], ModelCalls] = attrs.field(kw_only=True)
    _scoring_failed: Callable[[Ask], None] = attrs.field(kw_only=True)
    _journal: OutcomeStore = attrs.field(kw_only=True)
    _digest: Callable[[str], str] = attrs.field(kw_only=True)
    _limits: Limits = attrs.field(kw_only=True)
    _stop: threading.Event = attrs.field(kw_only=True)
    _emit: Callable[..., None] = attrs.field(kw_only=True)
    _count: int = attrs.field(init=False, default=0)

    def start(self, ask: Ask, purpose: Purpose, done: Ended) -> None:
        """Have `ask` attempted, scored and committed; then `done` gets the outcome without its trajectory.

        It gets instead what must end the run: `PermanentError` and other errors made for the user.
        """
        try:
            self._emit("attempt_started", **self._about(ask, purpose))
            limits, kept = self._limits, self._journal.unscored_attempt(ask)
            self._count += 1
            job = AttemptJob(
                self._count, ask.task, shown(ask.skill), purpose.stage, limits.seed_of(ask),
                limits.call_timeout, limits.attempt_timeout, kept, limits.kind,
            )  # fmt: skip
            self._submit(_Under(ask, purpose, done), job)
        except BaseException as error:
            done(error)

    def _about(self, ask: Ask, purpose: Purpose) -> dict[str, Any]:
        digest = self._digest(ask.skill)
        return {"task": ask.task.id, "skill_hash": digest, "sample": ask.sample, "purpose": purpose.stage}

    def _submit(self, under: _Under, job: AttemptJob) -> None:
        under.tries += 1
        calls = self._calls(under.ask, under.purpose)
        self._executor.submit(job, calls, lambda result: self._ended(under, job, result))

    def _ended(self, under: _Under, job: AttemptJob, result: AttemptResult) -> None:
        try:
            if result.lost and under.tries < TRIES and not self._stop.is_set():
                self._submit(under, attrs.evolve(job, attempt=result.attempt or job.attempt))
            else:
                under.done(result.failure or self._commit(under, result))
        except BaseException as error:
            under.done(error)

    def _commit(self, under: _Under, result: AttemptResult) -> Outcome:
        ask, purpose, score, missing = under.ask, under.purpose, result.score, result.missing
        if result.lost:
            missing = Missing("worker", f"{result.lost} (worker lost, run {under.tries} times)")
        elif missing is not None and result.attempt is not None:
            self._scoring_failed(ask)
        outcome = Outcome(
            ask.task.id, ask.task.kind, self._digest(ask.skill), ask.sample,
            result.attempt, score, missing, folder=purpose.folder,
        )  # fmt: skip
        stored = self._journal.put(ask, outcome)
        told: dict[str, Any] = {"seconds": round(time.monotonic() - under.began, 3)}
        if under.tries > 1:
            told["tries"] = under.tries
        if score is not None:
            told |= {"hard": score.hard, "soft": score.soft}
        elif missing is not None:
            told |= {"missing": missing.reason, "message": missing.message}
        self._emit("attempt_finished", **self._about(ask, purpose), **told)
        return stored


@attrs.define(eq=False)
class _Under:
    """An ask under way, and how often it was run so far."""

    ask: Ask
    purpose: Purpose
    done: Ended
    tries: int = 0
    began: float = attrs.field(factory=time.monotonic)
