"""What a program prints as JSON Lines, read within limits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import frozen

LONGEST_LINE = 16_000_000
"""Bytes: a longer line is passed over and counted."""


@frozen
class Events:
    """The objects that a program printed, in order.

    unreadable  lines that are no JSON object; text: the start of what they say, which may be an error in plain words
    """

    items: tuple[Mapping[str, Any], ...]
    unreadable: int = 0
    text: str = ""

    def last(self, *kinds: str) -> Mapping[str, Any] | None:
        """The last event whose `type` is one of these."""
        return next((event for event in reversed(self.items) if event.get("type") in kinds), None)


def read_events(path: Path, longest_text: int = 4000) -> Events:
    """The events in the file of a program's output."""
    items, unreadable, plain = [], 0, ""
    for line in _lines(path):
        try:
            value = None if line is None else json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if isinstance(value, Mapping):
            items.append(value)
            continue
        unreadable += 1
        if line is not None and len(plain) < longest_text:
            plain += line.decode("utf-8", "replace")[: longest_text - len(plain)].rstrip("\r\n") + "\n"
    return Events(tuple(items), unreadable, plain.strip())


def read_object(path: Path) -> Mapping[str, Any] | None:
    """The one JSON object that the file holds; else the last line that is one; `None` when there is none."""
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        events = read_events(path)
        return events.items[-1] if events.items else None
    return value if isinstance(value, Mapping) else None


def _lines(path: Path) -> Iterator[bytes | None]:
    """The lines that are not blank; `None` for one that is too long."""
    with path.open("rb") as file:
        while line := file.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                    pass
                yield None
            elif line.strip():
                yield line


def text_of(value: Any) -> str:
    """A value as text: itself if it is one, "" for nothing, else JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def count_of(value: Any) -> int | None:
    """A count of tokens; `None` for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
