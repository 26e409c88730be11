"""Stand-ins for what drivers are given, with replies from a script: a target, a judge, an optimizer, a trial."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field
from skillopt_kernel.errors import Cancelled
from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, Message, Tool
from skillopt_kernel.records import Outcome, Scored, Task, Turn, Usage

Answers = Callable[[Sequence[Message]], "ChatReply | str"]


class ScriptedTarget:
    """A `Target` that answers every call from a function of the messages, or always with one text.

    cancel    every call raises `Cancelled`, as after the attempt's deadline; kind: "chat" or "agent"
    messages  what each call was sent; jobs: what each agent's job was
    """

    def __init__(self, answers: Answers | ChatReply | str, *, cancel: bool = False, kind: str = "chat") -> None:
        self._answers = answers
        self._turns: list[Turn] = []
        self._calls = 0
        self.cancel, self.kind = cancel, kind
        self.messages: list[tuple[Message, ...]] = []
        self.jobs: list[AgentJob] = []

    @property
    def remaining(self) -> float | None:
        return 0.0 if self.cancel else None

    @property
    def cancelled(self) -> bool:
        return self.cancel

    @property
    def trajectory(self) -> tuple[Turn, ...]:
        return tuple(self._turns)

    @property
    def usage(self) -> Usage:
        return Usage(calls=self._calls)

    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        tool_choice: str = "auto",
        max_tokens: int | None = None,
    ) -> ChatReply:
        self.messages.append(tuple(messages))
        seen = sum(turn.role != "environment" for turn in self._turns)
        for message in messages[seen:]:
            self._turns.append(Turn(message.role, message.text, message.tool_calls, message.tool_call_id))
        reply = self._answer(messages)
        self._turns.append(Turn("assistant", reply.text, reply.tool_calls))
        return reply

    def agent(self, job: AgentJob) -> AgentResult:
        self.jobs.append(job)
        prompt = (Message("system", job.skill), Message("user", job.prompt))
        reply = self._answer(prompt)
        self._turns += [Turn("user", job.prompt), Turn("assistant", reply.text)]
        return AgentResult(reply.text, trajectory=(Turn("assistant", reply.text),))

    def note(self, content: str, *, step: int | None = None) -> None:
        self._turns.append(Turn("environment", content, step=step))

    def _answer(self, messages: Sequence[Message]) -> ChatReply:
        if self.cancel:
            raise Cancelled("the attempt's time is over")
        self._calls += 1
        answer = self._answers(messages) if callable(self._answers) else self._answers
        if isinstance(answer, str):
            return ChatReply(answer, finish="stop" if answer.strip() else "empty")
        return answer


class ScriptedJudge:
    """A `Judge` that always gives the same reply and keeps what it was asked. Serves several threads."""

    def __init__(self, reply: str = "{}") -> None:
        self.reply = reply
        self.messages: list[tuple[Message, ...]] = []
        self._lock = threading.Lock()

    def chat(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> ChatReply:
        with self._lock:
            self.messages.append(tuple(messages))
        return ChatReply(self.reply)


@define
class ScriptedOptimizer:
    """An `UpdateOptimizer` with replies in order, the last one repeated; `asked` holds (system, user) of each call.

    prompts  an update mode's prompts by name, of which `prompt` gives one as it stands
    """

    replies: list[str]
    asked: list[tuple[str, str]] = field(factory=list)
    prompts: Mapping[str, str] = field(factory=dict)
    memory: str = ""
    meta: str = ""
    room: str = ""

    def prompt(self, name: str, **values: str) -> str:
        return self.prompts[name]

    def ask(self, system: str, user: str, *, max_tokens: int | None = None) -> ChatReply:
        self.asked.append((system, user))
        return ChatReply(self.replies.pop(0) if len(self.replies) > 1 else self.replies[0])

    def ask_json(
        self,
        system: str,
        user: str,
        *,
        check: Callable[[Mapping[str, Any]], str | None] | None = None,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Mapping[str, Any]:
        found = json.loads(self.ask(system, user, max_tokens=max_tokens).text)
        assert isinstance(found, dict)
        problem = check(found) if check else None
        assert problem is None, problem
        return found


@define
class StoredTrial:
    """A `Trial` whose candidate's outcomes are known beforehand and handed out lazily.

    arrivals  task ids in the order in which outcomes arrive at `settled`, ahead of what is handed out; the
              order asked when empty
    started   the task ids whose attempts were begun
    """

    candidate: Scored
    current: Scored
    best: Scored
    tasks: tuple[Task, ...]
    early_stop: bool = True
    bonuses: Mapping[str, float] = field(factory=dict)
    arrivals: Sequence[str] = ()
    started: list[str] = field(factory=list)
    min_coverage: float = 0.0

    def bonus(self, skill: str) -> float:
        return self.bonuses.get(skill, 0.0)

    def evaluate(
        self,
        skill: str,
        tasks: Sequence[Task],
        sample: int = 0,
        settled: Callable[[Mapping[str, Outcome]], bool] | None = None,
    ) -> Iterator[Outcome]:
        sides = {side.skill: side for side in (self.best, self.current, self.candidate)}
        outcomes = sides[skill].outcomes
        asked = [task.id for task in tasks]
        arrived: dict[str, Outcome] = {}
        waiting = [name for name in self.arrivals if name in asked] or list(asked)
        for name in asked:
            while name not in arrived:
                if self.early_stop and settled is not None and settled(arrived):
                    return
                following = waiting.pop(0)
                arrived[following] = outcomes[following]
                self.started.append(following)
            yield arrived[name]
