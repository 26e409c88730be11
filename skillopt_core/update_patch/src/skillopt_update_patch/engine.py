"""Applying edits one by one: each is applied, or refused with a status and a sentence; nothing is guessed.

Later edits see what earlier ones did. A text is never changed outside the place that an edit names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from skillopt_kernel.records import Edit, EditBudget, ItemReport
from skillopt_kernel.skill import SkillDocument, Span, neutralise_markers, with_newlines

from skillopt_update_patch.items import problem, read_edit
from skillopt_update_patch.matching import find, fold

_SHOWN = 80
"""How much of an anchor a sentence quotes, in characters; the report holds the edit whole."""


class Refused(Exception):
    """An edit that is not applied: its status and why."""

    def __init__(self, status: str, detail: str) -> None:
        self.status, self.detail = status, detail
        super().__init__(detail)


@frozen
class Place:
    """Where a target was found: its span in the document's text."""

    start: int
    end: int


def apply_edits(
    skill: str, items: Sequence[Any], budget: EditBudget, over_budget: Sequence[Any] = ()
) -> tuple[str, tuple[ItemReport, ...]]:
    """Apply `items` in their order, best first, until the budget is used up.

    An edit that is not applied uses up nothing. Returns the new text and one report an item, numbered from 1;
    those of `over_budget`, which selection left out already, come last.
    """
    text, reports, applied = skill, [], 0
    for index, item in enumerate(items, start=1):
        try:
            edit = _edit(item)
            if not budget.admits(applied + 1):
                raise Refused("over_budget", f"the step may make {budget.limit} edits, and made them")
            text, detail = apply_edit(text, edit, original=skill)
            applied += 1
            reports.append(ItemReport(index, edit, "applied", detail))
        except Refused as refused:
            reports.append(ItemReport(index, item, refused.status, refused.detail))
    for index, item in enumerate(over_budget, start=len(reports) + 1):
        reports.append(
            ItemReport(
                index, item, "over_budget", f"the step may make {budget.limit} edits, and others were ranked higher"
            )
        )
    return text, tuple(reports)


def apply_edit(text: str, edit: Edit, original: str | None = None) -> tuple[str, str]:
    """Apply one edit: the new text and a sentence on where. Raises `Refused` when it is not applied.

    `original` is the text before the step's first edit, to tell an anchor that an earlier edit took away.
    """
    document = SkillDocument.parse(text)
    content = neutralise_markers(with_newlines(edit.content, "\n"))
    if edit.op != "delete" and not content.strip() and not (edit.op == "replace" and edit.target.strip()):
        raise Refused("no_op", "the edit has no content")
    if edit.op == "append":
        changed, detail = _append(document, content)
    else:
        changed, detail = _anchored(document, edit, content, original)
    if changed == text:
        raise Refused("no_op", "the edit leaves the text as it is")
    if SkillDocument.parse(changed).protected_texts != document.protected_texts:
        raise Refused("protected", "the edit would change or make a protected region, a marker or the front matter")
    return changed, detail


def _edit(item: Any) -> Edit:
    if isinstance(item, Mapping):
        try:
            return read_edit(item)
        except ValueError as error:
            raise Refused("invalid", str(error)) from None
    if not isinstance(item, Edit):
        raise Refused("invalid", f"an edit must be an object, not {type(item).__name__}")
    wrong = problem(item)
    if wrong:
        raise Refused("invalid", wrong)
    return item


def _append(document: SkillDocument, content: str) -> tuple[str, str]:
    """At the end of the body: before the first protected region, if there is one."""
    content = content.strip()
    line = _line_of(document.text, content)
    if line is not None:
        raise Refused("no_op", f"the text stands in the skill already, at line {line}")
    newline, text = document.newline, document.text
    content = with_newlines(content, newline)
    regions = [found for found in document.regions if found.closed]
    if not regions:
        return text.rstrip() + newline * 2 + content + newline, "appended at the end"
    start = regions[0].span[0]
    changed = text[:start].rstrip() + newline * 2 + content + newline * 2 + text[start:]
    return changed, "appended before the first protected region"


def _anchored(document: SkillDocument, edit: Edit, content: str, original: str | None) -> tuple[str, str]:
    if not edit.target.strip():
        if edit.op == "delete":
            raise Refused("no_op", "the edit deletes nothing: it names no target")
        raise Refused("unmatched", f"the edit names no target to {edit.op.replace('_', ' ')}; it was not appended")
    place = locate(document, edit, original)
    line = f"line {document.text.count(chr(10), 0, place.start) + 1}"
    if edit.op == "insert_after":
        return _insert(document, place, content), f"inserted after {line}"
    if edit.op == "delete" or not content.strip():
        return _delete(document.text, place), f"deleted at {line}"
    return _replace(document, place, edit, content), f"replaced at {line}"


