"""The run's side of one job in a worker process: its model calls, made here."""

from __future__ import annotations

import pickle
import threading
import time
from typing import Any

from attrs import evolve
from skillopt_kernel.errors import EnvironmentFailure
from skillopt_kernel.execution import AttemptJob, ModelCalls
from skillopt_kernel.loop.target import AttemptTarget
from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, ChatRequest
from skillopt_kernel.records import Attempt

from skillopt_executor_processes.messages import NotSendable, packed, portable


class Service:
    """The run's side of one job: its model calls made, and its attempt known as far as they tell of it."""

    def __init__(self, job: AttemptJob, calls: ModelCalls, stopping: threading.Event) -> None:
        self.job, self.attempt = job, job.attempt
        self._calls = calls
        self._began = time.monotonic()
        self._deadline: float | None = None

        def complete(request: ChatRequest) -> ChatReply:
            return calls.target(evolve(request, deadline=self._deadline))

        def run(agent_job: AgentJob) -> AgentResult:
            return calls.agent(evolve(agent_job, deadline=self._deadline))

        # Time limits are the worker's: there the attempt's clock runs.
        self._target = AttemptTarget(
            complete, run, stage=job.stage, deadline=None, call_timeout=None, stop=stopping, seed=job.seed
        )

    def call(self, content: bytes) -> bytes:
        """Make one call. Returns, pickled, whether it succeeded and the reply or the error."""
        told = self._call(content)
        try:
            return packed(told)
        except NotSendable as error:
            return packed((False, EnvironmentFailure(f"a reply cannot be sent to a worker process: {error}")))

    def _call(self, content: bytes) -> tuple[bool, Any]:
        try:
            role, request, left = pickle.loads(content)
            self._deadline = None if left is None else time.monotonic() + left
            if role == "agent":
                return True, self._target.agent(request)
            if role == "judge":
                return True, self._calls.judge(evolve(request, deadline=self._deadline))
            options = {"tools": request.tools, "tool_choice": request.tool_choice, "max_tokens": request.max_tokens}
            return True, self._target.chat(request.messages, **options)
        except Exception as error:
            return False, portable(error)

    def ends(self) -> float | None:
        """Until when the worker is to be heard of next: the attempt's deadline; while it scores, as long a span."""
        span, now = self.job.attempt_timeout, time.monotonic()
        if not span:
            return None
        return max(now, self._began + span) if self.attempt is None else now + span

    def out_of_time(self) -> Attempt:
        """The attempt of a worker that was ended: what the target was asked and has said."""
        target, seconds = self._target, time.monotonic() - self._began
        return Attempt("", target.trajectory, ended="attempt_timeout", usage=target.usage, seconds=seconds)
