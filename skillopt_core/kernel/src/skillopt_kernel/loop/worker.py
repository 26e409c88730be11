"""What a worker does with one ask: attempt, score, commit. Faults become typed outcomes, never zeros."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable
from typing import Any

import attrs

from skillopt_kernel.errors import (
    CallTimeout,
    Cancelled,
    ContextTooLong,
    EnvironmentFailure,
    ModelError,
    RefusedError,
    SkillOptError,
)
from skillopt_kernel.interfaces import Environment
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.target import AttemptJudge, AttemptTarget, Complete, RunAgent
from skillopt_kernel.records import Ask, Attempt, Missing, Outcome, Score
from skillopt_kernel.skill import shown
from skillopt_kernel.store.outcomes import OutcomeStore

ENDING_SENTENCES = {
    "attempt_timeout": "The attempt ran out of time.",
    "max_turns": "The attempt ran out of turns.",
    "refused": "The target refused to answer.",
    "empty_answer": "The target gave an empty answer.",
    "context_exceeded": "The conversation outgrew the target's context.",
}


@attrs.frozen
class Limits:
    """Time limits of attempts in seconds (`None`: none), and the run's seed."""

    call_timeout: float | None
    attempt_timeout: float | None
    seed: int = 0

    def seed_of(self, ask: Ask) -> int:
        """31 bits from the run's seed, the task and the sample."""
        return zlib.crc32(f"{self.seed}|{ask.task.id}|{ask.sample}".encode()) & 0x7FFFFFFF


@attrs.frozen(eq=False)
class AttemptWorker:
    """Performs asks; its `perform` is called from many threads at once."""

    _environment: Environment
    _target: Callable[[str], Complete] = attrs.field(kw_only=True)
    _agent: Callable[[str], RunAgent] | None = attrs.field(kw_only=True)
    _judge: Complete = attrs.field(kw_only=True)
    _journal: OutcomeStore = attrs.field(kw_only=True)
    _digest: Callable[[str], str] = attrs.field(kw_only=True)
    _limits: Limits = attrs.field(kw_only=True)
    _stop: threading.Event = attrs.field(kw_only=True)
    _emit: Callable[..., None] = attrs.field(kw_only=True)

    def perform(self, ask: Ask, purpose: Purpose) -> Outcome:
        """Attempt and score `ask`, commit the outcome and return it without its trajectory.

        Raises only what must end the run: `PermanentError` and other errors made for the user.
        """
        digest = self._digest(ask.skill)
        about = {"task": ask.task.id, "skill_hash": digest, "sample": ask.sample, "purpose": purpose.stage}
        self._emit("attempt_started", **about)
        began = time.monotonic()
        attempt, missing = self._attempt(ask, purpose)
        score = None
        if attempt is not None:
            score, missing = self._score(ask, attempt)
        outcome = Outcome(
            ask.task.id, ask.task.kind, digest, ask.sample, attempt, score, missing, folder=purpose.folder
        )
        stored = self._journal.put(ask, outcome)
        result: dict[str, Any] = {"seconds": round(time.monotonic() - began, 3)}
        if score is not None:
            result |= {"hard": score.hard, "soft": score.soft}
        elif missing is not None:
            result |= {"missing": missing.reason, "message": missing.message}
        self._emit("attempt_finished", **about, **result)
        return stored

    def _attempt(self, ask: Ask, purpose: Purpose) -> tuple[Attempt | None, Missing | None]:
        earlier = self._journal.unscored_attempt(ask)
        if earlier is not None:  # its scoring failed: only scoring is asked again
            return earlier, None
        target = self._open_target(ask, purpose)
        began = time.monotonic()

        def ended(how: str) -> tuple[Attempt, None]:
            seconds = time.monotonic() - began
            return Attempt("", target.trajectory, ended=how, usage=target.usage, seconds=seconds), None

        try:
            attempt = self._environment.attempt(ask.task.hidden(), shown(ask.skill), target)
        except Cancelled as error:
            return ended("attempt_timeout") if target.out_of_time else (None, Missing("cancelled", str(error)))
        except RefusedError:
            return ended("refused")
        except ContextTooLong:
            return ended("context_exceeded")
        except SkillOptError:
            raise
        except ModelError as error:
            return None, Missing("call_timeout" if isinstance(error, CallTimeout) else "endpoint", str(error))
        except EnvironmentFailure as error:
            return None, Missing("environment", str(error))
        except Exception as error:  # a defect of the environment is not the target's failure
            return None, Missing("environment", f"{type(error).__name__}: {error}")
        return attrs.evolve(
            attempt,
            trajectory=attempt.trajectory or target.trajectory,
            usage=target.usage,
            seconds=time.monotonic() - began,
        ), None

    def _open_target(self, ask: Ask, purpose: Purpose) -> AttemptTarget:
        limits = self._limits
        return AttemptTarget(
            self._target(purpose.stage),
            self._agent(purpose.stage) if self._agent is not None else None,
            stage=purpose.stage,
            deadline=time.monotonic() + limits.attempt_timeout if limits.attempt_timeout else None,
            call_timeout=limits.call_timeout,
            stop=self._stop,
            seed=limits.seed_of(ask),
        )

    def _score(self, ask: Ask, attempt: Attempt) -> tuple[Score | None, Missing | None]:
        score: Score | None = None
        missing: Missing | None = None
        judge = AttemptJudge(self._judge, self._limits.call_timeout)
        try:
            score = self._environment.score(ask.task, attempt, judge)
        except SkillOptError:
            raise
        except ModelError as error:
            missing = Missing("judge", str(error))
        except Exception as error:
            missing = Missing("environment", f"scoring failed: {type(error).__name__}: {error}")
        if attempt.ended is None:
            return score, missing
        sentence = ENDING_SENTENCES[attempt.ended]
        if score is None:  # an attempt that ended so is a failure whether or not what is left can be scored
            return Score(0.0, 0.0, sentence), None
        return attrs.evolve(score, hard=0.0, feedback=f"{sentence} {score.feedback}".strip()), None
