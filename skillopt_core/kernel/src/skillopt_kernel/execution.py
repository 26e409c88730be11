"""What passes between the kernel and an executor: a job and its result are data, and can cross to another process.

The kernel keeps the queue, its order, the store, the events and the models. An executor performs a job where its
workers are, with `skillopt_kernel.loop.worker.perform`; the job's model calls come back to the run's process.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, ChatRequest
from skillopt_kernel.records import Attempt, Missing, Score, Task

Complete = Callable[[ChatRequest], ChatReply]
RunAgent = Callable[[AgentJob], AgentResult]


@frozen
class AttemptJob:
    """One task to attempt and to score.

    id               unique in the run
    task             with its reference, which `perform` shows to scoring only
    skill            as the target is shown it
    stage            what the target's calls are for: rollout, selection, test, ...
    seed             31 bits that go with each call of the target
    call_timeout     seconds for one model call, attempt_timeout for the whole attempt; `None`: no limit
    attempt          an attempt whose scoring failed or was cut short: only scoring is asked again
    kind             how the target is asked: "chat" or "agent"
    """

    id: int
    task: Task
    skill: str
    stage: str
    seed: int | None = None
    call_timeout: float | None = None
    attempt_timeout: float | None = None
    attempt: Attempt | None = None
    kind: str = "chat"


@frozen
class AttemptResult:
    """How a job ended: with attempt and score, with the typed reason why a score is missing, or in one of two ways
    that the kernel deals with.

    failure  what must end the run, such as a `PermanentError`
    lost     why the worker came to its end before the job; the kernel runs the job again, at most twice
    """

    attempt: Attempt | None = None
    score: Score | None = None
    missing: Missing | None = None
    failure: BaseException | None = None
    lost: str = ""


@frozen
class ModelCalls:
    """The model calls that one job may make, each through ledger, limits and retries. One thread at a time.

    They are made in the run's process. A worker elsewhere has a `ModelCalls` of its own, whose functions send the
    request here and wait for the reply.
    """

    target: Complete
    judge: Complete
    agent: RunAgent


Done = Callable[[AttemptResult], None]
