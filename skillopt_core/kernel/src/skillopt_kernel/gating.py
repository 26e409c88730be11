"""Gates that are one number: the mean scores, the decision, the order of asking and the early stop.

The rule, for a candidate and the current skill over the selection tasks:

* Compared are the tasks on which both have a score. Sums are exact (`math.fsum`), and scores are compared to
  twelve decimals, so that equal means are not told apart by how a float is written. A tie is a rejection.
* Tasks are asked hardest first: by the stored score of the current skill, then in split order.
* While the candidate is being asked, every task without a score counts as a win. As soon as not even that
  lifts it above the bar, it is rejected. Each further score can only lower what it may reach, so the shortest
  prefix that settles the matter is well defined, however outcomes arrive, and asking everything decides alike.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import closing
from math import fsum
from typing import Any, Literal

from attrs import define, field

from skillopt_kernel.interfaces import Trial
from skillopt_kernel.records import GateDecision, Outcome, Scored, Task

GateAction = Literal["reject", "accept", "accept_new_best"]
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
    return _mean(pair[0] for pair in pairs), _mean(pair[1] for pair in pairs)


def evaluate_gate(candidate_score: float, current_score: float, best_score: float) -> GateAction:
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
            return comparison.undecided("the current skill has no score on any selection task")
        comparison.ask()
        return comparison.decide()


@define
class _Comparison:
    """One judgement in progress. `outcomes` are the candidate's in the order of `order`, as far as they count."""

    gate: ScoreGate
    trial: Trial
    order: tuple[Task, ...] = ()
    comparable: int = 0
    bar: float = 0.0
    outcomes: list[Outcome] = field(factory=list)
    settled: bool = False
    _bonuses: dict[str, float] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        trial, current = self.trial, self.trial.current
        scored = [task for task in trial.tasks if _scored(current, task.id)]
        others = [task for task in trial.tasks if not _scored(current, task.id)]
        stored = current.outcomes
        scored.sort(key=lambda task: self.gate.score(stored[task.id].hard, stored[task.id].soft, current.skill))
        self.order, self.comparable = tuple(scored + others), len(scored)
        if scored:
            self.bar = self._value([stored[task.id] for task in scored], current.skill)

    def ask(self) -> None:
        """Take outcomes in order until the prefix settles it, or until everything is asked."""
        stops = self.trial.early_stop
        if not (stops and self._settles(())):
            with closing(self._arriving()) as arriving:
                for outcome in arriving:
                    self.outcomes.append(outcome)
                    if stops and self._settles(self.outcomes):
                        break
        self.settled = self._settles(self.outcomes)

    def _arriving(self) -> Generator[Outcome, None, None]:
        """The candidate's outcomes in order, without gaps.

        Once outcomes that came out of order have settled the matter, nothing new is started. Those that were
        stored before (a run was resumed) may then leave gaps, which are asked for after all, so that every
        run finds the same prefix.
        """
        trial, skill, count = self.trial, self.trial.candidate.skill, 0
        arrived: dict[str, Outcome] = {}

        def settled(so_far: Mapping[str, Outcome]) -> bool:
            arrived.update(so_far)
            return self._settles(so_far.values())

        for outcome in trial.evaluate(skill, self.order, settled=settled if trial.early_stop else None):
            if outcome.missing is not None and outcome.missing.reason == "cancelled":
                break
            count += 1
            yield outcome
        if count < len(self.order):
            yield from trial.evaluate(skill, self.order[count : self._enough(arrived)])

    def _enough(self, arrived: Mapping[str, Outcome]) -> int:
        """How many tasks, from the start, hold enough of the arrived outcomes to settle it; else all."""
        found: list[Outcome] = []
        for position, task in enumerate(self.order, start=1):
            if task.id in arrived:
                found.append(arrived[task.id])
                if self._settles(found):
                    return position
        return len(self.order)

    def _settles(self, outcomes: Iterable[Outcome]) -> bool:
        """Whether the candidate stays at or below the bar even if it wins every task that has no score here."""
        return self._bound(outcomes) <= self.bar

    def _bound(self, outcomes: Iterable[Outcome]) -> float:
        scored = [outcome for outcome in outcomes if outcome.scored and _scored(self.trial.current, outcome.task_id)]
        wins = [1.0] * (self.comparable - len(scored))
        hard, soft = _mean([each.hard for each in scored] + wins), _mean([each.soft for each in scored] + wins)
        return self._total(hard, soft, self.trial.candidate.skill)

    def decide(self) -> GateDecision:
        own = {outcome.task_id: outcome for outcome in self.outcomes if outcome.scored}
        pairs = _shared(own, self.trial.current)
        if self.settled and (not pairs or (self.trial.early_stop and len(self.outcomes) < self.comparable)):
            return self._stopped()
        if not pairs:
            return self.undecided("no selection task has a score for both the candidate and the current skill")
        score = self._value([pair[0] for pair in pairs], self.trial.candidate.skill)
        current = self._value([pair[1] for pair in pairs], self.trial.current.skill)
        best_pairs = _shared(own, self.trial.best)
        against_best = best = None
        if best_pairs:
            against_best = self._value([pair[0] for pair in best_pairs], self.trial.candidate.skill)
            best = self._value([pair[1] for pair in best_pairs], self.trial.best.skill)
        action = self._action(score > current, against_best, best)
        hard, soft = compute_score(pair[0] for pair in pairs)
        verdict = "is not above" if action == "reject" else "is above"
        reason = f"{self.gate.name} {score:.4f} {verdict} the current skill's {current:.4f} over {len(pairs)} tasks"
        if action == "reject" and score > current:
            reason = (
                f"{self.gate.name} cannot pass the current skill's {self.bar:.4f}, even if every task without a score "
                f"were a win ({self._bound(self.outcomes):.4f})"
            )
        return self._decision(
            action, reason, hard=hard, soft=soft, score=score, current_score=current, best_score=best,
            compared=len(pairs),
        )  # fmt: skip

    def _action(self, better: bool, against_best: float | None, best: float | None) -> GateAction:
        if self.settled or not better:
            return "reject"
        return "accept_new_best" if against_best is not None and best is not None and against_best > best else "accept"

    def _stopped(self) -> GateDecision:
        bound = self._bound(self.outcomes)
        reason = (
            f"after {len(self.outcomes)} of {len(self.order)} tasks the candidate's {self.gate.name} can reach at most "
            f"{bound:.4f}, not above the current skill's {self.bar:.4f}"
        )
        compared = sum(outcome.scored for outcome in self.outcomes)
        return self._decision("reject", reason, bound=bound, current_score=self.bar, compared=compared)

    def undecided(self, reason: str) -> GateDecision:
        return self._decision("undecided", reason)

    def _decision(self, action: str, reason: str, **numbers: Any) -> GateDecision:
        accepted = action in ("accept", "accept_new_best")
        return GateDecision(
            action=action,
            skill=self.trial.candidate.skill if accepted else self.trial.current.skill,
            reason=reason,
            asked=len(self.outcomes),
            total=len(self.order),
            missing=sum(not outcome.scored for outcome in self.outcomes),
            **numbers,
        )

    def _value(self, outcomes: Sequence[Outcome], skill: str) -> float:
        return self._total(_mean(each.hard for each in outcomes), _mean(each.soft for each in outcomes), skill)

    def _total(self, hard: float, soft: float, skill: str) -> float:
        if skill not in self._bonuses:
            self._bonuses[skill] = self.trial.bonus(skill)
        return round(self.gate.score(hard, soft, skill) + self._bonuses[skill], DECIMALS)


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return fsum(numbers) / len(numbers)


def _pair(outcome: Outcome | Mapping[str, Any]) -> tuple[float, float] | None:
    if isinstance(outcome, Outcome):
        return (outcome.hard, outcome.soft) if outcome.scored else None
    hard, soft = outcome.get("hard"), outcome.get("soft")
    return None if hard is None or soft is None else (float(hard), float(soft))


def _scored(side: Scored, task_id: str) -> bool:
    outcome = side.outcomes.get(task_id)
    return outcome is not None and outcome.scored


def _shared(own: Mapping[str, Outcome], other: Scored) -> list[tuple[Outcome, Outcome]]:
    return [(outcome, other.outcomes[task_id]) for task_id, outcome in own.items() if _scored(other, task_id)]
