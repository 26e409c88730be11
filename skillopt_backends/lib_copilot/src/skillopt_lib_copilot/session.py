"""What Copilot prints of a session (`--output-format json`), read into turns, answer and what went wrong.

The events and their fields are those of `schemas/session-events.schema.json` in the program's package.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import define, field
from skillopt_kernel.records import Trajectory
from skillopt_lib_agent.events import Events, text_of
from skillopt_lib_agent.trajectory import TrajectoryBuilder

BLOCKED = "The model returned no content because"
"""How the message begins that Copilot puts in the place of a reply that the endpoint withheld."""


@define
class Session:
    """One run of the program.

    failure   the data of the last `model.call_failure`, unless a later call succeeded
    error     the data of the last `session.error`
    ended     whether its last event, `result`, came; exit_code: what that says
    messages  how many of the agent's messages came; asked: whether the model was ever asked
    """

    failure: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    ended: bool = False
    exit_code: int = 0
    messages: int = 0
    asked: bool = False
    _builder: TrajectoryBuilder = field(init=False, factory=TrajectoryBuilder)
    _answered: set[str] = field(init=False, factory=set)
    _told: set[str] = field(init=False, factory=set)
    _chunks: list[str] = field(init=False, factory=list)

    @property
    def trajectory(self) -> Trajectory:
        return self._builder.turns

    @property
    def answer(self) -> str:
        """What the agent said last, after its last tool call; "" when it said nothing."""
        return "\n".join(self._chunks)

    @property
    def filtered(self) -> bool:
        """Whether the endpoint withheld the reply, which Copilot then replaces by a sentence of its own."""
        return self.answer.startswith(BLOCKED)

    @property
    def cut_off(self) -> bool:
        """Whether a reply reached its token limit.

        Copilot then asks the model to go on and prints no message of the turn before: the start of the reply is lost.
        """
        return bool(self._answered - self._told)

    def read(self, event: Mapping[str, Any]) -> None:
        data = part_of(event, "data")
        match event.get("type"):
            case "assistant.message" if not data.get("parentToolCallId"):
                self._said(data)
            case "tool.execution_complete" if not data.get("parentToolCallId"):
                self._returned(data)
            case "model.call_start":
                self.asked = True
            case "model.call_finished" if data.get("outcome") == "success":
                self.failure = None
                self._answered.add(str(data.get("turnId")))
            case "model.call_failure":
                self.failure = data
            case "session.error":
                self.error = data
            case "result":
                self.ended, code = True, event.get("exitCode")
                self.exit_code = code if isinstance(code, int) else 0

    def _said(self, data: Mapping[str, Any]) -> None:
        self.messages += 1
        text, turn = text_of(data.get("content")), str(data.get("turnId"))
        # One reply may come in several messages, one for each stretch of reasoning.
        if turn not in self._told:
            self._chunks.clear()
        self._told.add(turn)
        if text.strip():
            self._chunks.append(text)
        self._builder.said(text)
        requests = data.get("toolRequests")
        for request in requests if isinstance(requests, list) else ():
            if isinstance(request, Mapping):
                self._chunks.clear()
                arguments = request.get("arguments")
                called = arguments if isinstance(arguments, Mapping) else text_of(arguments)
                self._builder.called(text_of(request.get("name")), called, text_of(request.get("toolCallId")))

    def _returned(self, data: Mapping[str, Any]) -> None:
        # Of a command, the program itself tells the exit code in the content.
        error = part_of(data, "error")
        output = error.get("message") if error else part_of(data, "result").get("content")
        denied = error.get("code") == "denied"
        self._builder.returned(text_of(data.get("toolCallId")), text_of(output), denied=denied)


def read_session(events: Events) -> Session:
    """The session that these events tell of."""
    session = Session()
    for event in events.items:
        session.read(event)
    return session


def part_of(whole: Any, name: str) -> Mapping[str, Any]:
    """The object of this name in an object; an empty one where there is none."""
    part = whole.get(name) if isinstance(whole, Mapping) else None
    return part if isinstance(part, Mapping) else {}
