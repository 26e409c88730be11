"""One suggestion as JSON: read with every field checked, written so that reading gives it back, and in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen
from skillopt_kernel.records import Source

TYPES = ("add_rule", "remove_rule", "merge_rules", "reorganize", "compress", "clarify")
PRIORITIES = ("high", "medium", "low")

ITEM_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "enum": list(TYPES)},
        "title": {"type": "string", "description": "the change in a few words"},
        "motivation": {"type": "string", "description": "what in the trajectories calls for it, in general terms"},
        "instruction": {
            "type": "string",
            "description": "what to change and how, so that one who has seen only the skill can do it; the text of a "
            "new rule in full, a rule that is there by its wording",
        },
        "priority_hint": {"type": "string", "enum": list(PRIORITIES)},
        "support_count": {"type": "integer", "description": "how many trajectories or patches call for it"},
        "source_type": {"type": "string", "enum": ["failure", "success"]},
    },
    "required": ["type", "title", "instruction"],
}


@frozen
class Suggestion:
    """One change of the skill in words. `support` and `source` as an `Edit` has them."""

    type: str
    instruction: str
    title: str = ""
    motivation: str = ""
    priority: str | None = None
    support: int | None = None
    source: Source | None = None
    merge_level: int | None = None


def read_suggestion(raw: Mapping[str, Any]) -> Suggestion:
    """The suggestion in one JSON object of a reply. Raises `ValueError`, saying why, when there is none.

    Fields that only inform are dropped when they are not usable; unknown fields are ignored.
    """
    if not isinstance(raw, Mapping):
        raise ValueError(f"a suggestion must be an object, not {type(raw).__name__}")
    kind, instruction = raw.get("type"), raw.get("instruction")
    if kind not in TYPES:
        raise ValueError(f"the type is {kind!r}, but must be one of {', '.join(TYPES)}")
    if not isinstance(instruction, str) or not instruction.strip():
        raise ValueError("the instruction must be text that says what to change")
    priority, source = raw.get("priority_hint"), raw.get("source_type")
    return Suggestion(
        type=kind,
        instruction=instruction,
        title=_text(raw.get("title")),
        motivation=_text(raw.get("motivation")),
        priority=priority if priority in PRIORITIES else None,
        support=_count(raw.get("support_count")),
        source=source if source in ("failure", "success", "mixed") else None,
        merge_level=_count(raw.get("merge_level")),
    )


def write_suggestion(item: Suggestion) -> dict[str, Any]:
    """The JSON object of a suggestion: always type, title, motivation and instruction, the rest where it is given."""
    written: dict[str, Any] = {
        "type": item.type,
        "title": item.title,
        "motivation": item.motivation,
        "instruction": item.instruction,
    }
    optional = {
        "priority_hint": item.priority,
        "support_count": item.support,
        "source_type": item.source,
        "merge_level": item.merge_level,
    }
    return written | {name: value for name, value in optional.items() if value is not None}


def describe_suggestion(item: Suggestion) -> str:
    """One line, nothing shortened: `add_rule title="..." instruction="..." priority=high support=3 source=failure`.

    What a hook put in the place of a suggestion is described as it came.
    """
    if not isinstance(item, Suggestion):
        return json.dumps(item, ensure_ascii=False, default=repr)
    parts = [item.type]
    parts += [f"title={json.dumps(item.title, ensure_ascii=False)}"] if item.title else []
    parts.append(f"instruction={json.dumps(item.instruction, ensure_ascii=False)}")
    told = {"priority": item.priority, "support": item.support, "source": item.source}
    return " ".join(parts + [f"{name}={value}" for name, value in told.items() if value is not None])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return int(value) if type(value) in (int, float) and 0 <= value < 1e9 else None
