"""What `codex exec --json` printed: the turns, the answer, the usage, or the typed error that it stands for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from skillopt_kernel.errors import ModelError
from skillopt_kernel.records import Trajectory, Usage
from skillopt_kernel.store.redaction import Redactor
from skillopt_lib_agent.events import Events, read_events, text_of
from skillopt_lib_agent.failures import Program, failure, malformed
from skillopt_lib_agent.process import Finished
from skillopt_lib_agent.trajectory import TrajectoryBuilder

from skillopt_backend_codex_exec.session import read_usage, session_turns

DECLINED = "declined"
_LEFT_OUT = frozenset({"reasoning", "error", "todo_list"})
"""Items that are neither said nor done: thoughts, warnings, plans."""


@frozen
class Told:
    """What a whole turn of Codex came to."""

    answer: str
    turns: Trajectory
    usage: Usage


def read_turn(done: Finished, home: Path, program: Program, redactor: Redactor) -> Told:
    """The turn in what was printed, with what the session's record below `home` has of it.

    Raises the typed error of one that failed: an error is never an answer.
    """
    events = read_events(done.stdout)
    failed = events.last("turn.failed")
    completed = events.last("turn.completed")
    if failed is not None or (done.code != 0 and completed is None):
        raise _failure(events, failed, done, program, redactor)
    if completed is None:
        raise malformed(program, "they end before its turn does", redactor, events.text or done.stderr)
    turns = session_turns(home) or _turns(events)
    usage = read_usage(completed.get("usage"))
    if not turns.turns and not usage.prompt_tokens:
        raise malformed(program, "its turn ended without a call of its model", redactor, events.text or done.stderr)
    return Told(turns.answer, turns.turns, usage)


def _failure(
    events: Events, failed: Mapping[str, Any] | None, done: Finished, program: Program, redactor: Redactor
) -> ModelError:
    error = (failed or events.last("error") or {}).get("error", events.last("error"))
    said = text_of(error.get("message")) if isinstance(error, Mapping) else text_of(error)
    said = said or done.stderr or events.text
    status, message = _answer_of_endpoint(said)
    return failure(program, message, redactor, status)


def _answer_of_endpoint(said: str) -> tuple[int | None, str]:
    """Of a request that was rejected (400) Codex hands on the answer's body as it is; of others a sentence."""
    try:
        body = json.loads(said)
    except (ValueError, RecursionError):
        return None, said
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return None, said
    message, code = text_of(error.get("message")), text_of(error.get("code"))
    return 400, f"{message} ({code})" if code and code not in message else message


def _turns(events: Events) -> TrajectoryBuilder:
    turns = TrajectoryBuilder()
    for event in events.items:
        item = event.get("item")
        if event.get("type") == "item.completed" and isinstance(item, Mapping):
            _add(turns, item)
    return turns


def _add(turns: TrajectoryBuilder, item: Mapping[str, Any]) -> None:
    kind, id_ = text_of(item.get("type")), text_of(item.get("id"))
    declined = item.get("status") == DECLINED
    if kind == "agent_message":
        turns.said(text_of(item.get("text")))
    elif kind == "command_execution":
        code = item.get("exit_code")
        turns.called("shell", {"command": text_of(item.get("command"))}, id_)
        output = text_of(item.get("aggregated_output"))
        turns.returned(id_, output, code=code if isinstance(code, int) else None, denied=declined)
    elif kind == "mcp_tool_call":
        turns.called(f"{item.get('server')}.{item.get('tool')}", text_of(item.get("arguments")), id_)
        turns.returned(id_, text_of(item.get("error") or item.get("result")), denied=declined)
    elif kind == "file_change":
        turns.called("apply_patch", {"changes": item.get("changes")}, id_)
        turns.returned(id_, text_of(item.get("status")), denied=declined)
    elif kind not in _LEFT_OUT:
        told = {name: value for name, value in item.items() if name not in ("id", "type", "status")}
        turns.called(kind, told, id_)
        turns.returned(id_, text_of(item.get("status")), denied=declined)
