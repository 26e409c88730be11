"""Records as fields of files, and back: the one place that knows the names that files use.

What is read back (outcomes, turns, usage, scores) has a strict inverse: `ValueError` names the field that is
missing or of the wrong type, and 1.0 is never read from true.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from skillopt_kernel.interfaces import UpdateMode
from skillopt_kernel.records import (
    Applied,
    Attempt,
    ItemReport,
    Missing,
    Outcome,
    Proposal,
    Score,
    Task,
    ToolCall,
    Trajectory,
    Turn,
    Update,
    Usage,
)

_ROLES = ("system", "user", "assistant", "tool", "environment")
_NUMBER = (int, float)
_OPTIONAL_NUMBER = (int, float, type(None))


def take(row: Mapping[str, Any], key: str, kinds: type | tuple[type, ...], default: Any = attrs.NOTHING) -> Any:
    """The value of `key`, of one of `kinds`. Raises `ValueError` naming the key; a bool is no number."""
    value = row.get(key, default)
    if value is attrs.NOTHING:
        raise ValueError(f"{key!r} is missing")
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        names = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise ValueError(f"{key!r} must be {names}, not {value!r:.80}")
    return value


# Turns, usage, scores --------------------------------------------------------------------------------------


def turn_fields(turn: Turn) -> dict[str, Any]:
    """A turn of conversation.json: `{role, content, tool_calls?, tool_call_id?, step?}`."""
    row: dict[str, Any] = {"role": turn.role, "content": turn.content}
    if turn.tool_calls:
        row["tool_calls"] = [{"id": one.id, "name": one.name, "arguments": one.arguments} for one in turn.tool_calls]
    if turn.tool_call_id is not None:
        row["tool_call_id"] = turn.tool_call_id
    if turn.step is not None:
        row["step"] = turn.step
    return row


def turn_from_fields(row: Mapping[str, Any]) -> Turn:
    role = take(row, "role", str)
    if role not in _ROLES:
        raise ValueError(f"'role' must be one of {', '.join(_ROLES)}, not {role!r}")
    calls = tuple(
        ToolCall(take(call, "id", str), take(call, "name", str), take(call, "arguments", str))
        for call in take(row, "tool_calls", list, [])
    )
    tool_call_id = take(row, "tool_call_id", (str, type(None)), None)
    return Turn(role, take(row, "content", str), calls, tool_call_id, take(row, "step", (int, type(None)), None))


def trajectory_from_fields(rows: Any) -> Trajectory:
    """The turns of a parsed conversation.json. Raises `ValueError` naming turn and field."""
    if not isinstance(rows, list):
        raise ValueError("a conversation must be a list of turns")
    turns = []
    for number, row in enumerate(rows, 1):
        try:
            if not isinstance(row, Mapping):
                raise ValueError("it must be an object")
            turns.append(turn_from_fields(row))
        except ValueError as error:
            raise ValueError(f"turn {number}: {error}") from error
    return tuple(turns)


def usage_fields(usage: Usage) -> dict[str, Any]:
    """What is known of a usage; a count that is unknown is left out, never zero."""
    row = {field.name: getattr(usage, field.name) for field in attrs.fields(Usage)}
    return {key: value for key, value in row.items() if value is not None}


def usage_from_fields(row: Mapping[str, Any]) -> Usage:
    counts = {
        key: take(row, key, (int, type(None)), None)
        for key in ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens")
    }
    return Usage(
        calls=take(row, "calls", int, 0),
        unknown_calls=take(row, "unknown_calls", int, 0),
        usd=take(row, "usd", _OPTIONAL_NUMBER, None),
        **counts,
    )


# Outcomes --------------------------------------------------------------------------------------------------


def outcome_fields(outcome: Outcome) -> dict[str, Any]:
    """An outcome as `outcomes.jsonl` holds it: everything but the turns and files of its attempt.

    The store adds what makes it a line: `content_hash` and `time`.
    """
    score, missing, attempt = outcome.score, outcome.missing, outcome.attempt
    row: dict[str, Any] = {
        "id": outcome.task_id,
        "task_type": outcome.kind,
        "skill_hash": outcome.skill_hash,
        "sample": outcome.sample,
        "folder": outcome.folder,
    }
    if score is not None:
        row |= {"hard": score.hard, "soft": score.soft, "feedback": score.feedback, "scores": dict(score.named)}
    if missing is not None:
        row["missing"] = {"reason": missing.reason, "message": missing.message}
    if attempt is not None:
        row["attempt"] = {
            "output": attempt.output,
            "ended": attempt.ended,
            "seconds": attempt.seconds,
            "usage": usage_fields(attempt.usage),
            "state": dict(attempt.state),
        }
    return row


def outcome_from_fields(row: Mapping[str, Any]) -> Outcome:
    """The inverse of `outcome_fields`. Raises `ValueError` naming the field."""
    score = missing = attempt = None
    if "hard" in row:
        named = take(row, "scores", dict, {})
        score = Score(
            take(row, "hard", _NUMBER),
            take(row, "soft", _NUMBER),
            take(row, "feedback", str, ""),
            {name: float(take(named, name, _NUMBER)) for name in named},
        )
    if "missing" in row:
        raw = take(row, "missing", dict)
        missing = Missing(take(raw, "reason", str), take(raw, "message", str, ""))
    if "attempt" in row:
        raw = take(row, "attempt", dict)
        attempt = Attempt(
            output=take(raw, "output", str),
            ended=take(raw, "ended", (str, type(None)), None),
            seconds=float(take(raw, "seconds", _NUMBER, 0.0)),
            usage=usage_from_fields(take(raw, "usage", dict, {})),
            state=take(raw, "state", dict, {}),
        )
    if (score is None) == (missing is None):
        raise ValueError("exactly one of 'hard' and 'missing' must be there")
    return Outcome(
        task_id=take(row, "id", str),
        kind=take(row, "task_type", str, ""),
        skill_hash=take(row, "skill_hash", str),
        sample=take(row, "sample", int),
        attempt=attempt,
        score=score,
        missing=missing,
        folder=take(row, "folder", str, ""),
    )


def result_row(outcome: Outcome, task: Task | None = None) -> dict[str, Any]:
    """A row of a folder's `results.jsonl`, for people and tools; `question` where the task has one.

    `n_turns` counts the target's turns, or its calls where the outcome came without its trajectory. A missing
    outcome has null scores and its reason in `missing`.
    """
    score, missing, attempt = outcome.score, outcome.missing, outcome.attempt
    reason = ""
    if missing is not None:
        reason = f"{missing.reason}: {missing.message}".removesuffix(": ")
    elif score is not None and score.hard < 1.0:
        reason = score.feedback
    row: dict[str, Any] = {
        "id": outcome.task_id,
        "hard": score.hard if score else None,
        "soft": score.soft if score else None,
        "n_turns": _turns(attempt) if attempt else 0,
        "fail_reason": reason,
        "task_type": outcome.kind,
        "predicted_answer": attempt.output if attempt else "",
        "scores": dict(score.named) if score else {},
        "ended": attempt.ended if attempt else None,
        "seconds": round(attempt.seconds, 3) if attempt else None,
        "missing": missing.reason if missing else None,
        "folder": outcome.folder,
        "sample": outcome.sample,
        "skill_hash": outcome.skill_hash,
    }
    if task is not None and isinstance(task.inputs.get("question"), str):
        row["question"] = task.inputs["question"]
    return row


def _turns(attempt: Attempt) -> int:
    return sum(turn.role == "assistant" for turn in attempt.trajectory) or attempt.usage.calls


# What a step leaves ----------------------------------------------------------------------------------------


def proposal_fields(proposal: Proposal, mode: UpdateMode) -> dict[str, Any]:
    """`patches/minibatch_<group>.json`: one analyst's reply as it was understood."""
    row: dict[str, Any] = {"source_type": proposal.source, "batch_size": proposal.size}
    if proposal.source == "failure":
        row["failure_summary"] = [
            {"failure_type": one.pattern, "count": one.count, "description": one.description}
            for one in proposal.failures
        ]
    else:
        row["success_patterns"] = list(proposal.success_patterns)
    if proposal.notes:
        row["appendix_notes"] = list(proposal.notes)
    row["patch"] = {"reasoning": proposal.reasoning, mode.payload: [item_fields(item, mode) for item in proposal.items]}
    row["task_ids"] = list(proposal.task_ids)
    if proposal.error is not None:
        row["error"] = proposal.error
    return row


