"""The settings of the hook plugin `semantic_density`, and its built-in list of leading words."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import attrs
from attrs import field, frozen

WORD = re.compile(r"[a-zA-Z0-9]+")

LEADING_WORDS = (
    "MUST", "ALWAYS", "NEVER", "ONLY", "CRITICAL", "IMPORTANT", "RESOLVE", "PREFER", "ENSURE", "STRICT", "VERIFY",
)  # fmt: skip
"""Words that lead a strict instruction, counted when a configuration lists none of its own."""


def listed(words: Sequence[str] | None) -> tuple[str, ...]:
    """The words of a list, or of a text with commas between them; `None` and "" are the built-in list.

    In lower case and without repetitions, so that lists that count the same words are equal.
    """
    if words is None or words == "":
        words = LEADING_WORDS
    parts = [part for part in words.split(",") if part.strip()] if isinstance(words, str) else words
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ValueError(f"leading_words must be a list of texts, or text with commas, not {words!r}")
    return tuple(dict.fromkeys(part.strip().lower() for part in parts))


def _weight(_: object, attribute: attrs.Attribute[float], value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and value >= 0):
        raise ValueError(f"must be a number from 0 (no bonus) up, not {value!r}")


def _words(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
    words = listed(value)
    if not words:
        raise ValueError("names no word; null is the built-in list, and use_semantic_density: false ends the bonus")
    for word in words:
        if not WORD.fullmatch(word):
            raise ValueError(f"{word!r} is no single word of letters a to z and digits, so it would never be found")


@frozen
class SemanticDensitySettings:
    """How much the wording of a skill counts.

    semantic_density_weight  gate score that a text of nothing but leading words would gain; 0 or more
    leading_words            words that count, in any case: a list, or text with commas; null: the built-in list
    """

    semantic_density_weight: float = field(default=0.05, validator=_weight)
    leading_words: tuple[str, ...] | str | None = field(default=None, converter=listed, validator=_words)
