"""Gates that are one number: the mean scores, the decision, the order of asking and the early stop.

The rule, for a candidate and the current skill over the selection tasks:

* Compared are the tasks on which both have a score. Sums are exact (`math.fsum`), and scores are compared to
  twelve decimals, so that equal means are not told apart by how a float is written. A tie is a rejection.
* One task that got better while the others stayed is a win, however many tasks there are and however small the step.
  No standard error decides: of such differences, m and n - 1 zeros, it is m / n, exactly the mean, so that a rule
  "the mean is above one standard error" would hang on rounding alone. Who asks for evidence beyond one look uses an
  e-process.
* With a score on both sides for fewer than `min_coverage` of the tasks it is undecided, and the current skill stays.
  A candidate that could not win with all that is missing either is rejected all the same.
* Tasks are asked hardest first: by the stored score of the current skill, then in split order.
* While the candidate is being asked, every task without a score counts as a win. As soon as not even that
  lifts it above the bar, it is rejected. Each further score can only lower what it may reach, so the shortest
  prefix that settles the matter is well defined, however outcomes arrive, and asking everything decides alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import fsum
from typing import Any

from skillopt_kernel.interfaces import Trial
from skillopt_kernel.records import GateDecision, Outcome, Score, Scored

DECIMALS = 12
"""Gate scores are compared and recorded to so many decimals."""


def compute_score(outcomes: Iterable[Outcome | Mapping[str, Any]]) -> tuple[float | None, float | None]:
    """Mean hard and mean soft score over the scored outcomes, each 0..1 as it was given, never cut to 0 or 1.

    An outcome may be a mapping with `hard` and `soft`; one that lacks them, or has `None`, is not scored.
    Returns `(None, None)` when nothing is scored: the mean of nothing is unknown, not zero.
    """
    pairs = [pair for pair in map(_pair, outcomes) if pair is not None]
    if not pairs:
        return None, None
    hard, soft = zip(*pairs, strict=True)
    return _mean(hard), _mean(soft)


def evaluate_gate(candidate_score: float, current_score: float, best_score: float) -> str:
    """The strict gate: a candidate must beat the current skill, and to be the new best, the best one too."""
    if not candidate_score > current_score:
        return "reject"
    return "accept_new_best" if candidate_score > best_score else "accept"


class ScoreGate(ABC):
    """A gate that is one number. A subclass gives `name` and `score`."""

    name: str = ""

    @abstractmethod
    def score(self, hard: float, soft: float, skill: str) -> float:
        """The gate score of a skill with these mean scores. Must not fall when `hard` or `soft` rises."""

    def judge(self, trial: Trial) -> GateDecision:
        """Ask the candidate as far as needed and decide. Pure but for `trial.evaluate`."""
        comparison = _Comparison(self, trial)
        if not comparison.comparable:
            return comparison.decision("undecided", "the current skill has no score on any selection task")
        if not comparison.covers(len(comparison.comparable)):
            return comparison.decision("undecided", comparison.too_few(len(comparison.comparable), "the current skill"))
        comparison.ask()
        return comparison.decide()


class _Comparison:
    """One judgement in progress.

    order       the tasks as they are asked; comparable: the first of them, which have a score of the current skill
    bar         the current skill's gate score over those
    outcomes    the candidate's, in this order, as far as they count
    """

    def __init__(self, gate: ScoreGate, trial: Trial) -> None:
        self.gate, self.trial = gate, trial
        stored, skill = trial.current.outcomes, trial.current.skill
        scored = [task for task in trial.tasks if _scored(trial.current, task.id)]
        scored.sort(key=lambda task: gate.score(stored[task.id].hard, stored[task.id].soft, skill))
        self.order = (*scored, *(task for task in trial.tasks if not _scored(trial.current, task.id)))
        self.comparable = frozenset(task.id for task in scored)
        self.outcomes: list[Outcome] = []
        self.bonuses = {side.skill: trial.bonus(side.skill) for side in (trial.candidate, trial.current, trial.best)}
        self.bar = self._value(skill, [stored[task.id] for task in scored]) if scored else 0.0

    def ask(self) -> None:
        """Take outcomes in order until the prefix settles it, or until everything is asked.

        Nothing new is begun once outcomes that came out of order have settled it. That may end the iterator before
        the prefix does; then the rest is asked plainly, so that every run, resumed or not, finds the same prefix.
        Where there are thousands of tasks, not every outcome is followed by a look: each look takes in all there are.
        """
        trial, often = self.trial, len(self.order) // 256 + 1

        def settled(found: Collection[Outcome]) -> bool:
            return trial.early_stop and not len(found) % often and self._settles(found)

        for early in ((lambda arrived: settled(arrived.values())) if trial.early_stop else None, None):
            if settled(self.outcomes):
                return
            rest = self.order[len(self.outcomes) :]
            for outcome in trial.evaluate(trial.candidate.skill, rest, settled=early):
                self.outcomes.append(outcome)
                if settled(self.outcomes):
                    return

    def _settles(self, outcomes: Iterable[Outcome]) -> bool:
        return self._bound(outcomes) <= self.bar

    def _bound(self, outcomes: Iterable[Outcome]) -> float:
        """The most that the candidate can reach: every task that has no score here counts as a win."""
        scored = [one.score for one in outcomes if one.score is not None and one.task_id in self.comparable]
        return self._value(self.trial.candidate.skill, scored, wins=len(self.comparable) - len(scored))

    def decide(self) -> GateDecision:
        trial, settled = self.trial, self._settles(self.outcomes)
        own = {outcome.task_id: outcome for outcome in self.outcomes if outcome.scored}
        against_current, against_best = self._compared(own, trial.current), self._compared(own, trial.best)
        if against_current is None:
            if settled:
                return self._stopped(len(own))
            reason = "no selection task has a score for both the candidate and the current skill"
            return self.decision("undecided", reason)
        score, current_score = against_current
        better = score > current_score
        if settled and (better or (trial.early_stop and len(self.outcomes) < len(self.comparable))):
            return self._stopped(len(own))
        action = "accept" if better else "reject"
        if better and against_best is not None and against_best[0] > against_best[1]:
            action = "accept_new_best"
        verdict = "is above" if better else "is not above"
        shared = [outcome for outcome in own.values() if _scored(trial.current, outcome.task_id)]
        hard, soft = compute_score(shared)
        name, count = self.gate.name, len(shared)
        told = f"{name} {score:.4f} {verdict} the current skill's {current_score:.4f} over {count} tasks"
        if not settled and not self.covers(count):
            action, told = "undecided", f"{self.too_few(count, 'both skills')}; {told}"
        best_score = None if against_best is None else against_best[1]
        numbers = {"hard": hard, "soft": soft, "score": score, "current_score": current_score, "compared": count}
        return self.decision(action, told, best_score=best_score, **numbers)

    def covers(self, count: int) -> bool:
        """Whether scores on so many tasks are enough to decide by."""
        return count >= round(self.trial.min_coverage * len(self.order), 9)

    def too_few(self, count: int, whose: str) -> str:
        return (
            f"{count} of {len(self.order)} selection tasks have a score of {whose}, and evaluation.min_coverage asks "
            f"for {self.trial.min_coverage:.0%}"
        )

    def _compared(self, own: Mapping[str, Outcome], other: Scored) -> tuple[float, float] | None:
        """The gate scores of the candidate and of `other` over the tasks on which both have one."""
        shared = [task_id for task_id in own if _scored(other, task_id)]
        if not shared:
            return None
        candidate = self._value(self.trial.candidate.skill, [own[task_id] for task_id in shared])
        return candidate, self._value(other.skill, [other.outcomes[task_id] for task_id in shared])

    def _stopped(self, compared: int) -> GateDecision:
        bound = self._bound(self.outcomes)
        reason = (
            f"after {len(self.outcomes)} of {len(self.order)} tasks the candidate's {self.gate.name} can reach at most "
            f"{bound:.4f}, not above the current skill's {self.bar:.4f}"
        )
        return self.decision("reject", reason, bound=bound, current_score=self.bar, compared=compared)

    def decision(self, action: str, reason: str, **numbers: Any) -> GateDecision:
        side = self.trial.candidate if action.startswith("accept") else self.trial.current
        missing = sum(not outcome.scored for outcome in self.outcomes)
        numbers |= {"asked": len(self.outcomes), "total": len(self.order), "missing": missing}
        return GateDecision(action, side.skill, reason, **numbers)

    def _value(self, skill: str, scores: Sequence[Outcome | Score], wins: int = 0) -> float:
        """The gate score of `skill`, bonus included, with these scores and so many wins beside them."""
        hard = _mean([one.hard for one in scores] + [1.0] * wins)
        soft = _mean([one.soft for one in scores] + [1.0] * wins)
        return round(self.gate.score(hard, soft, skill) + self.bonuses[skill], DECIMALS)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _pair(outcome: Outcome | Mapping[str, Any]) -> tuple[float, float] | None:
    if isinstance(outcome, Outcome):
        return (outcome.hard, outcome.soft) if outcome.scored else None
    hard, soft = outcome.get("hard"), outcome.get("soft")
    return None if hard is None or soft is None else (float(hard), float(soft))


def _scored(side: Scored, task_id: str) -> bool:
    outcome = side.outcomes.get(task_id)
    return outcome is not None and outcome.scored
