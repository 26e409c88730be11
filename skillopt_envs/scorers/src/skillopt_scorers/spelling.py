"""The scorer `anls`: similarity of the spelling, as document question answering is scored.

Biten et al., "Scene text visual question answering", ICCV 2019: the average normalised Levenshtein similarity.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillopt_kernel.records import Score

from skillopt_scorers.accepted import accepted_answers, named, quoted
from skillopt_scorers.extras import needed
from skillopt_scorers.settings import AnlsSettings

if TYPE_CHECKING:
    from skillopt_kernel.interfaces import DriverContext, Judge
    from skillopt_kernel.records import Task

_REFERENCE_HARD = 0.999
"""From here on earlier trainers counted an answer as right."""


class AnlsScorer:
    """soft = the greatest similarity to an accepted answer, hard = whether it reaches `right_from`.

    similarity = 1 - distance / length, Levenshtein's distance of the texts without regard to case and repeated blanks
    over the length of the longer text as it was given; below the threshold it counts as 0. As the public evaluation
    scripts have it, a similarity of exactly the threshold is kept.

    Named scores: `anls` as soft. Those of earlier trainers: `reference_anls` takes the length without repeated blanks,
    drops a similarity of exactly the threshold and gives an empty answer 1 where nothing is accepted; `reference_hard`
    is 1 from 0.999 of it.
    """

    def __init__(self, settings: AnlsSettings | None = None, context: DriverContext | None = None) -> None:
        self._settings = settings or AnlsSettings()
        with needed("anls", "similarities of spelling (the scorer anls)"):
            from rapidfuzz.distance import Levenshtein
        self._distance = Levenshtein.distance

    def check(self, reference: Any, task: Task) -> None:
        """Raise `ValueError` for a reference that is neither a text nor a list of texts."""
        accepted_answers(reference)

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score:
        """Compare with a reference of one text or a list. Raises as `check`."""
        accepted = accepted_answers(reference)
        pairs = [self._similarities(answer, gold) for gold in accepted]
        threshold = self._settings.threshold
        best = max((official for official, _ in pairs), default=0.0)
        earlier = max((earlier for _, earlier in pairs), default=0.0 if answer.strip() else 1.0)
        soft, strict = best if best >= threshold else 0.0, earlier if earlier > threshold else 0.0
        hard = float(soft >= self._settings.right_from)
        scores = {"anls": soft, "reference_anls": strict, "reference_hard": float(strict >= _REFERENCE_HARD)}
        return Score(hard, soft, self._feedback(answer, accepted, best, hard), scores)

    def _similarities(self, answer: str, gold: str) -> tuple[float, float]:
        """By the public scripts, and by the rule of earlier trainers."""
        said, wanted = self._plain(answer), self._plain(gold)
        distance: int = self._distance(said, wanted)
        raw, plain = max(len(answer.upper()), len(gold.upper())), max(len(said), len(wanted))
        return tuple(1.0 - distance / length if length else 1.0 for length in (raw, plain))  # type: ignore[return-value]

    def _plain(self, text: str) -> str:
        return " ".join((text.lower() if self._settings.ignore_case else text).split())

    def _feedback(self, answer: str, accepted: tuple[str, ...], best: float, hard: float) -> str:
        if hard:
            return "Right."
        if not answer.strip():
            return f"Wrong: there is no answer; accepted: {named(accepted)}."
        sentence = f"Wrong: answered {quoted(answer)}; accepted: {named(accepted)}."
        if not accepted:
            return sentence
        worth = ", too little to count" if best < self._settings.threshold else ""
        return f"{sentence} The spelling agrees to {best:.0%}{worth}."
