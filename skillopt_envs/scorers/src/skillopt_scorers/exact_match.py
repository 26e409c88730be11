"""The scorer `exact`: the normalised answer is one of the accepted ones, or it is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillopt_kernel.records import Score
from skillopt_lib_env.normalise import lenient_normalised, squad_normalised

from skillopt_scorers.accepted import accepted_answers, named, quoted

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task


def exact_match(answer: str, accepted: tuple[str, ...]) -> float:
    """1.0 when the normalised answer equals a normalised accepted one (SQuAD v1.1 and MRQA), else 0.0."""
    return float(squad_normalised(answer) in map(squad_normalised, accepted))


def lenient_match(answer: str, accepted: tuple[str, ...]) -> float:
    """As `exact_match`, with Unicode forms, accents, typographic quotes and hyphens unified."""
    return float(lenient_normalised(answer) in map(lenient_normalised, accepted))


class ExactScorer:
    """hard = soft = official exact match; named `em`, and `lenient_em`, which does not count."""

    def __init__(self, settings: Any = None, context: DriverContext | None = None) -> None:
        pass

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Compare with a reference of one text or a list. Raises `ValueError` for another reference."""
        accepted = accepted_answers(reference)
        hard, lenient = exact_match(answer, accepted), lenient_match(answer, accepted)
        return Score(hard, hard, self._feedback(answer, accepted, hard, lenient), {"em": hard, "lenient_em": lenient})

    def _feedback(self, answer: str, accepted: tuple[str, ...], hard: float, lenient: float) -> str:
        if hard:
            return "Right."
        if not answer.strip():
            return f"Wrong: there is no answer; accepted: {named(accepted)}."
        why = " (only signs, accents or hyphens differ)" if lenient else ""
        return f"Wrong: answered {quoted(answer)}; accepted: {named(accepted)}{why}."
