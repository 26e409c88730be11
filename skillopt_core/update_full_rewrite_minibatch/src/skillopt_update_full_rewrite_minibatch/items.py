"""One whole skill as JSON: read with every field checked, written so that reading gives it back, and in one line."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import frozen
from skillopt_kernel.records import Source
from skillopt_kernel.skill import restore_protected

ITEM_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "description": "what this version is about, in a few words"},
        "change_summary": {
            "type": "array",
            "items": {"type": "string"},
            "description": "each change against the current skill, in one sentence",
        },
        "new_skill": {"type": "string", "description": "the complete Markdown text of the skill"},
        "support_count": {"type": "integer", "description": "how many trajectories or patches call for the changes"},
        "source_type": {"type": "string", "enum": ["failure", "success", "mixed"]},
    },
    "required": ["title", "change_summary", "new_skill"],
}


@frozen
class WholeSkill:
    """One complete version of the skill. `support` and `source` as an `Edit` has them."""

    new_skill: str
    title: str = ""
    change_summary: tuple[str, ...] = ()
    support: int | None = None
    source: Source | None = None
    merge_level: int | None = None


def read_whole_skill(raw: Mapping[str, Any]) -> WholeSkill:
    """The skill in one JSON object of a reply. Raises `ValueError`, saying why, when there is none.

    Fields that only inform are dropped when they are not usable; unknown fields are ignored.
    """
    if not isinstance(raw, Mapping):
        raise ValueError(f"a candidate must be an object, not {type(raw).__name__}")
    text, title, source = raw.get("new_skill"), raw.get("title"), raw.get("source_type")
    if not isinstance(text, str):
        raise ValueError("the new_skill must be the text of the whole skill")
    try:
        restore_protected("", text)
    except ValueError as error:
        raise ValueError(f"the new_skill cannot be used: {error}") from None
    changes = raw.get("change_summary")
    return WholeSkill(
        new_skill=text,
        title=title if isinstance(title, str) else "",
        change_summary=tuple(str(one) for one in changes) if isinstance(changes, list) else (),
        support=_count(raw.get("support_count")),
        source=source if source in ("failure", "success", "mixed") else None,
        merge_level=_count(raw.get("merge_level")),
    )


def write_whole_skill(item: WholeSkill) -> dict[str, Any]:
    """The JSON object of a skill: always title, change_summary and new_skill, the rest where it is given."""
    written: dict[str, Any] = {
        "title": item.title,
        "change_summary": list(item.change_summary),
        "new_skill": item.new_skill,
    }
    optional = {"support_count": item.support, "source_type": item.source, "merge_level": item.merge_level}
    return written | {name: value for name, value in optional.items() if value is not None}


def describe_whole_skill(item: WholeSkill) -> str:
    """One line: `whole skill title="..." changes=["...", ...] support=3`. Where no change is told, the text stands.

    What a hook put in the place of a skill is described as it came.
    """
    if not isinstance(item, WholeSkill):
        return json.dumps(item, ensure_ascii=False, default=repr)
    parts = ["whole skill"]
    parts += [f"title={json.dumps(item.title, ensure_ascii=False)}"] if item.title else []
    if item.change_summary:
        parts.append(f"changes={json.dumps(item.change_summary, ensure_ascii=False)}")
    else:
        parts.append(f"text={json.dumps(item.new_skill, ensure_ascii=False)}")
    told = {"support": item.support, "source": item.source}
    return " ".join(parts + [f"{name}={value}" for name, value in told.items() if value is not None])


def _count(value: Any) -> int | None:
    return int(value) if type(value) in (int, float) and 0 <= value < 1e9 else None