def update_fields(update: Update, mode: UpdateMode) -> dict[str, Any]:
    """`merged_patch.json` and `ranked_edits.json`."""
    row: dict[str, Any] = {
        "reasoning": update.reasoning,
        mode.payload: [item_fields(item, mode) for item in update.items],
    }
    if update.ranking is not None:
        row["ranking_details"] = dict(update.ranking)
    if update.over_budget:
        row["over_budget"] = [item_fields(item, mode) for item in update.over_budget]
    if update.errors:
        row["errors"] = list(update.errors)
    return row


def report_fields(report: ItemReport, mode: UpdateMode) -> dict[str, Any]:
    """A row of `edit_apply_report.json`: the item, its `status` (one of `EDIT_STATUSES`), why in `detail`."""
    return {
        "index": report.index,
        **item_fields(report.item, mode),
        "status": report.status,
        "detail": report.detail,
    }


def item_fields(item: Any, mode: UpdateMode) -> dict[str, Any]:
    """An item as its update mode writes it; what is no item of it (an invalid one) as it came."""
    if attrs.has(type(item)):
        return mode.write_item(item)
    return dict(item) if isinstance(item, Mapping) else {"item": repr(item)}


def apply_summary(applied: Applied) -> dict[str, int]:
    """`edit_apply_summary` of a step record: how many items, and how many with each status that occurred."""
    statuses = [report.status for report in applied.reports]
    return {"total": len(statuses), **{status: statuses.count(status) for status in dict.fromkeys(statuses)}}
