"""What an audit finds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from attrs import field, frozen
from skillopt_kernel.store.patterns import clipped as cut
from skillopt_kernel.store.patterns import redact_diagnostics

IDS_NAMED = 5


@frozen
class Finding:
    """One thing that the audit found in the data.

    kind     which check found it: option_text, option_label, longest_option, no_right_option, constant_answer,
             repeated_inputs, contradicting_references, shared_inputs, repeated_ids, reference_in_inputs
    split    the split, or two as "train and test"
    message  a sentence; numbers: what it rests on; tasks: the ids it speaks of
    note     worth knowing, no reason to refuse
    """

    kind: str
    split: str
    message: str
    numbers: Mapping[str, Any] = field(factory=dict)
    tasks: tuple[str, ...] = ()
    note: bool = False


@frozen
class Report:
    """An audit: how many tasks each split has, and what was found in the order of splits."""

    counts: Mapping[str, int]
    found: tuple[Finding, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is a reason to look at the data before anything is trained on it."""
        return tuple(one for one in self.found if not one.note)

    @property
    def name(self) -> str:
        """`audit-` and 8 hex digits over the findings: the same findings have the same name."""
        told = json.dumps([attrs.asdict(one) for one in self.findings], sort_keys=True, default=str)
        return f"audit-{hashlib.sha256(told.encode('utf-8')).hexdigest()[:8]}"

    def as_json(self) -> dict[str, Any]:
        kinds = {"findings": self.findings, "notes": [one for one in self.found if one.note]}
        told = {
            name: [attrs.asdict(one, filter=lambda each, _: each.name != "note") for one in found]
            for name, found in kinds.items()
        }
        return {"audit": self.name, "splits": dict(self.counts), **told}


def in_words(count: int, noun: str = "task") -> str:
    """A number of things in words: "1 task", "3 tasks"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def named(ids: Sequence[str]) -> str:
    """Some ids in words, the first few by name."""
    more = len(ids) - IDS_NAMED
    return ", ".join(map(repr, ids[:IDS_NAMED])) + (f" and {more} more" if more > 0 else "")


def clipped(text: str, length: int = 80) -> str:
    """A text on one line, in quotation marks, shortened where it is long, without what looks like a credential."""
    line = " ".join(redact_diagnostics(text).split())
    return f'"{line if len(line) <= length else cut(line, length - 3) + "..."}"'