def locate(document: SkillDocument, edit: Edit, original: str | None = None) -> Place:
    """The one place that the edit's target means. Raises `Refused`: unmatched, ambiguous or protected."""
    guarded = False
    for spans in find(document.text, edit.target):
        chosen = _chosen(document, edit, spans)
        free = [span for span in chosen if not _touches(span, document.protected)]
        guarded = guarded or len(free) < len(chosen)
        if len(free) == 1:
            return Place(*free[0])
        if free:
            raise Refused("ambiguous", _ambiguous(document, edit, len(free)))
    if guarded:
        raise Refused("protected", f"the target {_quoted(edit.target)} stands in, or overlaps, a protected part")
    raise Refused("unmatched", _unmatched(document, edit, original))


def _chosen(document: SkillDocument, edit: Edit, spans: list[Span]) -> list[Span]:
    """The spans that the edit's context and occurrence number leave, if it has such."""
    if edit.context.strip():
        wide = next((found for found in find(document.text, edit.context) if found), [])
        inside = [span for span in spans if any(start <= span[0] and span[1] <= end for start, end in wide)]
        if len(wide) == 1 and inside:
            spans = inside
    if edit.occurrence is None or not spans or len(spans) == 1 == edit.occurrence:
        return spans
    if edit.occurrence > len(spans):
        raise Refused(
            "unmatched", f"the target {_quoted(edit.target)} occurs {len(spans)} times, not {edit.occurrence}"
        )
    return [spans[edit.occurrence - 1]]


def _touches(span: Span, protected: Sequence[Span]) -> bool:
    return any(span[0] < end and start < span[1] for start, end in protected)


def _insert(document: SkillDocument, place: Place, content: str) -> str:
    """After the line in which the target ends; a target's own last line end does not count as a further line."""
    text = document.text
    end = place.start + len(text[place.start : place.end].rstrip())
    line_end = text.find("\n", end)
    point = len(text) if line_end < 0 else line_end + 1
    if any(start < point < stop for start, stop in document.protected):
        raise Refused("protected", "the place after the target lies in a protected part")
    content = content.strip("\n").rstrip()
    below = text[point:].lstrip("\r\n")
    if _block(below)[: len(_block(content))] == _block(content):
        raise Refused("no_op", "the text stands right after the target already")
    newline = _newline_at(document, end)
    return text[:point] + newline + with_newlines(content, newline) + newline + text[point:]


def _delete(text: str, place: Place) -> str:
    """Without the target; lines that it fills whole go with their line end, blank lines around it stay."""
    start, end = place.start, place.end
    whole = start == 0 or text[start - 1] == "\n"
    line_end = re.match(r"[ \t]*\r?\n", text[end:])
    if whole and line_end and not text[:end].endswith("\n"):
        end += line_end.end()
    return text[:start] + text[end:]


def _replace(document: SkillDocument, place: Place, edit: Edit, content: str) -> str:
    """The content in the target's place. Its edges follow the target: line ends around it stay as they are."""
    text = document.text
    found = text[place.start : place.end]
    start = place.start + len(found) - len(found.lstrip("\r\n"))
    core = found.rstrip()
    end = place.start + len(core) if "\n" in found[len(core) :] else place.end
    content = content.strip("\n")
    if not edit.target[:1].isspace():
        content = content.lstrip()
    if not edit.target[-1:].isspace() or "\n" in edit.target[len(edit.target.rstrip()) :]:
        content = content.rstrip()
    newline = _newline_at(document, start)
    return text[:start] + with_newlines(content, newline) + text[end:]


def _newline_at(document: SkillDocument, place: int) -> str:
    """The line end of the line at `place`, so that a mixed file stays as it is around an edit."""
    line_end = document.text.find("\n", place)
    if line_end < 0:
        return document.newline
    return "\r\n" if document.text[line_end - 1 : line_end] == "\r" else "\n"


def _line_of(text: str, content: str) -> int | None:
    """The number of the line at which `content` stands in `text` as whole lines, or `None`."""
    wanted = _block(content)
    lines = _block(text)
    for number in range(len(lines) - len(wanted) + 1):
        if lines[number : number + len(wanted)] == wanted:
            return number + 1
    return None


def _block(text: str) -> list[str]:
    return [line.strip() for line in fold(text).text.split("\n")]


def _ambiguous(document: SkillDocument, edit: Edit, count: int) -> str:
    sentence = f"the target {_quoted(edit.target)} occurs {count} times; give a longer one, a context or an occurrence"
    if edit.context.strip() and not any(find(document.text, edit.context)):
        sentence += "; the context given does not occur"
    return sentence


def _unmatched(document: SkillDocument, edit: Edit, original: str | None) -> str:
    sentence = f"the target {_quoted(edit.target)} does not occur in the skill"
    if original is not None and original != document.text and any(find(original, edit.target)):
        return sentence + " any more: an earlier edit of this step changed it"
    from difflib import get_close_matches

    first = edit.target.strip().splitlines()[0]
    near = get_close_matches(first, document.text.splitlines(), n=1)
    return f"{sentence}; the nearest line is {_quoted(near[0])}" if near else sentence


def _quoted(text: str) -> str:
    return json.dumps(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…", ensure_ascii=False)
