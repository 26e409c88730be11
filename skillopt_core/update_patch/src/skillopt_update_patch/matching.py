"""Finding an anchor in a skill: verbatim first, then in a form that forgives what editors and models alter.

The forgiving form makes one of CRLF and LF, of composed and decomposed characters (Unicode NFC), of straight and
typographic quotes, of hyphens and dashes, of plain and no-break spaces, and drops white space at line ends.
Nothing else is forgiven: case and wording must agree. Matches are given in places of the original text, so that
what is not edited keeps its bytes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from attrs import frozen
from skillopt_kernel.skill import Span

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′", "'"),
        **dict.fromkeys("“”„‟″", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u00a0\u2007\u2009\u202f", " "),
    }
)
_JAMO = range(0x1160, 0x1200)
"""Hangul vowels and finals: they join the letter before them but are no combining marks."""


@frozen
class Folded:
    """A text in its forgiving form. `starts[i]` and `ends[i]` are where character i comes from."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def origin(self, start: int, end: int) -> Span | None:
        """The original's span of `text[start:end]`; `None` where it would cut a composed character."""
        if start > 0 and self.starts[start - 1] == self.starts[start]:
            return None
        if end < len(self.text) and self.ends[end] == self.ends[end - 1]:
            return None
        return self.starts[start], self.ends[end - 1]


def find(text: str, target: str) -> Iterator[list[Span]]:
    """Where `target` occurs, as lists of spans from the strictest reading to the most forgiving.

    Each list is in order and holds overlapping occurrences too. Blank targets occur nowhere.
    """
    if not target.strip():
        return
    yield _verbatim(text, target)
    folded, wanted = fold(text), fold(target).text
    # White space at the target's end is forgiven only where the document has some there, or its line ends.
    spaced = target.endswith((" ", "\t")) and not target.endswith("\n")
    tail = r"(?=\s|\Z)" if spaced else ""
    for form in (wanted, wanted.strip("\n")):
        pattern = re.compile(f"(?={re.escape(form)}{tail})")
        places = (match.start() for match in pattern.finditer(folded.text))
        spans = [folded.origin(place, place + len(form)) for place in places]
        yield [span for span in spans if span is not None]


def fold(text: str) -> Folded:
    """The forgiving form of `text`, with the place that each of its characters comes from."""
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _clusters(text):
        piece = text[start:end]
        plain = "\n" if piece == "\r\n" else unicodedata.normalize("NFC", piece).translate(_PLAIN)
        if plain == "\n":
            _drop_trailing_space(characters, starts, ends)
        characters += plain
        starts += [start] * len(plain)
        ends += [end] * len(plain)
    _drop_trailing_space(characters, starts, ends)
    return Folded("".join(characters), tuple(starts), tuple(ends))


def _verbatim(text: str, target: str) -> list[Span]:
    spans = []
    start = text.find(target)
    while start >= 0:
        end = start + len(target)
        if end == len(text) or not _joins(text[end - 1], text[end]):
            spans.append((start, end))
        start = text.find(target, start + 1)
    return spans


def _clusters(text: str) -> list[Span]:
    """Spans that are folded together: a character with its combining marks, or CRLF."""
    spans: list[Span] = []
    start = 0
    for place in range(1, len(text) + 1):
        if place < len(text) and _joins(text[place - 1], text[place]):
            continue
        spans.append((start, place))
        start = place
    return spans if text else []


def _joins(before: str, character: str) -> bool:
    if character < "\u0300":
        return before == "\r" and character == "\n"
    return unicodedata.combining(character) != 0 or ord(character) in _JAMO


def _drop_trailing_space(characters: list[str], starts: list[int], ends: list[int]) -> None:
    while characters and characters[-1] in " \t":
        characters.pop()
        starts.pop()
        ends.pop()
