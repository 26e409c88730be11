"""What a run's calls used, as records and summaries tell it. Unknown tokens are `null`, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillopt_kernel.models.ledger import TOLD, Ledger

_ALWAYS = ("calls", "prompt_tokens", "completion_tokens")
_COUNTS = ("failed_calls", "unknown_calls")


def tokens_by_stage(ledger: Ledger, **where: int | None) -> dict[str, dict[str, Any]]:
    """The `tokens` of a record: `{stage: {calls, prompt_tokens, completion_tokens, ...}}` of the calls `where` says.

    `failed_calls`, `unknown_calls` and `unpriced_calls` stand there where there are any, so that a sum that is not
    whole can be told from one that is.
    """
    return {row["stage"]: _fields(row) for row in ledger.sums("stage", **where)}


def token_summary(ledger: Ledger) -> dict[str, dict[str, Any]]:
    """The `token_summary` of summary.json: every stage, each role as `_target`, ..., and `_total`.

    Each has `total_tokens`, too.
    """
    summary = tokens_by_stage(ledger)
    summary |= {f"_{row['role']}": _fields(row) for row in ledger.sums("role")}
    summary["_total"] = _fields(next(iter(ledger.sums()), {"calls": 0}))
    for fields in summary.values():
        told = [count for count in (fields["prompt_tokens"], fields["completion_tokens"]) if count is not None]
        fields["total_tokens"] = sum(told) if told else None
    return summary


def _fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of one sum: those that are always there, and the others where there is something to tell."""
    fields = {name: row.get(name) for name in _ALWAYS}
    fields |= {name: row[name] for name in TOLD if row.get(name) is not None}
    fields |= {name: row[name] for name in _COUNTS if row.get(name)}
    if fields.get("usd") is not None and row["unpriced_calls"]:
        fields["unpriced_calls"] = row["unpriced_calls"]
    return fields
