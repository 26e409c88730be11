"""The turns of a job as Codex's own record of the session has them: every item that went to the model or came from it.

The events that Codex prints are no full record: a command that ends at once is often not told there at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt_lib_agent.events import read_events, text_of
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
    records = sorted(home.glob("sessions/**/rollout-*.jsonl"))
    if not records:
        return None
    turns = TrajectoryBuilder()
    for line in read_events(records[-1]).items:
        item = line.get("payload")
        if line.get("type") == "response_item" and isinstance(item, Mapping):
            _add(turns, item)
    return turns if turns.turns else None


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
