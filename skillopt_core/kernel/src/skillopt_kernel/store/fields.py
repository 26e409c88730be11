"""Records as fields of files, and back: the one place that knows the names that files use.

What is read back has a strict inverse, one cattrs converter without coercion: 1.0 is never read from true, and
`ValueError` names the field that is missing or of the wrong type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import attrs
import cattrs

from skillopt_kernel.interfaces import UpdateMode
from skillopt_kernel.records import Applied, Attempt, ItemReport, Outcome, Proposal, Task, Trajectory, Update

T = TypeVar("T")


def _exactly(value: Any, kind: type) -> Any:
    if type(value) is not kind and (kind, type(value)) != (float, int):
        raise TypeError(f"must be {kind.__name__}, not {value!r:.80}")
    return kind(value)


_CONVERTER = cattrs.Converter(omit_if_default=True)
for _kind in (str, int, float):
    _CONVERTER.register_structure_hook(_kind, _exactly)


def structure(value: Any, kind: type[T]) -> T:
    """A parsed JSON value as `kind`. Raises `ValueError` naming each field that is missing or wrong."""
    try:
        return _CONVERTER.structure(value, kind)
    except Exception as error:
        told = [line.rpartition(" @ ") for line in cattrs.transform_error(error, "", _told)]
        sentences = [f"{path.lstrip('.')}: {what}" if path else what for what, _, path in told]
        raise ValueError("; ".join(sentences)) from error


def _told(error: BaseException, _: object) -> str:
    return "is missing" if isinstance(error, KeyError) else str(error.args[0] if error.args else error)


def trajectory_fields(trajectory: Trajectory) -> list[dict[str, Any]]:
    """The turns of conversation.json: `{role, content, tool_calls?, tool_call_id?, step?}`."""
    return [_CONVERTER.unstructure(turn) for turn in trajectory]


def outcome_fields(outcome: Outcome) -> dict[str, Any]:
    """An outcome as `outcomes.jsonl` holds it: everything but the turns and files of its attempt, defaults left out.

    The score's fields stand beside the task's. The store adds what makes it a line: `content_hash` and `time`.
    """
    light = outcome.attempt and attrs.evolve(outcome.attempt, trajectory=(), files={})
    row = _CONVERTER.unstructure(attrs.evolve(outcome, attempt=light))
    return {"id": row.pop("task_id"), **row.pop("score", {}), **row}


def outcome_from_fields(row: Mapping[str, Any]) -> Outcome:
    """The inverse of `outcome_fields`. Raises `ValueError` naming the field."""
    if ("hard" in row) == ("missing" in row):
        raise ValueError("exactly one of 'hard' and 'missing' must be there")
    known = {**row, "task_id": row.get("id")}
    return structure({**known, "score": row} if "hard" in row else known, Outcome)


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
    row["patch"] = {"reasoning": proposal.reasoning, mode.payload: _items(proposal.items, mode)}
    row["task_ids"] = list(proposal.task_ids)
    if proposal.error is not None:
        row["error"] = proposal.error
    return row


def update_fields(update: Update, mode: UpdateMode) -> dict[str, Any]:
    """`merged_patch.json` and `ranked_edits.json`."""
    row: dict[str, Any] = {"reasoning": update.reasoning, mode.payload: _items(update.items, mode)}
    if update.ranking is not None:
        row["ranking_details"] = dict(update.ranking)
    if update.over_budget:
        row["over_budget"] = _items(update.over_budget, mode)
    if update.errors:
        row["errors"] = list(update.errors)
    return row


def report_fields(report: ItemReport, mode: UpdateMode) -> dict[str, Any]:
    """A row of `edit_apply_report.json`: the item, its `status` (one of `EDIT_STATUSES`), why in `detail`."""
    item = _item(report.item, mode)
    return {"index": report.index, **item, "status": report.status, "detail": report.detail}


def _items(items: Sequence[Any], mode: UpdateMode) -> list[dict[str, Any]]:
    return [_item(item, mode) for item in items]


def _item(item: Any, mode: UpdateMode) -> dict[str, Any]:
    """An item as its update mode writes it; what is no item of it (an invalid one) as it came."""
    if attrs.has(type(item)):
        return mode.write_item(item)
    return dict(item) if isinstance(item, Mapping) else {"item": repr(item)}


def apply_summary(applied: Applied) -> dict[str, int]:
    """`edit_apply_summary` of a step record: how many items, and how many with each status that occurred."""
    statuses = [report.status for report in applied.reports]
    return {"total": len(statuses), **{status: statuses.count(status) for status in dict.fromkeys(statuses)}}
