"""Scores that a user's function or program gives, checked: what is no score is a failure of theirs, never a zero."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from attrs import evolve
from skillopt_kernel.errors import EnvironmentFailure
from skillopt_kernel.models.requests import whole_characters
from skillopt_kernel.records import Score
from skillopt_kernel.store.patterns import clipped

FORM = 'true or false, a number from 0 to 1, or {"hard", "soft", "feedback", "named"}'
LONGEST_FEEDBACK = 8_000
"""Characters of feedback that are kept."""
_KEYS = ("hard", "soft", "score", "feedback", "named")


def score_of(value: Any, who: str) -> Score:
    """A score from what `who` ("the function f") gave.

    A number is partial credit (soft), and passes (hard) at 1. A mapping has `hard`, `soft` (as hard where it is left
    out) or in their place `score`, a number as above; further `feedback`, a text, and `named`, numbers by name. Raises
    `EnvironmentFailure` for anything else.
    """
    if isinstance(value, Score):
        return evolve(value, feedback=_shown(value.feedback))
    given = dict(value) if isinstance(value, Mapping) else {"score": value}
    unknown = [str(key) for key in given if key not in _KEYS]
    if unknown:
        raise _failure(who, f"the key {unknown[0]!r}, which is none of {', '.join(_KEYS)}")
    if ("score" in given) == ("hard" in given):
        raise _failure(who, "a mapping that must have either `hard` or `score`")
    soft = _number(
        given.get("soft", given.get("score", given.get("hard"))), "soft" if "soft" in given else "score", who
    )
    hard = _number(given["hard"], "hard", who) if "hard" in given else float(soft >= 1)
    feedback, named = given.get("feedback") or "", given.get("named") or {}
    if not isinstance(feedback, str):
        raise _failure(who, f"as feedback a {type(feedback).__name__}, which must be a text")
    if not isinstance(named, Mapping):
        raise _failure(who, f"as named scores a {type(named).__name__}, which must be numbers by name")
    further = {str(name): _number(one, f"named[{name!r}]", who, bounded=False) for name, one in named.items()}
    right = "Right." if hard >= 1 else f"Not right: scored {soft:.4g}."
    return Score(hard, soft, _shown(feedback) or right, further)


def _shown(feedback: str) -> str:
    """Feedback goes into prompts and files: it is cut where it is long, and holds whole characters only."""
    text = whole_characters(feedback)
    return text if len(text) <= LONGEST_FEEDBACK else f"{clipped(text, LONGEST_FEEDBACK)}..."


def _number(value: Any, key: str, who: str, bounded: bool = True) -> float:
    if isinstance(value, bool):
        return float(value)
    try:
        number = float(value) if not isinstance(value, str | bytes) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number) or (bounded and not 0 <= number <= 1):
        wanted = "a number from 0 to 1" if bounded else "a finite number"
        raise _failure(who, f"as {key} {value!r:.100}, which is no {wanted.removeprefix('a ')}")
    return number


def _failure(who: str, what: str) -> EnvironmentFailure:
    return EnvironmentFailure(f"{who} gave {what}; a score is {FORM}")
