"""What Cursor's agent prints (`--output-format stream-json`), read into turns, answer and how it ended.

Its forms are those of Cursor's documentation of the output format; events of other types are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field
from skillopt_kernel.records import Trajectory
from skillopt_lib_agent.events import Events, text_of
from skillopt_lib_agent.trajectory import TrajectoryBuilder

ENDING = "ToolCall"
"""What the key of a call's kind ends in: `readToolCall`, `shellToolCall`."""


@define
class Session:
    """One run of the program. `result`: its last event of that type, `None` when there was none."""

    result: Mapping[str, Any] | None = None
    _builder: TrajectoryBuilder = field(init=False, factory=TrajectoryBuilder)
    _said: bool = field(init=False, default=False)

    @property
    def trajectory(self) -> Trajectory:
        return self._builder.turns

    @property
    def answer(self) -> str:
        """What the agent said last, after its last tool call.

        The `result` event holds all that it said, from the first word on; it counts where nothing else came.
        """
        if self._said or self._builder.turns:
            return self._builder.answer
        return text_of((self.result or {}).get("result"))

    @property
    def failed(self) -> bool:
        told = self.result or {}
        return told.get("is_error") is True or text_of(told.get("subtype")).startswith("error")

    def read(self, event: Mapping[str, Any]) -> None:
        match event.get("type"), event.get("subtype"):
            case "assistant", _:
                self._said = True
                self._builder.said("".join(_texts(event.get("message"))))
            case "tool_call", "started":
                name, call = _call(event.get("tool_call"))
                self._builder.called(name, _arguments(call), text_of(event.get("call_id")))
            case "tool_call", "completed":
                _, call = _call(event.get("tool_call"))
                self._returned(text_of(event.get("call_id")), call.get("result"))
            case "result", _:
                self.result = event

    def _returned(self, id_: str, result: Any) -> None:
        """A result is `{outcome: what it gave}`: success, failure, error, rejected, ..."""
        outcome, told = next(iter(result.items())) if isinstance(result, Mapping) and len(result) == 1 else ("", result)
        code = told.get("exitCode") if isinstance(told, Mapping) else None
        denied = outcome in ("rejected", "permissionDenied")
        output = _output(told)
        if outcome not in ("", "success") and not denied:
            output = f"[{outcome}] {output}"
        self._builder.returned(id_, output, code=code if isinstance(code, int) else None, denied=denied)


def read_session(events: Events) -> Session:
    """The session that these events tell of."""
    session = Session()
    for event in events.items:
        session.read(event)
    return session


def _texts(message: Any) -> Iterator[str]:
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, Mapping) and part.get("type") == "text":
            yield text_of(part.get("text"))


def _call(tool_call: Any) -> tuple[str, Mapping[str, Any]]:
    """The name of a tool and what is told of the call: under a key for each kind, or as a `function` with its name."""
    for key, told in tool_call.items() if isinstance(tool_call, Mapping) else ():
        if isinstance(told, Mapping) and (key.endswith(ENDING) or key == "function"):
            return text_of(told.get("name")) or key.removesuffix(ENDING), told
    return "tool", {}


def _arguments(call: Mapping[str, Any]) -> str | Mapping[str, Any]:
    told = call.get("args", call.get("arguments", {}))
    return told if isinstance(told, Mapping) else text_of(told)


def _output(told: Any) -> str:
    """The text in what a call gave: of a file its content, of a command what it printed; else all of it."""
    if not isinstance(told, Mapping):
        return text_of(told)
    for names in (("content",), ("stdout", "stderr"), ("errorMessage",), ("error",), ("message",), ("reason",)):
        if any(name in told for name in names):
            return "\n".join(text for name in names if (text := text_of(told.get(name))))
    return text_of(told)
