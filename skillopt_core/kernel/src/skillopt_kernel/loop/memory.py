"""The step buffer: what the optimizer is told of the epoch's earlier steps, and as configured of earlier epochs.

An entry tells what was rejected and by how much, what could not be applied and why, and which failures were
seen. Selection tasks and their trajectories never enter it: only the gate's two numbers do.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import attrs
from attrs import frozen

from skillopt_kernel.interfaces import Step, UpdateMode
from skillopt_kernel.models.pricing import estimate_tokens
from skillopt_kernel.records import FailurePattern, GateDecision, Outcome, Proposal
from skillopt_kernel.store.patterns import clipped

TOLD_STATUSES = ("unmatched", "ambiguous", "protected", "invalid")
"""What an optimizer can do better next time; no_op and over_budget are no mistakes of an anchor."""

KEPT_TOKENS = 4_000
"""How much of the buffer `gradient.keep_step_buffer` keeps at an epoch's end, in estimated tokens."""


@frozen(kw_only=True)
class MemoryEntry:
    """One step as the optimizer is told of it; also `trajectory_digest.json`."""

    step: int
    action: str
    n_total: int
    n_fail: int
    failure_patterns: tuple[dict[str, Any], ...] = ()
    score_before: float | None = None
    score_after: float | None = None
    score_after_at_most: bool = False
    refused: str = ""
    rejected_edits: tuple[str, ...] = ()
    not_applied: tuple[dict[str, str], ...] = ()


def remember(step: Step, mode: UpdateMode, decision: GateDecision, failure_below: float) -> MemoryEntry:
    """The entry of a step that has just ended, whichever way."""
    scored = [outcome for outcome in step.outcomes if outcome.scored]
    failed = [outcome for outcome in scored if outcome.failed(failure_below)]
    reports = step.applied.reports if step.applied is not None else ()
    entry = MemoryEntry(
        step=step.number,
        action=decision.action,
        n_total=len(scored),
        n_fail=len(failed),
        failure_patterns=failure_patterns(step.proposals, failed),
        not_applied=tuple(
            {"edit": _described(mode, report.item), "status": report.status, "detail": report.detail}
            for report in reports
            if report.status in TOLD_STATUSES
        ),
    )
    if decision.action != "reject":
        return entry
    return attrs.evolve(
        entry,
        score_before=decision.current_score,
        score_after=decision.bound if decision.score is None else decision.score,
        score_after_at_most=decision.bound is not None,
        refused="" if decision.asked else decision.reason,
        rejected_edits=tuple(mode.describe_item(report.item) for report in reports if report.status == "applied"),
    )


def _described(mode: UpdateMode, item: Any) -> str:
    """One line of an item; one that could not be read stands as it came."""
    return mode.describe_item(item) if attrs.has(type(item)) else clipped(repr(item), 200)


def failure_patterns(proposals: Sequence[Proposal], failed: Sequence[Outcome] = ()) -> tuple[dict[str, Any], ...]:
    """The causes that analysts named, each with the tasks of its own group; equal names are joined.

    Where the analyst of a group named none, its failed attempts are told by the first 100 characters of their
    feedback, up to a colon.
    """
    unnamed = {name for one in proposals if one.source == "failure" and not one.failures for name in one.task_ids}
    found = [failure for proposal in proposals for failure in proposal.failures]
    causes = [(one.task_id, clipped(one.score.feedback.partition(":")[0].strip(), 100)) for one in failed if one.score]
    found += [FailurePattern(cause, 1, task_ids=(name,)) for name, cause in causes if cause and name in unnamed]
    joined: dict[str, FailurePattern] = {}
    for one in found:
        earlier = joined.get(one.pattern, attrs.evolve(one, count=0, task_ids=()))
        ids = tuple(dict.fromkeys((*earlier.task_ids, *one.task_ids)))
        joined[one.pattern] = attrs.evolve(earlier, count=earlier.count + one.count, task_ids=ids)
    return tuple(attrs.asdict(one) | {"task_ids": list(one.task_ids)} for one in joined.values())


def kept(entries: Sequence[MemoryEntry], tokens: int = KEPT_TOKENS) -> list[MemoryEntry]:
    """The newest entries whose text has at most about so many tokens together, in their order."""
    sizes = accumulate(estimate_tokens(_entry_text(entry)) for entry in reversed(entries))
    return list(entries[len(entries) - sum(size <= tokens for size in sizes) :])


def memory_text(entries: Sequence[MemoryEntry]) -> str:
    """The buffer as the section "What was tried before"; empty when there is nothing to tell."""
    return "\n\n".join(_entry_text(entry) for entry in entries)


def _entry_text(entry: MemoryEntry) -> str:
    lines = [f"### Step {entry.step}: {entry.action.upper()} ({entry.n_fail} of {entry.n_total} attempts failed)"]
    for pattern in entry.failure_patterns:
        text = f"{pattern['pattern']}: {pattern['description']}".removesuffix(": ")
        lines.append(f"- failure seen: {text} (about {pattern['count']} times)")
    if entry.rejected_edits and entry.refused:
        lines.append(f"These edits together were refused untried, since {entry.refused}:")
    elif entry.rejected_edits:
        most = "at most " if entry.score_after_at_most else ""
        lines.append(
            f"These edits together did not help: the score went from {_number(entry.score_before)} "
            f"to {most}{_number(entry.score_after)}. Do not propose them again as they were:"
        )
    lines += [f"{number}. {text}" for number, text in enumerate(entry.rejected_edits, 1)]
    lines += ["These edits could not be applied:"] if entry.not_applied else []
    lines += [f"- {one['edit']} ({one['status']}: {one['detail']})" for one in entry.not_applied]
    return "\n".join(lines)


def _number(score: float | None) -> str:
    return "unknown" if score is None else f"{score:.4f}"
