"""What a run's model calls used, by role and stage. The record of each call for replay has its place here."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import attrs
from attrs import field, frozen

from skillopt_kernel.records import Usage

Key = tuple[str, str]
"""(role, stage)"""

TOLD = ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "usd")
"""What a provider tells of a call, or does not."""


@frozen
class Tally:
    """Calls of one role in one stage: how many failed, and how many were answered and what they used.

    Tokens are `None` while no call told any. `usage.unknown_calls` says how many calls did not tell; a failed
    call used tokens that nobody knows only if it got as far as a reply, and counts as failed, not as unknown.
    """

    failed_calls: int = 0
    usage: Usage = field(factory=Usage)

    @property
    def calls(self) -> int:
        return self.failed_calls + self.usage.calls

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.failed_calls + other.failed_calls, self.usage + other.usage)

    def __sub__(self, earlier: Tally) -> Tally:
        used: dict[str, Any] = attrs.asdict(self.usage)
        for name, before in attrs.asdict(earlier.usage).items():
            if before is not None:
                used[name] -= before
        if used["calls"] == used["unknown_calls"]:  # when none of them told anything, it is unknown, not zero
            used |= dict.fromkeys(TOLD)
        return Tally(self.failed_calls - earlier.failed_calls, Usage(**used))


class Ledger:
    """The tallies of one run. Safe to use from many threads."""

    def __init__(self) -> None:
        self._tallies: dict[Key, Tally] = {}
        self._lock = threading.Lock()

    def record(self, role: str, stage: str, usage: Usage | None) -> None:
        """Count one call. `usage` `None`: the call failed."""
        if usage is None:
            tally = Tally(failed_calls=1)
        else:
            told = usage.prompt_tokens is not None or usage.completion_tokens is not None
            tally = Tally(usage=attrs.evolve(usage, calls=1, unknown_calls=0 if told else 1))
        with self._lock:
            self._tallies[role, stage] = self._tallies.get((role, stage), Tally()) + tally

    def tallies(self) -> dict[Key, Tally]:
        with self._lock:
            return dict(self._tallies)

    def total(self, role: str | None = None) -> Tally:
        """The sum of one role, or of all."""
        return sum((tally for (who, _), tally in self.tallies().items() if role in (None, who)), Tally())

    def since(self, earlier: Mapping[Key, Tally]) -> dict[Key, Tally]:
        """What was called after `earlier = ledger.tallies()`."""
        later = {key: tally - earlier.get(key, Tally()) for key, tally in self.tallies().items()}
        return {key: tally for key, tally in later.items() if tally.calls}

    def snapshot(self) -> list[dict[str, Any]]:
        """All tallies as JSON, for a checkpoint."""
        return [
            {"role": role, "stage": stage, **attrs.asdict(tally)} for (role, stage), tally in self.tallies().items()
        ]

    def restore(self, snapshot: list[dict[str, Any]]) -> None:
        """Take the tallies of `snapshot()` in place of the present ones."""
        with self._lock:
            self._tallies = {
                (entry["role"], entry["stage"]): Tally(entry["failed_calls"], Usage(**entry["usage"]))
                for entry in snapshot
            }


def tokens_by_stage(tallies: Mapping[Key, Tally]) -> dict[str, dict[str, Any]]:
    """The `tokens` of a step record: `{stage: {calls, prompt_tokens, completion_tokens, ...}}`.

    Unknown tokens are `null`. `failed_calls` and `unknown_calls` stand there where there are any, so that a sum
    that is not whole can be told from one that is.
    """
    stages: dict[str, Tally] = {}
    for (_, stage), tally in sorted(tallies.items()):
        stages[stage] = stages.get(stage, Tally()) + tally
    return {stage: _as_fields(tally) for stage, tally in stages.items()}


def token_summary(ledger: Ledger) -> dict[str, dict[str, Any]]:
    """The `token_summary` of summary.json: every stage, and `_total`, each with `total_tokens`."""
    stages = tokens_by_stage(ledger.tallies()) | {"_total": _as_fields(ledger.total())}
    for fields in stages.values():
        told = [count for count in (fields["prompt_tokens"], fields["completion_tokens"]) if count is not None]
        fields["total_tokens"] = sum(told) if told else None
    return stages


def _as_fields(tally: Tally) -> dict[str, Any]:
    fields = attrs.asdict(tally.usage) | {"calls": tally.calls, "failed_calls": tally.failed_calls}
    always = ("calls", "prompt_tokens", "completion_tokens")
    return {name: value for name, value in fields.items() if value or name in always}
