"""The scorer `exact`: the answer equals an accepted one, or it is wrong."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skillopt_kernel.records import Score
from skillopt_lib_env.normalise import lenient_normalised, squad_normalised

from skillopt_scorers.accepted import accepted_answers, named, quoted
from skillopt_scorers.settings import ExactSettings

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task


def without_invisible(text: str) -> str:
    """The text without the blanks that have no width, and the mark of a byte order."""
    return text.translate({ord(blank): None for blank in "\u200b\u2060\ufeff"})


def case_folded(text: str) -> str:
    """The text in one Unicode form (NFC) without case, repeated and invisible blanks and a final full stop."""
    folded = " ".join(unicodedata.normalize("NFC", without_invisible(text)).casefold().split())
    return folded.removesuffix(".") if not folded.endswith("..") else folded


NORMALISED: dict[str, Callable[[str], str]] = {
    "case": case_folded,
    "squad": squad_normalised,
    "nothing": lambda text: text,
}
"""Value of `ignore` -> the form in which texts are compared."""


def exact_match(answer: str, accepted: tuple[str, ...], normalised: Callable[[str], str] = squad_normalised) -> float:
    """1.0 when the normalised answer equals a normalised accepted one, else 0.0; by default as SQuAD v1.1 and MRQA."""
    return float(normalised(answer) in map(normalised, accepted))


def lenient_match(answer: str, accepted: tuple[str, ...]) -> float:
    """As SQuAD's `exact_match`, with Unicode forms, accents, typographic quotes and hyphens unified."""
    return exact_match(answer, accepted, lenient_normalised)


class ExactScorer:
    """hard = soft = whether the answer equals an accepted one in the form that `ignore` says.

    Named scores, which do not count: `em`, the official exact match of SQuAD and MRQA (it drops punctuation, so that
    -5 is 5 and 3.5 is 35), and `lenient_em`, which unifies accents, quotes and hyphens besides.
    """

    def __init__(self, settings: ExactSettings | None = None, context: DriverContext | None = None) -> None:
        self._normalised = NORMALISED[(settings or ExactSettings()).ignore]

    def check(self, reference: Any, task: Task) -> None:
        """Raise `ValueError` for a reference that is neither a text nor a list of texts."""
        accepted_answers(reference)

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Compare with a reference of one text or a list. Raises as `check`."""
        accepted = accepted_answers(reference)
        hard = exact_match(answer, accepted, self._normalised)
        scores = {"em": exact_match(answer, accepted), "lenient_em": lenient_match(answer, accepted)}
        return Score(hard, hard, self._feedback(answer, accepted, hard, scores["lenient_em"]), scores)

    def _feedback(self, answer: str, accepted: tuple[str, ...], hard: float, lenient: float) -> str:
        if hard:
            return "Right."
        if not answer.strip():
            return f"Wrong: there is no answer; accepted: {named(accepted)}."
        why = " (only articles, signs, accents or hyphens differ)" if lenient else ""
        return f"Wrong: answered {quoted(answer)}; accepted: {named(accepted)}{why}."
