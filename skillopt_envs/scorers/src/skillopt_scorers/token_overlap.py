"""The scorer `token_f1`: exact match decides, the words shared with an accepted answer earn partial credit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from skillopt_kernel.records import Score
from skillopt_lib_env.normalise import lenient_normalised, squad_normalised

from skillopt_scorers.accepted import accepted_answers, named, quoted
from skillopt_scorers.exact_match import exact_match, lenient_match

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task


def token_f1(answer: str, gold: str, normalised: Callable[[str], str] = squad_normalised) -> float:
    """F1 of the multisets of words of two normalised texts; 0.0 when they share none.

    P = shared / |answer|, R = shared / |gold|, F1 = 2 P R / (P + R). As `f1_score` of SQuAD v1.1 and MRQA, which
    gives two texts without words 0.
    """
    said, wanted = normalised(answer).split(), normalised(gold).split()
    shared = (Counter(said) & Counter(wanted)).total()
    return 2 * shared / (len(said) + len(wanted)) if shared else 0.0


class TokenF1Scorer:
    """hard = official exact match, soft = official token F1, the best over the accepted answers.

    Named scores: `em` and `f1` (as hard and soft); `sub_em` (one normalised text contains the other); `lenient_em`
    and `lenient_f1` (Unicode forms, accents, typographic quotes and hyphens unified). Those of earlier trainers,
    for comparison with their results: `reference_f1` gives two texts without words 1 (as SQuAD v2), and
    `reference_sub_em` lets an empty answer stand in any text.
    """

    def __init__(self, settings: Any = None, context: DriverContext | None = None) -> None:
        pass

    def check(self, reference: Any, task: Task) -> None:
        """Raise `ValueError` for a reference that is neither a text nor a list of texts."""
        accepted_answers(reference)

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Compare with a reference of one text or a list. Raises as `check`."""
        accepted = accepted_answers(reference)
        hard = exact_match(answer, accepted)
        soft = max((token_f1(answer, gold) for gold in accepted), default=0.0)
        contains = [_contains(squad_normalised(answer), squad_normalised(gold)) for gold in accepted]
        blank = not squad_normalised(answer)
        blank_gold = any(not squad_normalised(gold) for gold in accepted)
        named_scores = {
            "em": hard,
            "f1": soft,
            "sub_em": float(not blank and any(contains)),
            "lenient_em": lenient_match(answer, accepted),
            "lenient_f1": max((token_f1(answer, gold, lenient_normalised) for gold in accepted), default=0.0),
            "reference_f1": float(blank_gold) if blank else soft,
            "reference_sub_em": float(any(contains)),
        }
        return Score(hard, soft, _feedback(answer, accepted, named_scores), named_scores)


def _contains(said: str, wanted: str) -> bool:
    return said in wanted or (bool(wanted) and wanted in said)


def _feedback(answer: str, accepted: tuple[str, ...], scores: dict[str, float]) -> str:
    if scores["em"]:
        return "Right."
    if not answer.strip():
        return f"Wrong: there is no answer; accepted: {named(accepted)}."
    return f"Wrong: answered {quoted(answer)}; accepted: {named(accepted)}.{_why(answer, accepted, scores)}"


def _why(answer: str, accepted: tuple[str, ...], scores: dict[str, float]) -> str:
    """What the nearest accepted answer has that the answer has not, and the other way round."""
    if scores["lenient_em"]:
        return " Only signs, accents or hyphens differ."
    if not scores["f1"]:
        return " They share no word."
    nearest = max(accepted, key=lambda gold: token_f1(answer, gold))
    said, wanted = Counter(squad_normalised(answer).split()), Counter(squad_normalised(nearest).split())
    extra, lacking = list((said - wanted).elements()), list((wanted - said).elements())
    parts = []
    if extra:
        parts.append(f"has {_words(extra)} too many")
    if lacking:
        parts.append(f"lacks {_words(lacking)}")
    if not parts:
        return " The words are right, their order is not."
    return f" Partly right: it {' and '.join(parts)}."


def _words(words: list[str]) -> str:
    return '"' + " ".join(words[:12]) + (' ..."' if len(words) > 12 else '"')
