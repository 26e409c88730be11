"""What a worker does with one job, wherever it runs: attempt and score. Faults become typed results, never zeros."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs

from skillopt_kernel.errors import (
    CallTimeout,
    Cancelled,
    ContextTooLong,
    EnvironmentFailure,
    ModelError,
    RefusedError,
    RejectedRequest,
    SkillOptError,
)
from skillopt_kernel.execution import AttemptJob, AttemptResult, ModelCalls
from skillopt_kernel.interfaces import Environment
from skillopt_kernel.loop.target import AttemptJudge, AttemptTarget
from skillopt_kernel.records import Attempt, Missing, Score

ENDING_SENTENCES = {
    "attempt_timeout": "The attempt ran out of time.",
    "max_turns": "The attempt ran out of turns.",
    "refused": "The target refused to answer.",
    "empty_answer": "The target gave an empty answer.",
    "context_exceeded": "The conversation outgrew the target's context.",
}


@attrs.frozen
class Workplace:
    """What an executor's factory finds in `context.common`.

    environment  the run's own instance, for workers that are threads of the run's process
    name         of the environment, and its settings: what a worker elsewhere makes its own instance of
    common       the kernel's settings of the section `env` (`workers`: how many jobs at the same time)
    stopping     once set, the run is given up: jobs in flight are to end soon
    redact       takes the configured credentials out of an attempt; only the run's process knows them
    """

    environment: Environment
    name: str
    settings: Any = attrs.field(repr=False)
    common: Any = attrs.field(repr=False)
    stopping: threading.Event
    redact: Callable[[Attempt], Attempt] = lambda attempt: attempt


def perform(
    job: AttemptJob,
    environment: Environment,
    calls: ModelCalls,
    stopping: threading.Event,
    attempted: Callable[[Attempt], Any] = lambda _: None,
    redact: Callable[[Attempt], Attempt] = lambda attempt: attempt,
) -> AttemptResult:
    """Attempt the job's task and score the attempt. Raises nothing: `failure` holds what must end the run, such as a
    call's `PermanentError` or `BudgetSpent`, also where the environment has caught it.

    attempted  called with the attempt before it is scored, unless the job came with one
    redact     applied to the attempt before it is scored: feedback quotes parts, in which half a key would stay
    """
    fatal: list[SkillOptError] = []

    def noting(call: Callable[[Any], Any], request: Any) -> Any:
        try:
            return call(request)
        except SkillOptError as error:
            fatal.append(error)
            raise

    calls = ModelCalls(*(partial(noting, call) for call in (calls.target, calls.judge, calls.agent)))
    try:
        attempt, missing = job.attempt, None
        if attempt is None:
            attempt, missing = _attempt(job, environment, calls, stopping)
            if attempt is None or fatal:
                return AttemptResult(missing=missing, failure=next(iter(fatal), None))
            attempted(attempt := redact(attempt))
        score, missing = _score(job, attempt, environment, calls)
        return AttemptResult(attempt, score, missing, next(iter(fatal), None))
    except BaseException as error:  # carried to the loop's thread, which raises it there
        return AttemptResult(failure=error)


def _attempt(
    job: AttemptJob, environment: Environment, calls: ModelCalls, stopping: threading.Event
) -> tuple[Attempt | None, Missing | None]:
    began = time.monotonic()
    kept: dict[str, Any] = {name: getattr(job, name) for name in ("stage", "seed", "call_timeout", "kind")}
    deadline = began + job.attempt_timeout if job.attempt_timeout else None
    target = AttemptTarget(calls.target, calls.agent, stop=stopping, deadline=deadline, **kept)

    def whole(attempt: Attempt) -> tuple[Attempt, None]:
        known: Any = {"trajectory": attempt.trajectory or target.trajectory, "usage": target.usage}
        return attrs.evolve(attempt, **known, isolated=target.isolated, seconds=time.monotonic() - began), None

    try:
        attempt = environment.attempt(job.task.hidden(), job.skill, target)
    except Cancelled as error:
        out_of_time = Attempt("", ended="attempt_timeout")
        return whole(out_of_time) if target.out_of_time else (None, Missing("cancelled", str(error)))
    except (RefusedError, ContextTooLong) as error:
        return whole(Attempt("", ended="refused" if isinstance(error, RefusedError) else "context_exceeded"))
    except SkillOptError:
        raise
    except RejectedRequest as error:
        return None, Missing("rejected", str(error))
    except ModelError as error:
        return None, Missing("call_timeout" if isinstance(error, CallTimeout) else "endpoint", str(error))
    except EnvironmentFailure as error:
        return None, Missing("environment", str(error))
    except (Exception, SystemExit) as error:  # a defect of the environment is not the target's failure
        return None, Missing("environment", f"{type(error).__name__}: {error}")
    return whole(attempt)


def _score(
    job: AttemptJob, attempt: Attempt, environment: Environment, calls: ModelCalls
) -> tuple[Score | None, Missing | None]:
    score: Score | None = None
    missing: Missing | None = None
    try:
        score = environment.score(job.task, attempt, AttemptJudge(calls.judge, job.call_timeout))
    except SkillOptError:
        raise
    except ModelError as error:
        missing = Missing("judge", str(error))
    except (Exception, SystemExit) as error:
        missing = Missing("environment", f"scoring failed: {type(error).__name__}: {error}")
    if attempt.ended is None:
        return score, missing
    sentence = ENDING_SENTENCES[attempt.ended]
    if score is None:  # an attempt that ended so is a failure whether or not what is left can be scored
        return Score(0.0, 0.0, sentence), None
    return attrs.evolve(score, hard=0.0, feedback=f"{sentence} {score.feedback}".strip()), None
