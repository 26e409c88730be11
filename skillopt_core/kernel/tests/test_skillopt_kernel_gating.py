"""Score gates: means, ties, the order of asking, and the early stop that decides as a full evaluation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs
import pytest
from skillopt_kernel.gating import ScoreGate, compute_score, evaluate_gate
from skillopt_kernel.records import GateDecision, Missing, Outcome, Score, Scored, Task

Result = tuple[float, float] | None
"""Hard and soft, or `None` for an outcome that is missing."""


class Weighted(ScoreGate):
    def __init__(self, weight: float) -> None:
        self.weight = weight
        self.name = f"weighted {weight}"

    def score(self, hard: float, soft: float, skill: str) -> float:
        return (1 - self.weight) * hard + self.weight * soft


class Curved(ScoreGate):
    """Monotone but far from linear: what a third party may write."""

    name = "curved"

    def score(self, hard: float, soft: float, skill: str) -> float:
        return hard**3 + min(soft, 0.7)


HARD, SOFT = Weighted(0.0), Weighted(1.0)


def outcome(task_id: str, result: Result, reason: str = "endpoint") -> Outcome:
    score = None if result is None else Score(*result)
    missing = Missing(reason, "it failed") if result is None else None
    return Outcome(task_id, "", "", 0, score=score, missing=missing)


def side(skill: str, results: Mapping[str, Result]) -> Scored:
    return Scored(skill, "step_0001", {key: outcome(key, value) for key, value in results.items()})


@attrs.define
class PlayedTrial:
    """A trial whose outcomes arrive out of order from `workers` at once, some from a store at the start.

    Attempts begin in the order asked. Once `settled` says yes none begins any more, stored ones excepted; the
    iterator then ends at the first that was not begun.
    """

    candidate: Scored
    current: Scored
    best: Scored
    tasks: tuple[Task, ...]
    truth: Mapping[str, Result]
    early_stop: bool = True
    bonuses: Mapping[str, float] = attrs.field(factory=dict)
    workers: int = 1
    rng: random.Random = attrs.field(factory=random.Random)
    stored: set[str] = attrs.field(factory=set)
    begun: list[str] = attrs.field(factory=list)
    min_coverage: float = 0.0

    def bonus(self, skill: str) -> float:
        return self.bonuses.get(skill, 0.0)

    def evaluate(
        self,
        skill: str,
        tasks: Sequence[Task],
        sample: int = 0,
        settled: Callable[[Mapping[str, Outcome]], bool] | None = None,
    ) -> Iterator[Outcome]:
        assert skill == self.candidate.skill
        arrived = {task.id: self._of(task) for task in tasks if task.id in self.stored}
        waiting = [task for task in tasks if task.id not in arrived]
        running: list[Task] = []
        done = settled is not None and settled(arrived)
        for task in tasks:
            while task.id not in arrived:
                while waiting and len(running) < self.workers and not done:
                    running.append(waiting.pop(0))
                    self.begun.append(running[-1].id)
                if not running:
                    return
                finished = running.pop(self.rng.randrange(len(running)))
                arrived[finished.id] = self._of(finished)
                self.stored.add(finished.id)
                done = done or (settled is not None and settled(arrived))
            yield arrived[task.id]

    def _of(self, task: Task) -> Outcome:
        return outcome(task.id, self.truth[task.id])


def trial(
    candidate: Sequence[Result], current: Sequence[Result], best: Sequence[Result] | None = None, **more: Any
) -> PlayedTrial:
    ids = [f"t{number}" for number in range(len(candidate))]
    now = side("current", dict(zip(ids, current, strict=True)))
    top = now if best is None else side("best", dict(zip(ids, best, strict=True)))
    tasks = tuple(Task(task_id) for task_id in ids)
    return PlayedTrial(side("candidate", {}), now, top, tasks, dict(zip(ids, candidate, strict=True)), **more)


def passed(*hard: float) -> list[Result]:
    return [(value, value) for value in hard]


# The plain functions --------------------------------------------------------------------------------------


def test_graded_scores_stay_graded() -> None:  # case O-G4
    given = [{"hard": value, "soft": 1 - value} for value in (0.75, 0.2, 1.0, 0)]
    assert compute_score(given) == (0.4875, 0.5125)


def test_only_scored_outcomes_enter_a_mean() -> None:
    mixed: list[Any] = [
        outcome("a", (1.0, 0.5)),
        outcome("b", None),
        {"hard": None, "soft": None},
        {"hard": False, "soft": 0.25},
    ]
    assert compute_score(mixed) == (0.5, 0.375)
    assert compute_score([]) == compute_score([outcome("a", None), {}]) == (None, None)


def test_sums_are_exact() -> None:
    assert compute_score([{"hard": 0.1, "soft": 0.1}] * 10) == (0.1, 0.1)


@pytest.mark.parametrize(
    ("candidate", "current", "best", "action"),
    [
        (0.9, 0.5, 0.5, "accept_new_best"),
        (0.6, 0.4, 0.8, "accept"),
        (0.8, 0.5, 0.8, "accept"),
        (0.5, 0.5, 0.5, "reject"),
        (0.6, 0.5, 0.6, "accept"),
        (0.7, 0.5, 0.6, "accept_new_best"),
        (0.4, 0.5, 0.6, "reject"),
    ],
)
def test_ties_reject(candidate: float, current: float, best: float, action: str) -> None:  # case O-G6
    assert evaluate_gate(candidate, current, best) == action


# The decision ---------------------------------------------------------------------------------------------


SIZES, STEPS, BASES = (4, 7, 10, 33), (0.1, 0.3, 1.0), (0.0, 0.1, 0.2, 0.6)


@pytest.mark.parametrize("place", [0, 1, -1])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("size", SIZES)
def test_one_improved_task_is_a_win_and_the_same_one_lost_a_rejection(size: int, step: float, place: int) -> None:
    """O-G1: the verdict comes from the rule; it is the same for every size, step, base and place."""
    for base in (base for base in BASES if base + step <= 1.0):
        plain, better = [base] * size, [base] * size
        better[place] = base + step
        won = HARD.judge(trial(passed(*better), passed(*plain)))
        assert won.action == "accept_new_best"
        assert won.score == pytest.approx(base + step / size, abs=1e-12)
        assert HARD.judge(trial(passed(*plain), passed(*better))).action == "reject"


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("size", SIZES)
def test_the_same_scores_on_other_tasks_are_a_tie_however_they_are_added_up(size: int, step: float) -> None:
    """O-G1: a plain sum would tell such sides apart by the order of its terms, as the first line shows."""
    assert sum([0.1, 0.2, 0.3]) != sum([0.3, 0.2, 0.1])
    scores = [(number * step / 7) % 1.0 for number in range(size)]
    rng = random.Random(size)
    for _ in range(20):
        other = rng.sample(scores, size)
        decision = HARD.judge(trial(passed(*other), passed(*scores), early_stop=False))
        assert (decision.action, decision.score) == ("reject", decision.current_score)


def test_an_accepted_candidate_is_asked_everything() -> None:
    played = trial(passed(1, 1, 0, 1), passed(0, 0, 1, 1))
    decision = HARD.judge(played)
    assert decision.action == "accept_new_best"
    assert (decision.hard, decision.soft, decision.score, decision.current_score) == (0.75, 0.75, 0.75, 0.5)
    assert (decision.asked, decision.total, decision.compared, decision.missing) == (4, 4, 4, 0)
    assert decision.bound is None
    assert decision.skill == "candidate"
    assert played.begun == ["t0", "t1", "t2", "t3"]


def test_the_best_skill_is_a_bar_of_its_own() -> None:
    decision = HARD.judge(trial(passed(1, 1, 0, 0), passed(1, 0, 0, 0), passed(1, 1, 1, 0)))
    assert (decision.action, decision.current_score, decision.best_score) == ("accept", 0.25, 0.75)
    assert HARD.judge(trial(passed(1, 1, 0, 0), passed(1, 0, 0, 0), passed(1, 1, 0, 0))).action == "accept"


def test_the_hardest_tasks_come_first_and_a_rejection_stops() -> None:
    played = trial(passed(1, 0, 1, 0, 1), passed(1, 0, 1, 0, 1))
    decision = HARD.judge(played)
    assert played.begun == ["t1", "t3"]
    assert decision.action == "reject"
    assert (decision.hard, decision.soft, decision.score) == (None, None, None)
    assert (decision.bound, decision.current_score) == (0.6, 0.6)
    assert (decision.asked, decision.total, decision.compared) == (2, 5, 2)
    assert decision.skill == "current"
    assert "after 2 of 5 tasks" in decision.reason
    assert "at most 0.6000" in decision.reason


def test_a_perfect_skill_cannot_be_beaten_and_nothing_is_asked() -> None:
    decision = HARD.judge(trial(passed(1, 1), passed(1, 1)))
    assert (decision.action, decision.asked, decision.bound) == ("reject", 0, 1.0)


def test_without_early_stop_everything_is_asked() -> None:
    decision = HARD.judge(trial(passed(0, 0, 0), passed(1, 1, 1), early_stop=False))
    assert (decision.action, decision.asked, decision.hard, decision.bound) == ("reject", 3, 0.0, None)


def test_the_metric_chosen_decides() -> None:  # case O-G5
    current: list[Result] = [(1.0, 1.0), (0.0, 0.06), *passed(0, 0, 0, 0)]
    candidate: list[Result] = [(1.0, 1.0), (0.0, 0.26), *passed(0, 0, 0, 0)]
    assert HARD.judge(trial(candidate, current)).action == "reject"
    accepted = SOFT.judge(trial(candidate, current))
    assert accepted.action == "accept_new_best"
    assert "weighted 1.0 0.2100 is above" in accepted.reason
    assert Weighted(0.5).judge(trial(candidate, current)).action == "accept_new_best"
    assert SOFT.judge(trial([(0.95, 0.2)], [(0.5, 0.5)])).action == "reject"


def test_equal_scores_tie_however_their_parts_are_rounded() -> None:
    assert 0.75 * 0.8 + 0.25 * 0.4 != 0.75 * 0.6 + 0.25 * 1.0  # floats tell them apart
    decision = Weighted(0.25).judge(trial([(0.8, 0.4)], [(0.6, 1.0)], early_stop=False))
    assert (decision.action, decision.score, decision.current_score) == ("reject", 0.7, 0.7)


def test_the_bonus_is_added_to_both_sides() -> None:
    same = passed(1, 0)
    assert HARD.judge(trial(same, same, bonuses={"candidate": 0.1})).action == "accept_new_best"
    assert HARD.judge(trial(same, same, bonuses={"candidate": 0.1, "current": 0.1})).action == "reject"
    assert HARD.judge(trial(passed(1, 1), same, bonuses={"current": 0.5})).action == "reject"


# Missing outcomes -----------------------------------------------------------------------------------------


def test_compared_is_what_both_sides_have() -> None:
    candidate: list[Result] = [(1.0, 1.0), None, (1.0, 1.0), (0.0, 0.0)]
    current: list[Result] = [(0.0, 0.0), (0.0, 0.0), (1.0, 1.0), None]
    decision = HARD.judge(trial(candidate, current))
    assert decision.action == "accept_new_best"
    assert (decision.score, decision.current_score) == (1.0, 0.5)
    assert (decision.compared, decision.missing, decision.asked) == (2, 1, 4)


def test_a_missing_outcome_counts_as_a_possible_win() -> None:
    played = trial([None, *passed(0, 1, 1)], passed(0, 0, 1, 1))
    decision = HARD.judge(played)
    assert len(played.begun) == 4  # one more win was possible, so that nothing was settled
    assert (decision.action, decision.compared) == ("reject", 3)


@pytest.mark.parametrize(
    ("candidate", "current"), [([None, None], passed(0, 0)), (passed(1, 1), [None, None]), ([], [])]
)
def test_nothing_to_compare_is_undecided(candidate: list[Result], current: list[Result]) -> None:
    decision = HARD.judge(trial(candidate, current))
    assert (decision.action, decision.skill, decision.compared) == ("undecided", "current", 0)
    assert decision.reason


def test_a_best_skill_with_nothing_to_compare_is_not_replaced() -> None:
    assert HARD.judge(trial(passed(1, 1), passed(0, 1), [None, None])).action == "accept"


def test_a_possible_win_that_is_not_enough_rejects_even_a_better_part() -> None:
    candidate: list[Result] = [(1.0, 1.0), None, None, None]
    for early_stop, asked in ((True, 0), (False, 4)):
        bonuses = {"candidate": -0.5}
        decision = HARD.judge(trial(candidate, passed(0, 1, 1, 1), bonuses=bonuses, early_stop=early_stop))
        assert (decision.action, decision.asked, decision.score) == ("reject", asked, None)
        assert (decision.bound, decision.current_score) == (0.5, 0.75)
        assert "can reach at most 0.5000, not above the current skill's 0.7500" in decision.reason


# The early stop decides as a full evaluation --------------------------------------------------------------


def random_results(rng: random.Random, count: int, missing: float) -> list[Result]:
    def one() -> Result:
        if rng.random() < missing:
            return None
        hard = rng.choice((0.0, 0.0, 1.0, 1 / 3, 0.1, 0.7))
        return hard, rng.choice((hard, rng.random()))

    return [one() for _ in range(count)]


def brute_force(gate: ScoreGate, played: PlayedTrial) -> str:
    """The strict gate over everything, written down anew, for outcomes that are all there."""

    def total(results: Sequence[Result], skill: str) -> float:
        hard, soft = compute_score({"hard": r[0], "soft": r[1]} for r in results if r is not None)
        assert hard is not None
        assert soft is not None
        return round(gate.score(hard, soft, skill) + played.bonus(skill), 12)

    def of(scored: Scored) -> list[Result]:
        return [(scored.outcomes[task.id].hard, scored.outcomes[task.id].soft) for task in played.tasks]

    candidate = total([played.truth[task.id] for task in played.tasks], "candidate")
    return evaluate_gate(candidate, total(of(played.current), "current"), total(of(played.best), played.best.skill))


@pytest.mark.parametrize("gate", [HARD, SOFT, Weighted(0.3), Curved()], ids=lambda gate: gate.name)
@pytest.mark.parametrize(("missing", "coverage"), [(0.0, 0.95), (0.2, 0.0), (0.1, 0.8)])
def test_stopping_early_decides_as_asking_everything(gate: ScoreGate, missing: float, coverage: float) -> None:
    rng = random.Random(7)
    stopped = 0
    for _ in range(300):
        count = rng.randint(1, 14)
        sides = [random_results(rng, count, missing) for _ in range(3)]
        bonuses = {"candidate": rng.choice((0.0, -0.1, 0.2)), "current": rng.choice((0.0, 0.05))}
        decisions: list[GateDecision] = []
        for workers in (1, 3, 20):
            ids = [f"t{number}" for number in range(count)]
            stored = {task_id for task_id in ids if workers == 3 and rng.random() < 0.4}
            played = trial(*sides, bonuses=bonuses, workers=workers, rng=rng, stored=stored, min_coverage=coverage)
            decisions.append(gate.judge(played))
        full_trial = trial(*sides, bonuses=bonuses, early_stop=False, min_coverage=coverage)
        full = gate.judge(full_trial)
        assert {decision.action for decision in decisions} == {full.action}
        # Neither concurrency nor what a killed run had stored changes what is recorded.
        assert decisions[0] == decisions[1] == decisions[2]
        if not missing:
            assert full.action == brute_force(gate, full_trial)
        if decisions[0].asked < count:
            stopped += 1
            assert full.action in ("reject", "undecided")
        elif full.action != "undecided":
            assert decisions[0] == full
    assert stopped > 30


def test_starting_ends_when_late_arrivals_settle_it() -> None:
    """The first tasks hang; those that run beside them settle the matter, and no more are begun."""

    class LastFirst(random.Random):
        def randrange(self, *bounds: int) -> int:  # type: ignore[override]
            return bounds[0] - 1

    played = trial(passed(*[0.0] * 20), passed(*[0.0] * 18, 1, 1), workers=4, rng=LastFirst())
    played.current = side("current", {f"t{n}": (0.5, 0.5) for n in range(20)})
    decision = HARD.judge(played)
    assert decision.action == "reject"
    assert decision.asked == 10  # 0.5 can no longer be exceeded
    assert len(played.begun) == 13  # ten that settled it, and three that were running
