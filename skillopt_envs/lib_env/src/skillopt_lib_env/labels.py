"""The label that an answer names, in every spelling: `B`, `(b)`, `B.`, `**B**`, `\\boxed{B}`, `The answer is B`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from skillopt_lib_env.normalise import lenient_normalised

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OPENING = r"[\s\"'“‘*_`$([{<]*+"
_CLOSING = r"[\s\"'”’*_`$)\]}>.:,;!]*+"
_CLOSING_MARK = r"(?:\*\*)?(?:\s*[)\]}.:]|\s+[-–—]|(?<=\*))(?:\*\*)?(?=\s|\Z)"
_BOXED = re.compile(r"\\boxed\s*\{\s*(?:\\(?:text|mathrm|mathbf|textbf)\s*\{\s*)?\(?([^\W_])\)?[\s}.]*\}")
_WRAPPED = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\s*\{([^{}]*)\}")


def label_of(text: str, labels: str = LETTERS, choices: Sequence[str] = ()) -> str | None:
    """The one label that `text` names, as `labels` spells it, or `None`: no guess is made.

    labels   the characters that are labels; an answer may write them in the other case
    choices  the texts of the choices in the order of the labels: an answer that is one of them names its label

    In this order: a text that is nothing but a label; a boxed one; a phrase such as "the answer is B" or "option B"
    (the last, where they agree or the last corrects the others); a label with its delimiter at the beginning
    ("B) Paris"); a choice's text; one label in brackets anywhere. A bare letter inside prose is a word.
    """
    text = _WRAPPED.sub(r"\1", text).strip()
    known = {label.casefold(): label for label in labels}
    one = "[" + re.escape("".join(dict.fromkeys(labels.upper() + labels.lower()))) + "]"
    word = r"(?:answer|option|choice|label|letter)"
    phrase = rf"(?i:\b{word}(?:\s+is)?\s*(?:\b{word}\s*)?[:=]?){_OPENING}({one})(?!\w|['’]\w)(?!\s+[a-z])"
    # "(A) or (B)", "A, B": two labels are no answer where one is asked for.
    phrase += rf"(?![\s*)\]]*+(?:or\b|and\b|[,;/])\s*[(\[*]*+{one.upper()}\b)"
    searches = (
        rf"\A{_OPENING}(?:(?i:(?:the\s+)?(?:final\s+|correct\s+)?{word}\s*(?:is\b)?)\s*[:=]?{_OPENING})?({one}){_CLOSING}\Z",
        _BOXED.pattern,
        phrase,
        rf"\A{_OPENING}({one}){_CLOSING_MARK}(?!\s*(?:(?:or|and|[,;/])\s*)?[(\[]?{one}\s*[)\]])",
    )
    for pattern in searches:
        found = [match[1].casefold() for match in re.finditer(pattern, text)]
        if found and found[-1] in known:
            return known[found[-1]]
    return _by_text(text, labels, choices) or _bracketed(text, one, known)


def _by_text(text: str, labels: str, choices: Sequence[str]) -> str | None:
    said = lenient_normalised(text)
    found = [
        label for label, choice in zip(labels, choices, strict=False) if said and lenient_normalised(choice) == said
    ]
    return found[0] if len(found) == 1 else None


def _bracketed(text: str, one: str, known: dict[str, str]) -> str | None:
    found = {match[1].casefold() for match in re.finditer(rf"\(({one})\)", text)} & set(known)
    return known[found.pop()] if len(found) == 1 else None


def labels_of(text: str, labels: str = LETTERS, choices: Sequence[str] = ()) -> frozenset[str]:
    """All labels of a text that lists nothing but labels ("A, C and D", "(a) (c)", "ACD"); else that of `label_of`."""
    said = re.sub(
        r"(?i)\A\W*(?:the\s+)?(?:final\s+|correct\s+)?(?:answer|option|choice|label|letter)s?\b\s*(?:is|are)?\b\W*",
        "",
        text,
    )
    said = _WRAPPED.sub(r"\1", said)
    pieces = [piece for piece in re.split(r"(?i)[\s,;/&+]+|\band\b", said) if re.search(r"\w", piece)]
    if len(pieces) == 1 and pieces[0].isalnum() and set(pieces[0]) <= set(labels):
        pieces = list(pieces[0])
    # A list of labels is no longer than the labels are: prose is not read word by word.
    found = [label_of(piece, labels) for piece in pieces] if len(pieces) <= len(labels) else []
    if found and None not in found:
        return frozenset(label for label in found if label)
    single = label_of(text, labels, choices)
    return frozenset({single} if single else ())
