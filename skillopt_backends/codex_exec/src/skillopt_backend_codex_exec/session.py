"""The turns of a job as Codex's own record of the session has them: every item that went to the model or came from it.

The events that Codex prints are no full record: a command that ends at once is often not told there at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from skillopt_kernel.records import Usage
from skillopt_lib_agent.events import count_of, read_events, text_of
from skillopt_lib_agent.trajectory import TrajectoryBuilder

_CALLS = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
"""Type of an item by which the model calls a tool -> the field that says with what."""

_COMMAND = re.compile(
    r"(?:Chunk ID: [^\n]*\n)?Wall time: [^\n]*\n(?:Process exited with code (-?\d+)\n)?"
    r"(?:[A-Z][\w ]*: [^\n]*\n)*Output:\n"
)
"""What stands before a command's output: its number, its time, its exit code."""


def session_turns(home: Path) -> TrajectoryBuilder | None:
    """The turns of the one session below Codex's folder; `None` when it left no record of any."""
    turns = TrajectoryBuilder()
    for item in _record(home, "response_item"):
        _add(turns, item)
    return turns if turns.turns else None


def session_usage(home: Path) -> Usage | None:
    """What the requests used that were answered, also of a turn that came to nothing; `None` where that is unknown."""
    for told in reversed(list(_record(home, "event_msg"))):
        if told.get("type") == "token_count" and isinstance(told.get("info"), Mapping):
            return read_usage(told["info"].get("total_token_usage"))
    return None


def read_usage(raw: Any) -> Usage:
    """Tokens of all requests of a turn. What was not told is unknown, not zero."""
    usage: Mapping[str, Any] = raw if isinstance(raw, Mapping) else {}
    prompt, completion = count_of(usage.get("input_tokens")), count_of(usage.get("output_tokens"))
    return Usage(
        calls=1,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=count_of(usage.get("cached_input_tokens")),
        reasoning_tokens=count_of(usage.get("reasoning_output_tokens")),
        unknown_calls=int(prompt is None and completion is None),
    )


def _record(home: Path, kind: str) -> Iterator[Mapping[str, Any]]:
    """The payloads of one kind in the record of the session."""
    for record in sorted(home.glob("sessions/**/rollout-*.jsonl"))[-1:]:
        for line in read_events(record).items:
            payload = line.get("payload")
            if line.get("type") == kind and isinstance(payload, Mapping):
                yield payload


def _add(turns: TrajectoryBuilder, item: Mapping[str, Any]) -> None:
    kind = text_of(item.get("type"))
    id_ = text_of(item.get("call_id") or item.get("id"))
    if kind == "message":
        if item.get("role") == "assistant":
            turns.said(_parts(item.get("content")))
    elif kind in _CALLS:
        turns.called(text_of(item.get("name")) or kind, text_of(item.get(_CALLS[kind])), id_)
    elif kind.endswith("_output"):
        output = item.get("output")
        text = output if isinstance(output, str) else _parts(output) or text_of(output)
        found = _COMMAND.match(text)
        code = int(found[1]) if found and found[1] else None
        turns.returned(id_, text[found.end() :] if found else text, code=code)
    elif kind.endswith("_call"):  # what the endpoint did itself, such as a search
        turns.called(kind, text_of(item.get("action")), id_)
        turns.returned(id_, text_of(item.get("status")))


def _parts(content: Any) -> str:
    parts = content if isinstance(content, list) else []
    return "\n".join(text_of(part.get("text")) for part in parts if isinstance(part, Mapping) and part.get("text"))
