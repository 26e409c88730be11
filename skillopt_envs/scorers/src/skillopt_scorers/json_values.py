"""JSON values: read from an answer, compared, looked into, and shown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from skillopt_kernel.models.parsing import extract_json, extract_json_array

ABSENT = object()
"""What stands for a field that is not there; no JSON value equals it."""


def read_json(answer: str) -> Any:
    """The one JSON value of an answer, fenced or bare, also inside prose; `ABSENT` when there is none or several."""
    found = extract_json(answer)
    if found is None:
        found = extract_json_array(answer)
    if found is not None:
        return found
    try:
        return json.loads(answer, parse_constant=_refused)
    except (ValueError, RecursionError):
        return ABSENT


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 1 is 1.0, true is not 1, and the order of an object's keys does not matter."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return (type(one) is type(other) and bool(one == other)) or _numbers_equal(one, other)


def _numbers_equal(one: Any, other: Any) -> bool:
    return isinstance(one, int | float) and isinstance(other, int | float) and one == other


def canonical(value: Any) -> str:
    """A text that two JSON values share when they are equal: 1 is 1.0, and true is not 1."""

    def plain(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return list(map(plain, value))
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return json.dumps(plain(value), sort_keys=True)


def depth(value: Any, most: int) -> int:
    """How deep a JSON value is nested, 0 for a plain one; it is not looked at beyond `most` levels."""
    level, found = [value], 0
    while found <= most:
        inner = [each for each in level if isinstance(each, Mapping | list | tuple) and each]
        if not inner:
            break
        level = [item for each in inner for item in (each.values() if isinstance(each, Mapping) else each)]
        found += 1
    return found


def inside(value: Any, path: str) -> Any:
    """The field that `a.b.0` names, or `ABSENT`. A key that holds dots is found as it is first."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    for step in path.split("."):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list | tuple) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return ABSENT
    return value


def as_text(value: Any) -> str:
    """A text as it is, any other value as JSON; nothing for a field that is not there."""
    if value is ABSENT or value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
