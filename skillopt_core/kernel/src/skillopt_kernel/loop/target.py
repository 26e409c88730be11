"""The target and the judge as an attempt may use them: calls recorded, deadlines kept, leaks impossible."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from skillopt_kernel.errors import Cancelled, ModelError, PermanentError
from skillopt_kernel.execution import Complete, RunAgent
from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, ChatRequest, Message, Tool
from skillopt_kernel.records import Turn, Usage


@attrs.define(eq=False)
class AttemptTarget:
    """One attempt's use of the target. Not shared between attempts; one thread at a time.

    Every message that the environment sends for the first time and every reply becomes a turn of
    `trajectory`, in order, so that an environment need not keep one. `deadline` is in `time.monotonic()`
    seconds and covers the whole attempt, `call_timeout` (seconds) each call. `seed` goes with each call, for
    backends that can use one: samples of one task have different seeds, and a resumed run the same. `isolated`: whether
    every agent's job was; `None` while there was none.
    """

    _complete: Complete
    _run_agent: RunAgent
    _stage: str = attrs.field(kw_only=True)
    _deadline: float | None = attrs.field(kw_only=True)
    _call_timeout: float | None = attrs.field(kw_only=True)
    _stop: threading.Event = attrs.field(kw_only=True)
    _seed: int | None = attrs.field(kw_only=True, default=None)
    kind: str = attrs.field(kw_only=True, default="chat")
    _turns: list[Turn] = attrs.field(init=False, factory=list)
    _sent: list[Message] = attrs.field(init=False, factory=list)
    usage: Usage = attrs.field(init=False, factory=Usage)
    isolated: bool | None = attrs.field(init=False, default=None)

    @property
    def remaining(self) -> float | None:
        """Seconds until the attempt's deadline, never below 0; `None` without one."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    @property
    def out_of_time(self) -> bool:
        return self.remaining == 0.0

    @property
    def cancelled(self) -> bool:
        return self._stop.is_set() or self.out_of_time

    @property
    def trajectory(self) -> tuple[Turn, ...]:
        return tuple(self._turns)

    def note(self, content: str, *, step: int | None = None) -> None:
        """Add what the environment says, as a turn of the role `environment`."""
        self._turns.append(Turn("environment", content, step=step))

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        tool_choice: str = "auto",
        max_tokens: int | None = None,
    ) -> ChatReply:
        """One call of the target. Raises `Cancelled` after the deadline, else what the backend raises."""
        self._check()
        self._record_sent(messages)
        kept: dict[str, Any] = {"seed": self._seed, "stage": self._stage, "deadline": self._call_deadline()}
        request = ChatRequest(tuple(messages), tuple(tools), tool_choice, max_tokens=max_tokens, **kept)
        reply: ChatReply = self._guarded(lambda: self._complete(request))
        self.usage = self.usage + reply.usage
        self._sent.append(Message("assistant", reply.text, reply.tool_calls))
        self._turns.append(Turn("assistant", reply.text, reply.tool_calls))
        return reply

    def agent(self, job: AgentJob) -> AgentResult:
        """Run an agent program's job; its own trajectory is appended to this one."""
        self._check()
        self._turns.append(Turn("user", job.prompt))
        job = attrs.evolve(job, stage=self._stage, deadline=self._call_deadline())
        result: AgentResult = self._guarded(lambda: self._run_agent(job))
        self.usage, self.isolated = self.usage + result.usage, result.isolated and self.isolated is not False
        self._turns.extend(result.trajectory or (Turn("assistant", result.message),))
        return result

    def _check(self) -> None:
        if self.cancelled:
            raise Cancelled("the attempt's time is over" if self.out_of_time else "the run is stopping")

    def _call_deadline(self) -> float | None:
        limit = time.monotonic() + self._call_timeout if self._call_timeout else None
        return min(filter(None, (self._deadline, limit)), default=None)

    def _guarded(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except PermanentError:
            raise
        except ModelError as error:
            # A call cut short by the attempt's own deadline is the attempt running out of time.
            if self.out_of_time:
                raise Cancelled("the attempt's time is over") from error
            raise

    def _record_sent(self, messages: Sequence[Message]) -> None:
        # A conversation is sent whole each time: only what was not sent before is a new turn.
        known = len(self._sent) if list(messages[: len(self._sent)]) == self._sent else 0
        for message in messages[known:]:
            self._turns.append(Turn(message.role, message.text, message.tool_calls, message.tool_call_id))
        self._sent = list(messages)


@attrs.frozen
class AttemptJudge:
    """The judge as scoring may use it. Its calls have the stage `judge`."""

    _complete: Complete
    _call_timeout: float | None

    def chat(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> ChatReply:
        deadline = time.monotonic() + self._call_timeout if self._call_timeout else None
        return self._complete(ChatRequest(messages=tuple(messages), schema=schema, stage="judge", deadline=deadline))
