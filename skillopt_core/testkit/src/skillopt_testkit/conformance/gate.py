"""What every gate must keep."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import pytest
from skillopt_kernel.records import GateDecision, Missing, Outcome, Score, Scored, Task

from skillopt_testkit.conformance.common import PluginConformance
from skillopt_testkit.scripted import StoredTrial

ACCEPTING = ("accept", "accept_new_best")
Scores = Sequence[tuple[float, float] | None]
"""(hard, soft) of each task in split order; `None`: the outcome is missing."""


def tasks_of(count: int) -> tuple[Task, ...]:
    return tuple(Task(f"task-{number:03d}") for number in range(count))


def side(skill: str, scores: Scores) -> Scored:
    """A skill with these stored scores."""
    outcomes = {}
    for task, pair in zip(tasks_of(len(scores)), scores, strict=True):
        score = None if pair is None else Score(*pair)
        missing = Missing("endpoint", "no reply") if pair is None else None
        outcomes[task.id] = Outcome(task.id, "", skill, 0, score=score, missing=missing)
    return Scored(skill, skill, outcomes)


def trial_of(candidate: Scores, current: Scores, best: Scores | None = None, **options: Any) -> StoredTrial:
    """A trial over as many tasks as there are scores; without `best`, the current skill is the best one."""
    present = side("current", current)
    best_side = present if best is None else side("best", best)
    return StoredTrial(side("candidate", candidate), present, best_side, tasks_of(len(candidate)), **options)


def random_scores(draw: random.Random, count: int, missing: float = 0.0) -> list[tuple[float, float] | None]:
    scores: list[tuple[float, float] | None] = []
    for _ in range(count):
        hard = draw.choice([0.0, 1.0, draw.choice([0.1, 0.25, 1 / 3, 0.7])])
        scores.append(None if draw.random() < missing else (hard, max(hard, draw.choice([0.0, 0.2, 0.6, 1.0]))))
    return scores


class GateConformance(PluginConformance):
    """Subclass it and give `name`. `tasks`: how many tasks it needs to tell all right from all wrong."""

    kind = "gate"
    tasks: ClassVar[int] = 40

    def judge(self, driver: Any, trial: StoredTrial) -> GateDecision:
        decision = driver.judge(trial)
        assert isinstance(decision, GateDecision), f"judge() returned a {type(decision).__name__}"
        assert decision.skill == (trial.candidate.skill if decision.accepted else trial.current.skill)
        assert decision.reason.strip(), "a decision says why"
        return decision

    def test_name_is_the_plugins_name(self, driver: Any) -> None:
        assert driver.name == self.name

    def test_all_wrong_to_all_right_is_a_new_best(self, driver: Any) -> None:
        trial = trial_of([(1, 1)] * self.tasks, [(0, 0)] * self.tasks)
        decision = self.judge(driver, trial)
        assert decision.action == "accept_new_best"
        assert (decision.hard, decision.soft) == (1.0, 1.0)
        assert decision.asked == decision.total == self.tasks, "an accepted candidate is asked everything"

    def test_all_right_to_all_wrong_is_rejected(self, driver: Any) -> None:
        assert self.judge(driver, trial_of([(0, 0)] * self.tasks, [(1, 1)] * self.tasks)).action == "reject"

    @pytest.mark.parametrize("score", [0.0, 0.1, 1.0])
    def test_equal_scores_are_not_accepted(self, driver: Any, score: float) -> None:
        decision = self.judge(driver, trial_of([(score, score)] * self.tasks, [(score, score)] * self.tasks))
        assert not decision.accepted, "a tie is no improvement"

    def test_better_than_the_current_skill_but_not_than_the_best(self, driver: Any) -> None:
        right, wrong = [(1.0, 1.0)] * self.tasks, [(0.0, 0.0)] * self.tasks
        decision = self.judge(driver, trial_of(right, wrong, best=right))
        assert decision.action == "accept"

    def test_nothing_to_compare_is_not_accepted(self, driver: Any) -> None:
        missing: Scores = [None] * self.tasks
        assert not self.judge(driver, trial_of(missing, [(0, 0)] * self.tasks)).accepted
        assert not self.judge(driver, trial_of([(1, 1)] * self.tasks, missing)).accepted

    def test_missing_outcomes_are_no_zeros(self, driver: Any) -> None:
        lost = self.tasks // 4
        candidate: Scores = [(1.0, 1.0)] * (self.tasks - lost) + [None] * lost
        current: Scores = [(0.0, 0.0)] * (self.tasks - lost) + [(1.0, 1.0)] * lost
        decision = self.judge(driver, trial_of(candidate, current))
        assert decision.action == "accept_new_best", decision.reason
        assert decision.compared == self.tasks - lost

    def test_below_the_coverage_that_is_asked_for_it_is_undecided(self, driver: Any) -> None:
        right, wrong, lost = (1.0, 1.0), (0.0, 0.0), self.tasks // 4
        some: Scores = [right] * (self.tasks - lost) + [None] * lost
        decision = self.judge(driver, trial_of(some, [wrong] * self.tasks, min_coverage=0.8))
        assert decision.action == "undecided"
        assert (decision.missing, decision.compared) == (lost, self.tasks - lost)
        assert self.judge(driver, trial_of([right] * self.tasks, some, min_coverage=0.8)).action == "undecided"
        assert self.judge(driver, trial_of(some, [wrong] * self.tasks, min_coverage=0.7)).accepted

    def test_what_cannot_win_with_all_that_is_missing_is_rejected_whatever_is_covered(self, driver: Any) -> None:
        lost = self.tasks // 4
        some: Scores = [(0.0, 0.0)] * (self.tasks - lost) + [None] * lost
        assert self.judge(driver, trial_of(some, [(1.0, 1.0)] * self.tasks, min_coverage=0.95)).action == "reject"

    @pytest.mark.parametrize("seed", range(60))
    def test_stopping_early_changes_no_decision(self, driver: Any, seed: int) -> None:
        draw = random.Random(seed)
        count, missing = draw.randint(1, 24), draw.choice([0.0, 0.2])
        candidate, current = random_scores(draw, count, missing), random_scores(draw, count, missing)
        bonuses: Mapping[str, float] = draw.choice([{}, {"candidate": 0.05}, {"current": 0.05}])
        order = [task.id for task in tasks_of(count)]
        draw.shuffle(order)
        whole = self.judge(driver, trial_of(candidate, current, early_stop=False, bonuses=bonuses))
        early = self.judge(driver, trial_of(candidate, current, bonuses=bonuses))
        mixed = self.judge(driver, trial_of(candidate, current, bonuses=bonuses, arrivals=order))
        assert early.action == whole.action, (early.reason, whole.reason)
        assert mixed == early, "a decision does not depend on the order in which outcomes arrive"

    def test_score_does_not_fall_when_scores_rise(self, driver: Any) -> None:
        steps = [number / 8 for number in range(9)]
        for fixed in steps:
            by_hard = [driver.score(value, fixed, "") for value in steps]
            by_soft = [driver.score(fixed, value, "") for value in steps]
            assert by_hard == sorted(by_hard)
            assert by_soft == sorted(by_soft)
