r"""The label that an answer names, in the usual spellings: `B`, `(b)`, `**B.**`, `\boxed{B}`, `The answer is B`.

Nothing is guessed: an article is no label ("A prime number"), and who names two choices ("B or C") has chosen none.
Texts of choices are compared as they are written but for blanks, letter case and what dresses them: in mathematics a
sign or an accent makes another statement.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence

from skillopt_lib_env.normalise import lenient_normalised

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

_WRAPPED = re.compile(r"\\(?:boxed|text|textbf|textit|mathrm|mathbf|mathsf|operatorname)\s*\{([^{}]*)\}")
_DEPTH = 8
"""Wrappings inside each other that are taken off; nobody writes more."""

_MARKS = re.compile(r"\*+|_{2,}|`+|\$+|\\[()\[\]]|^#{1,6}[ \t]++", re.MULTILINE)
_LEAD = re.compile(
    r"(?:(?:my|the|final|correct|right|best|answers?|choices?|options?|labels?|letters?|statements?|is|are|so|thus"
    r"|therefore|hence|we|i|choose|chose|pick|select|go|with|think|believe|say|that|it['’]s|it|must|would|be)\b[\s:,=–—-]*+)+",
    re.IGNORECASE,
)
_END = r"(?!\w|['’-]\w|[.,]\d|[ \t]*+[+=<>^|&∈≤≥])"
"""What ends a label: behind it a word, a number or a formula would go on."""

_OPENING, _CLOSING = r"[\s\"'“‘(\[{<]*+", r"[\s\"'”’)\]}>.:,;!]*+"
_CLOSED = re.compile(r"\s*+[.!:,;]*+\Z")
_REASON = r"(?:because|since|due to|rather than|instead of|(?:and )?not)\b"
_AFFIRMED = re.compile(
    rf"\s++(?:{_REASON}|(?:is|must be|seems)\s++(?:(?:the|my|an?|only|single|most|final)\s++)*+"
    rf"(?:correct|right|true|best|answer|choice|option|one|it|valid|appropriate|likely)\b)",
    re.IGNORECASE,
)
_DELIMITED = re.compile(r"\s*+(?:[.):\]}](?=\s|\Z)|[,;]\s|[–—-]\s|\n)")
_JOINED = (
    r"\s*+(?:[.):\]}]\s*+)*+(?:,|;|/|&|\+|\||\bor\b|\band\b|\bversus\b|(?<=[.):\]}\s]))\s*+(?:either\s+|maybe\s+)?"
)
"""What stands between two labels of which neither is chosen."""


def label_of(text: str, labels: str = LETTERS, choices: Sequence[str] = ()) -> str | None:
    """The one label that `text` names, as `labels` spells it, or `None`.

    labels   the characters that are labels; an answer may write them in the other case
    choices  the texts of the choices in the order of the labels: an answer that is one of them names its label

    In this order: a label and nothing else; the text of a choice; the last "the answer is B"; a label with its text, an
    affirmation ("B is correct") or a delimiter ("B) Paris", "B, since ...") behind it; and the same behind words that
    only point at it ("Option B", "I choose B").
    """
    known = {variant: label for label in reversed(labels) for variant in (label.upper(), label.lower(), label)}
    texts = [(label, choice) for label, choice in zip(labels, choices, strict=False) if choice.strip()]
    spoken = _undressed(unicodedata.normalize("NFKC", text))
    found = _bare(spoken, known) or _by_text(text, texts)
    if found:
        return found
    found = _declared(spoken, known) or _labelled(spoken, known, texts)
    lead = _LEAD.match(spoken)
    if found or not lead:
        return found
    said = spoken[lead.end() :]
    return _bare(said, known) or _by_text(said, texts) or _labelled(said, known, texts)


def labels_of(text: str, labels: str = LETTERS, choices: Sequence[str] = ()) -> frozenset[str]:
    """All labels of a text that lists nothing but labels ("A, C and D", "(a) (c)", "ACD"); else that of `label_of`."""
    said = _undressed(text)
    lead = _LEAD.match(said)
    said = said[lead.end() :] if lead else said
    pieces = [piece for piece in re.split(r"(?i)[\s,;/&+]+|\band\b", said) if re.search(r"\w", piece)]
    if len(pieces) == 1 and pieces[0].isalnum() and set(pieces[0]) <= set(labels):
        pieces = list(pieces[0])
    # A list of labels is no longer than the labels are: prose is not read word by word.
    found = [label_of(piece, labels) for piece in pieces] if len(pieces) <= len(labels) else []
    if found and None not in found:
        return frozenset(label for label in found if label)
    single = label_of(text, labels, choices)
    return frozenset({single} if single else ())


def _undressed(text: str) -> str:
    """`text` without the marks of Markdown and LaTeX that only dress it."""
    for _ in range(_DEPTH):
        unwrapped = _WRAPPED.sub(r"\1", text)
        if unwrapped == text:
            break
        text = unwrapped
    return _MARKS.sub("", text).strip()


def _any_of(labels: Iterable[str]) -> str:
    """A pattern for one of these characters."""
    return "[" + re.escape("".join(sorted(labels))) + "]"


def _bare(said: str, known: dict[str, str]) -> str | None:
    """A label alone, in brackets or quotation marks or not, with punctuation after it or not."""
    match = re.match(rf"{_OPENING}({_any_of(known)}){_CLOSING}\Z", said)
    return known[match[1]] if match else None


def _by_text(said: str, texts: Sequence[tuple[str, str]]) -> str | None:
    """The label of the one choice whose text this is: as it is written, else ever less strictly so."""
    forms: tuple[Callable[[str], str], ...] = (
        _as_written,
        lambda text: _as_written(text).casefold(),
        lambda text: _as_written(_undressed(text)),
        lambda text: _as_written(_undressed(text)).casefold(),
        lambda text: _as_written(_undressed(text)).casefold().rstrip(".!"),
        _words,
    )
    for form in forms:
        wanted = form(said)
        found = [label for label, text in texts if wanted and form(text) == wanted]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _as_written(text: str) -> str:
    return " ".join(text.split())


def _words(text: str) -> str:
    """Words as a lenient reader takes them; "" where digits, signs or single letters mean something of their own."""
    plain = unicodedata.normalize("NFC", _undressed(text).strip("\"'“”‘’.! "))
    words = plain.replace("'", "").replace("’", "").split()
    return lenient_normalised(plain) if all(len(word) > 1 and word.isalpha() for word in words) else ""


def _declared(said: str, known: dict[str, str]) -> str | None:
    """The label of the last "the answer is B", "Answer: (B)": later ones correct the earlier."""
    one = _any_of(known)
    capital = _any_of({label for label in known if not label.islower()})
    pattern = (
        rf"(?i:\banswer\s*+(?:is\b|[:=])\s*+(?:\b(?:option|choice|label|letter|statement)\b\s*+)?:?){_OPENING}({one})"
        rf"{_END}(?!\s++(?!{_REASON})[a-z])(?![\s)\]]*+(?:or\b|and\b|[,;/])\s*+[(\[]*+{capital}\b)"
    )
    found = re.findall(pattern, said)
    return known[found[-1]] if found else None


def _labelled(said: str, known: dict[str, str], texts: Sequence[tuple[str, str]]) -> str | None:
    """A label at the beginning, and behind it its own text, an affirmation, or a delimiter and any words.

    A small letter is one only with a bracket, a full stop or a colon behind it.
    """
    match = re.match(rf"(?P<open>[(\[{{])?\s*+(?P<label>{_any_of(known)})(?P<close>\s*+[)\]}}])?{_END}", said)
    if match is None:
        return None
    label, rest = known[match["label"]], (match["close"] or "") + said[match.end() :]
    small = match["label"].islower() and match["label"] not in known.values()
    if small and not re.match(r"[.):\]](?=\s|\Z)", rest):
        return None
    behind = rest.lstrip(" .):]}–—-").rstrip()
    forms = [behind, *([behind[1:-1]] if behind.startswith("(") and behind.endswith(")") else [])]
    if any(_by_text(form, [(name, text) for name, text in texts if name == label]) for form in forms):
        return label
    others = _any_of((set(LETTERS) | set(known)) - {name for name, other in known.items() if other == label})
    if re.match(rf"{_JOINED}[(\[{{]?\s*+{others}(?:\s*+(?:[)\]}}.,;:/]|\Z)|\s++(?:or|and)\b)", rest):
        return None
    if match["label"] == "I" and not match["close"] and re.match(r"\s*+[,–—-]", rest):
        return None  # "I, for one, ...": the pronoun
    delimited = bool(match["open"] and match["close"]) or _DELIMITED.match(rest)
    return label if _CLOSED.match(rest) or _AFFIRMED.match(rest) or delimited else None
