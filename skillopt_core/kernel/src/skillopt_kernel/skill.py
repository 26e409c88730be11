"""The skill document: front matter, body, protected regions, what the target is shown, and its hash.

A skill is Markdown. Two kinds of protected regions may stand in it, each between comment markers that edits
cannot touch and that the target never sees:

    <!-- SLOW_UPDATE_START --> ... <!-- SLOW_UPDATE_END -->      guidance from comparing epochs
    <!-- APPENDIX_START --> ... <!-- APPENDIX_END -->            execution notes

Every function takes and returns whole texts and keeps the newline style it finds.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal, cast

from attrs import frozen

RegionKind = Literal["slow_update", "appendix"]
Span = tuple[int, int]
"""Start and end (exclusive) in characters of a text."""

_MARKER = re.compile(r"<!--[ \t]*(SLOW_UPDATE|APPENDIX)_(START|END)[ \t]*-->")
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_YAML_KEY = re.compile(r"[\w\"'][^:\n]*:(?:[ \t\r]|$)")


@frozen
class Region:
    """A protected region or a marker without its partner (`closed` is false). `span` includes the markers."""

    kind: RegionKind
    span: Span
    content: str
    closed: bool


@frozen
class SkillDocument:
    """A skill taken apart. `front_matter` and `body` together are `text`, byte for byte.

    front_matter  the YAML block at the start with its `---` lines, or ""
    regions       protected regions in order of appearance, orphan markers included
    newline       "\\n" or "\\r\\n", whichever the text has more of
    """

    text: str
    front_matter: str
    regions: tuple[Region, ...]
    newline: str

    @classmethod
    def parse(cls, text: str) -> SkillDocument:
        """Take `text` apart. Never fails: what is not a region or front matter is body."""
        return cls(text, _front_matter(text), _regions(text), newline_style(text))

    @property
    def body(self) -> str:
        """Everything after the front matter, regions and markers included."""
        return self.text[len(self.front_matter) :]

    @property
    def protected(self) -> tuple[Span, ...]:
        """The spans that no edit may touch: front matter, regions with their markers, orphan markers."""
        head = ((0, len(self.front_matter)),) if self.front_matter else ()
        return head + tuple(region.span for region in self.regions)

    @property
    def protected_texts(self) -> tuple[str, ...]:
        """The protected texts in order, without trailing white space: equal before and after any edit."""
        return tuple(self.text[start:end].rstrip() for start, end in self.protected)


def newline_style(text: str) -> str:
    """The newline that `text` has more of; `"\\n"` when neither or both alike."""
    windows = text.count("\r\n")
    return "\r\n" if windows > text.count("\n") - windows else "\n"


def with_newlines(text: str, newline: str) -> str:
    """`text` with every line end (LF, CRLF or a lone CR) written as `newline`."""
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    return unix if newline == "\n" else unix.replace("\n", newline)


def shown(text: str) -> str:
    """What the target is shown: `text` without the marker lines. The content of regions stays.

    A text without markers is returned as it is, byte for byte.
    """
    while _MARKER.search(text):  # removing one may join the parts of another
        lines = []
        for line in text.splitlines(keepends=True):
            bare = _MARKER.sub("", line)
            if bare == line or bare.strip():  # a line that held nothing but markers goes whole
                lines.append(bare)
        text = "".join(lines)
    return text


def neutralise_markers(text: str) -> str:
    """`text` without anything that would be read as a region marker: for text that is put into a skill."""
    return shown(text)


def skill_hash(text: str) -> str:
    """The first 16 hex digits of SHA-256 over what the target is shown, in UTF-8.

    Two texts that differ in markers only have one hash, because no target can tell them apart.
    """
    return hashlib.sha256(shown(text).encode("utf-8")).hexdigest()[:16]


def region(text: str, kind: RegionKind) -> str:
    """The content of the first closed region of `kind`, stripped; "" when there is none."""
    for found in _regions(text):
        if found.kind == kind and found.closed:
            return found.content.strip()
    return ""


def with_region(text: str, kind: RegionKind, content: str) -> str:
    """`text` with exactly one region of `kind`, the last thing in it, holding `content`.

    Other regions of this kind and orphan markers of it are removed. Markers in `content` are neutralised. A
    region is never empty: with blank `content` there is none, and a text that had none stays as it is.
    """
    content = neutralise_markers(content).strip()
    rest = _without_regions(text, kind)
    if not content:
        return rest
    newline = newline_style(text)
    start, end = (f"<!-- {kind.upper()}_{edge} -->" for edge in ("START", "END"))
    block = newline.join((start, with_newlines(content, newline), end)) + newline
    rest = rest.rstrip()
    return rest + newline * 2 + block if rest else block


def restore_protected(before: str, after: str) -> str:
    """`after`, a rewritten whole text, with the front matter and the regions of `before`.

    Front matter and regions that `after` has itself are dropped: a rewrite can neither change nor invent them. The
    result has the newline style of `before`. Raises `ValueError`, saying why, when nothing would be left of `after`
    and when it holds what no text file can hold.
    """
    if _UNPRINTABLE.search(after):
        raise ValueError("it holds a control character or half a surrogate pair, which no text file can hold")
    old = SkillDocument.parse(before)
    body = with_newlines(after, old.newline)
    body = body[len(_front_matter(body)) :]
    body = shown(_without_regions(_without_regions(body, "slow_update"), "appendix")).rstrip() + old.newline
    if not body.strip():
        raise ValueError("it holds no text beside what is protected")
    if old.front_matter:
        gap = old.body[: len(old.body) - len(old.body.lstrip("\r\n"))]
        body = old.front_matter.rstrip() + old.newline + gap + body.lstrip("\r\n")
    for found in old.regions:
        if found.closed:
            body = with_region(body, found.kind, found.content)
    return body


def _front_matter(text: str) -> str:
    """The YAML block at the start. A horizontal rule above prose is none: the first line must be a key."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return ""
    lines = [line for line in match[1].splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return match[0] if not lines or _YAML_KEY.match(lines[0]) else ""


def _regions(text: str) -> tuple[Region, ...]:
    """Pairs of START and the next END of the same kind, and markers that have no partner, in order."""
    found: list[Region] = []
    opened: dict[str, re.Match[str]] = {}
    markers = list(_MARKER.finditer(text))
    last_end = {marker[1]: marker.start() for marker in markers if marker[2] == "END"}
    for marker in markers:
        name, edge = marker.groups()
        kind = cast(RegionKind, name.lower())
        if edge == "START" and marker.start() < last_end.get(name, -1):
            opened.setdefault(name, marker)  # a further START before the END is part of the content
        elif edge == "END" and name in opened:
            start = opened.pop(name)
            content = text[start.end() : marker.start()]
            found.append(Region(kind, (start.start(), marker.end()), content, closed=True))
        else:
            found.append(Region(kind, marker.span(), "", closed=False))
    return tuple(sorted(found, key=lambda region: region.span))


def _without_regions(text: str, kind: RegionKind) -> str:
    """`text` without every region and marker of `kind`; one blank line stays where one was removed."""
    newline = newline_style(text)
    while span := next((found.span for found in _regions(text) if found.kind == kind), None):
        before, after = text[: span[0]].rstrip(), text[span[1] :].lstrip("\r\n")
        if before and after.strip():
            text = before + newline * 2 + after
        else:
            text = before + newline if before else after
    return text
