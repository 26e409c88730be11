"""Solved tasks are counted over those on which both sides have a score. Everything is asked: nothing stops early."""

from __future__ import annotations

from attrs import field, frozen, validators
from skillopt_kernel import DriverContext, GateDecision, Outcome, Scored, Trial, compute_score


@frozen
class StrictlyMoreSettings:
    """How much better is better.

    more_tasks  how many more tasks a candidate must solve
    """

    more_tasks: int = field(default=1, validator=validators.ge(1))


class StrictlyMoreGate:
    name = "strictly_more"

    def __init__(self, settings: StrictlyMoreSettings, context: DriverContext) -> None:
        self.settings = settings

    def score(self, hard: float, soft: float, skill: str) -> float:
        return hard

    def judge(self, trial: Trial) -> GateDecision:
        outcomes = {each.task_id: each for each in trial.evaluate(trial.candidate.skill, trial.tasks)}
        gained, compared = self._gained(outcomes, trial.current)
        gained_on_best, _ = self._gained(outcomes, trial.best)
        hard, soft = compute_score(list(outcomes.values()))
        common = {"hard": hard, "soft": soft, "score": hard, "asked": len(outcomes), "total": len(trial.tasks)}
        told = {**common, "compared": compared, "missing": sum(not each.scored for each in outcomes.values())}
        reason = f"{gained:+d} tasks solved over {compared}, {self.settings.more_tasks} more are needed"
        if compared == 0:
            return GateDecision("undecided", trial.current.skill, "no task has a score on both sides", **common)
        missing = len(trial.tasks) - compared
        if missing > (1 - trial.min_coverage) * len(trial.tasks) and gained + missing >= self.settings.more_tasks:
            return GateDecision("undecided", trial.current.skill, f"{reason}; {missing} have no score", **told)
        if gained < self.settings.more_tasks:
            return GateDecision("reject", trial.current.skill, reason, compared=compared, **common)
        action = "accept_new_best" if gained_on_best >= self.settings.more_tasks else "accept"
        return GateDecision(action, trial.candidate.skill, reason, compared=compared, **common)

    def _gained(self, outcomes: dict[str, Outcome], other: Scored) -> tuple[int, int]:
        """How many more tasks are solved, and over how many both have a score."""
        both = [
            (mine, other.outcomes[task])
            for task, mine in outcomes.items()
            if mine.scored and task in other.outcomes and other.outcomes[task].scored
        ]
        return sum((mine.hard == 1.0) - (theirs.hard == 1.0) for mine, theirs in both), len(both)
