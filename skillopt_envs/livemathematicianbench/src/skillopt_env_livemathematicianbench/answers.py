"""Which choice an answer names: by its label in the usual spellings, or by its text.

Nothing is guessed: an article is no label ("A prime number"), and who names two choices ("B or C") has chosen none.
Texts are compared as they are written but for blanks and letter case, since in mathematics a sign or an accent makes
another statement.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from skillopt_env_livemathematicianbench.questions import Choice

_WRAPPED = re.compile(r"\\(?:boxed|text|textbf|textit|mathrm|mathbf|mathsf|operatorname)\s*\{([^{}]*)\}")
_MARKS = re.compile(r"\*+|_{2,}|`+|\$+|\\[()\[\]]")
_LEAD = re.compile(
    r"(?:(?:my|the|final|correct|right|best|answer|choice|option|label|letter|statement|is|are|so|thus|therefore|hence|we"
    r"|i|choose|chose|pick|select|it|must|would|be)\b[\s:,=–—-]*)+",
    re.IGNORECASE,
)
_CLOSED = re.compile(r"\s*[.!:,;]*\Z")
_AFFIRMED = re.compile(r"\s+(?:is|must be|seems)\b(?!\s+not\b)", re.IGNORECASE)
_DELIMITED = re.compile(r"\s*(?:[.):\]}]|,\s|;\s|[–—-]\s|\n)")
_JOINED = r"\s*(?:[.):\]}]\s*)*(?:,|;|/|&|\+|\||\bor\b|\band\b|\bversus\b|(?<=[.):\]}\s]))\s*(?:either\s+|maybe\s+)?"
"""What stands between two labels of which neither is chosen."""


def chosen(answer: str, choices: Sequence[Choice]) -> Choice | None:
    """The choice that `answer` names, or `None`.

    In this order: a label and nothing else; the text of a choice; a label with words around it that only point at it
    ("The answer is B", "Option B", "B is correct"), or with a delimiter behind it ("B) x is odd", "B, since ...").
    """
    by_label = {choice.label: choice for choice in choices}
    spoken = _undressed(unicodedata.normalize("NFKC", answer))
    found = _bare(spoken, by_label) or _by_text(answer, choices) or _labelled(spoken, by_label)
    lead = _LEAD.match(spoken)
    if found or not lead:
        return found
    said = spoken[lead.end() :]
    return _bare(said, by_label) or _by_text(said, choices) or _labelled(said, by_label)


def earlier_label(answer: str, choices: Sequence[Choice]) -> str:
    """The label that earlier trainers took an answer for; a text that is no label is returned as they compared it.

    The answer without blanks around it, in upper case, without `. ) :` at its end: a label, or a choice's text in any
    case, or an answer whose first word, cleaned alike, is a label.
    """
    labels = {choice.label for choice in choices}
    cleaned = _cleaned(answer)
    if cleaned in labels:
        return cleaned
    for choice in choices:
        if choice.text.strip().lower() == answer.strip().lower():
            return choice.label
    first = _cleaned(next(iter(answer.split()), ""))
    return first if first in labels else cleaned


def _cleaned(text: str) -> str:
    return text.strip().upper().rstrip(".):").strip()


def _undressed(text: str) -> str:
    """`text` without the marks of Markdown and LaTeX that only dress it."""
    while (unwrapped := _WRAPPED.sub(r"\1", text)) != text:
        text = unwrapped
    return _MARKS.sub("", text).strip()


def _as_written(text: str) -> str:
    return " ".join(text.split())


def _bare(said: str, by_label: dict[str, Choice]) -> Choice | None:
    """A label alone, in brackets or not, with punctuation after it or not."""
    match = re.fullmatch(r"[(\[{<]?\s*([A-Za-z])\s*[)\]}>]?[\s.:,;!]*", said)
    return by_label.get(match[1].upper()) if match else None


def _by_text(said: str, choices: Sequence[Choice]) -> Choice | None:
    """The one choice whose text this is: as it is written, else in any letter case, else without what dresses it."""
    forms: tuple[Callable[[str], str], ...] = (
        _as_written,
        lambda text: _as_written(text).casefold(),
        lambda text: _as_written(_undressed(text)),
        lambda text: _as_written(_undressed(text)).casefold(),
    )
    for form in forms:
        wanted = form(said)
        found = [choice for choice in choices if wanted and form(choice.text) == wanted]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _labelled(said: str, by_label: dict[str, Choice]) -> Choice | None:
    """A label at the beginning, and behind it its own text, an affirmation, or a delimiter and any words."""
    match = re.match(r"(?P<open>[(\[{])?\s*(?P<label>[A-Z])(?P<close>\s*[)\]}])?(?!\w|['’]\w)", said)
    choice = by_label.get(match["label"]) if match else None
    if match is None or choice is None:
        return None
    rest = said[match.end() :]
    if _by_text(rest.lstrip(" .):]}–—-"), (choice,)):
        return choice
    others = "".join(label for label in by_label if label != choice.label)
    if re.match(rf"{_JOINED}[(\[{{]?\s*[{others}]\s*(?:[)\]}}]|[.,;:/]|\s+(?:or|and)\b|\Z)", rest):
        return None
    delimited = bool(match["open"] and match["close"]) or _DELIMITED.match((match["close"] or "") + rest)
    return choice if _CLOSED.match(rest) or _AFFIRMED.match(rest) or delimited else None
