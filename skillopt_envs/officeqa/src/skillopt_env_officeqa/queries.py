"""The queries in a reply, as text between tags: any chat model can write them, with tools or without."""

from __future__ import annotations

import json
import re
from typing import Any

_TAGS = re.compile(r"<\s*search_queries\s*>(.*?)(?:<\s*/\s*search_queries\s*>|\Z)", re.DOTALL | re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_PARTS = re.compile(r"[,;]\s*")
_KEYS = ("queries", "search_queries", "query")


def search_queries(reply: str) -> list[str]:
    """The queries of the last pair of tags, once each: a JSON list, object or text, or one a line.

    A single line that is no JSON is parted at commas and semicolons; a text of a JSON list is one query as it stands.
    """
    found = _TAGS.findall(reply)
    return list(dict.fromkeys(_written(found[-1].strip()))) if found else []


def _written(text: str) -> list[str]:
    try:
        return _listed(json.loads(text))
    except (ValueError, RecursionError):
        pass
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) == 1 and not _BULLET.match(lines[0]):
        lines = _PARTS.split(lines[0])
    return [query for line in lines if (query := _BULLET.sub("", line).strip().strip("\"'"))]


def _listed(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = next((value[key] for key in _KEYS if key in value), [])
    values = value if isinstance(value, list) else [value]
    return [query for entry in values if isinstance(entry, str | int | float) and (query := str(entry).strip())]
