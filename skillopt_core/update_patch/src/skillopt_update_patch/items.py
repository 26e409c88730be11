"""One edit as JSON: read with every field checked, written so that reading gives it back, and in one line."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, get_args

from skillopt_kernel.records import Edit, EditOp

OPERATIONS: tuple[str, ...] = get_args(EditOp)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
"""Characters that no skill file can hold: control characters, and halves of surrogate pairs."""

ITEM_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "op": {"type": "string", "enum": list(OPERATIONS)},
        "target": {
            "type": "string",
            "description": "text copied verbatim from the skill that occurs there exactly once; not used by append",
        },
        "content": {"type": "string", "description": "the new Markdown text; not used by delete"},
        "context": {
            "type": "string",
            "description": "only where the target occurs more than once: longer text around it that occurs once",
        },
        "occurrence": {
            "type": "integer",
            "minimum": 1,
            "description": "or which occurrence of the target is meant, counted from 1 at the top of the skill",
        },
        "support_count": {"type": "integer", "description": "how many trajectories or patches call for this edit"},
        "source_type": {"type": "string", "enum": ["failure", "success"]},
    },
    "required": ["op", "content"],
}


def read_edit(raw: Mapping[str, Any]) -> Edit:
    """The edit in one JSON object of a reply. Raises `ValueError`, saying why, when there is none.

    Fields that only inform (`support_count`, `source_type`, `merge_level`) are dropped when they are not usable;
    unknown fields are ignored.
    """
    if not isinstance(raw, Mapping):
        raise ValueError(f"an edit must be an object, not {_kind(raw)}")
    op = raw.get("op")
    if op not in OPERATIONS:
        raise ValueError(f"the operation is {op!r}, but must be one of {', '.join(OPERATIONS)}")
    content = raw.get("content")
    edit = Edit(
        op=op,
        content=("" if content is None else content) if op == "delete" else content,  # type: ignore[arg-type]
        target=_optional_text(raw, "target"),
        support=_count(raw.get("support_count")),
        source=raw["source_type"] if raw.get("source_type") in ("failure", "success", "mixed") else None,
        context=_optional_text(raw, "context"),
        occurrence=_occurrence(raw.get("occurrence")),
        merge_level=_count(raw.get("merge_level")),
    )
    wrong = problem(edit)
    if wrong:
        raise ValueError(wrong)
    return edit


def problem(edit: Edit) -> str | None:
    """What makes an edit unusable whatever the skill, as a sentence; `None`: nothing."""
    if edit.op not in OPERATIONS:
        return f"the operation is {edit.op!r}, but must be one of {', '.join(OPERATIONS)}"
    for name in ("content", "target", "context"):
        value = getattr(edit, name)
        if not isinstance(value, str):
            return f"the {name} must be text, not {_kind(value)}"
        if _UNPRINTABLE.search(value):
            return f"the {name} holds a control character or half a surrogate pair, which no text file can hold"
    if edit.occurrence is not None and edit.occurrence < 1:
        return f"the occurrence is counted from 1, not {edit.occurrence}"
    return None


def write_edit(edit: Edit) -> dict[str, Any]:
    """The JSON object of an edit: always `op` and `content`, the rest where it is given."""
    written: dict[str, Any] = {"op": edit.op, "content": edit.content}
    optional = {
        "target": edit.target or None,
        "context": edit.context or None,
        "occurrence": edit.occurrence,
        "support_count": edit.support,
        "source_type": edit.source,
        "merge_level": edit.merge_level,
    }
    return written | {name: value for name, value in optional.items() if value is not None}


def describe_edit(edit: Edit) -> str:
    """One line, nothing shortened: `replace target="- a" content="- b" support=3 source=failure`.

    What a hook put in the place of an edit is described as it came, for the report that it is invalid.
    """
    if not isinstance(edit, Edit):
        return json.dumps(edit, ensure_ascii=False, default=repr)
    parts: list[str] = [edit.op]
    if edit.target:
        parts.append(f"target={json.dumps(edit.target, ensure_ascii=False)}")
    if edit.content or edit.op != "delete":
        parts.append(f"content={json.dumps(edit.content, ensure_ascii=False)}")
    if edit.support is not None:
        parts.append(f"support={edit.support}")
    if edit.source:
        parts.append(f"source={edit.source}")
    return " ".join(parts)


def _optional_text(raw: Mapping[str, Any], key: str) -> Any:
    value = raw.get(key)
    return "" if value is None else value


def _count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return int(value)


def _occurrence(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"the occurrence must be a whole number from 1, not {value!r}")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return "missing or null" if value is None else names.get(type(value), type(value).__name__)
