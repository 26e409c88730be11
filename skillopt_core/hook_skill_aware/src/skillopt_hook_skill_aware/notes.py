"""Notes: one line each, told apart by what they say, in the appendix region of a skill."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from skillopt_kernel.skill import SkillDocument, neutralise_markers, with_region
from skillopt_kernel.store.patterns import clipped

HEADING = "## Execution Notes Appendix"
LONGEST = 500
"""Characters of a note that a model writes. A longer one is no reminder and is cut."""

_LIST_MARK = re.compile(r"^(?:(?:[-*+\u2022]|\d{1,3}[.)]|#{1,6})(?:\s+|$))+")
_TRAILING = " .;:,_-"


def one_line(text: str) -> str:
    """The note as one line of a list: no marks of lists or headings, no region markers; "" if nothing else is in it.

    White space is collapsed, control characters and halves of surrogate pairs are taken out.
    """
    lines = [_LIST_MARK.sub("", line.strip()) for line in text.splitlines()]
    joined = "".join(c for c in " ".join(" ".join(lines).split()) if unicodedata.category(c) not in ("Cc", "Cs"))
    return _LIST_MARK.sub("", " ".join(neutralise_markers(joined).split()))


def short(note: str) -> str:
    """The note as one line, cut behind a word where it is too long."""
    line = one_line(note)
    return line if len(line) <= LONGEST else clipped(line, LONGEST).rsplit(" ", 1)[0] + " ..."


def key_of(note: str) -> str:
    """Equal for notes that say the same: white space collapsed, without trailing punctuation, in one case."""
    return " ".join(note.split()).rstrip(_TRAILING).casefold()


def distinct(notes: Iterable[str]) -> tuple[str, ...]:
    """The notes as lines, the first of those that say the same, in order; what holds no words is left out."""
    kept: dict[str, str] = {}
    for line in map(one_line, notes):
        if key := key_of(line):
            kept.setdefault(key, line)
    return tuple(kept.values())


def without(notes: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """The notes of which none of `others` says the same."""
    known = {key_of(other) for other in others}
    return tuple(note for note in notes if key_of(note) not in known)


def notes_in(skill: str) -> tuple[str, ...]:
    """The notes in the appendix of a skill, in order: each line of its closed regions but the heading."""
    found = [region.content for region in SkillDocument.parse(skill).regions if region.kind == "appendix"]
    lines = [line for content in found for line in content.splitlines() if line.strip() != HEADING]
    return distinct(lines)


def with_notes(skill: str, notes: Iterable[str]) -> str:
    """The skill with these notes, and no others, in its appendix; without notes there is no appendix."""
    lines = [f"- {note}" for note in distinct(notes)]
    return with_region(skill, "appendix", "\n".join([HEADING, "", *lines]) if lines else "")


def read_notes(reply: Mapping[str, Any]) -> tuple[str, ...]:
    """The notes of a reply's `appendix_notes`: texts, one text, or objects with `note` or `content`."""
    raw = reply.get("appendix_notes")
    listed = raw if isinstance(raw, list) else [raw]
    texts = [(one.get("note") or one.get("content")) if isinstance(one, Mapping) else one for one in listed]
    return distinct(short(text) for text in texts if isinstance(text, str))
