"""The accepted answers of a task, read from whatever form data files have them in, and never altered.

The text of an answer stays as it is written: `0.50` keeps its zero, `1,250` its comma, `(1993)` its brackets. Only
what is written as a list of quoted texts, or as one quoted text, is read as such, since tables hold lists so.
"""

from __future__ import annotations

import ast
import io
import json
import tokenize
import warnings
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

KEYS_OF_ANSWERS = ("answers", "ground_truth", "answer")
KEYS_OF_TEXT = ("text", "answer", "value")
_NOT_A_LITERAL = object()


def accepted_answers(value: Any) -> list[str]:
    """The accepted answers that a field holds, trimmed, blank ones left out; in order.

    A text is one answer, unless it is written as a list of quoted texts (JSON or Python), a quoted text, or a mapping
    with one of `KEYS_OF_ANSWERS`. A whole number is its digits. A list may hold texts, whole numbers and mappings
    with one of `KEYS_OF_TEXT`. Raises `ValueError` with a sentence for anything else.
    """
    if value is None:
        return []
    if isinstance(value, str):
        return _from_text(value.strip())
    if isinstance(value, Mapping):
        return accepted_answers(_entry(value, KEYS_OF_ANSWERS))
    if isinstance(value, (list, tuple)):
        return [text for entry in value if (text := _one(entry))]
    return [_one(value)]


def _one(entry: Any) -> str:
    if isinstance(entry, Mapping):
        entry = _entry(entry, KEYS_OF_TEXT)
    if isinstance(entry, float):
        raise ValueError(
            f"an answer is the number {entry!r}, of which it is not known how it was written (0.50 and 0.5 are "
            f'different answers); write it as a text: "{entry!r}"'
        )
    if isinstance(entry, bool) or not isinstance(entry, (str, int)):
        raise ValueError(f"an answer must be a text, not {entry!r:.100}")
    return str(entry).strip()


def _entry(value: Mapping[Any, Any], names: tuple[str, ...]) -> Any:
    for name in names:
        if name in value:
            return value[name]
    known = ", ".join(map(repr, names))
    raise ValueError(f"an answer is a mapping without any of the keys {known}: {dict(value)!r:.100}")


def _from_text(text: str) -> list[str]:
    if text[:1] not in ("[", "{", '"', "'"):
        return [text] if text else []
    value = _literal(text)
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    if isinstance(value, dict) and any(name in value for name in KEYS_OF_ANSWERS):
        return accepted_answers(value)
    if isinstance(value, list) and _holds_texts(value, text):
        return [entry.strip() for entry in value if entry.strip()]
    return [text]


def _holds_texts(value: list[Any], text: str) -> bool:
    """Whether a list that was written as text is one of quoted texts. Raises `ValueError` for one that is in part."""
    texts = sum(isinstance(entry, str) for entry in value)
    if texts and texts < len(value):
        raise ValueError(f"the list {text:.100} holds texts and others; put each answer in quotation marks")
    if texts and _runs_together(text):
        raise ValueError(f"the list {text:.100} lacks commas between its texts; put one after each answer")
    return texts == len(value)


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a backslash in an answer is no mistake of a programmer
            return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return _NOT_A_LITERAL


def _runs_together(text: str) -> bool:
    """Whether two quoted texts stand side by side, as numpy prints an array; Python would make one of them."""
    kinds = [token.type for token in tokenize.generate_tokens(io.StringIO(text).readline)]
    kinds = [kind for kind in kinds if kind not in (tokenize.NL, tokenize.NEWLINE)]
    return (tokenize.STRING, tokenize.STRING) in pairwise(kinds)
