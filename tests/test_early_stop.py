"""The early stop decides as a full evaluation would, whatever arrives when: random outcomes through the gate stage.

Everything but the attempts is what a run uses: configuration, hooks, gate drivers, the gate stage and the pool. In the
place of attempts stand outcomes drawn by lot, which arrive in an order drawn by lot whenever the loop waits for one.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import attrs
import pytest
from http_world import answer, configure, make_project
from skillopt_kernel.loop.attempts import AttemptPool, Ended, Purpose
from skillopt_kernel.loop.preparing import prepare
from skillopt_kernel.loop.run import RunContext, RunTrial
from skillopt_kernel.records import Applied, Ask, GateDecision, Missing, Outcome, Score, Scored, Splits, Task
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer

from skillopt_core import load_config

Pair = tuple[float, float] | None
"""Hard and soft score of one task, `None`: it is missing for good."""

CURRENT, BEST, CANDIDATE = "# Current\n", "# Best\n\n- Be short.\n", "# Candidate\n\n- You MUST answer, ALWAYS.\n"
FOLDER = Purpose("selection", "selection")
RETRIES = 2


class Arrivals(threading.Condition):
    """The pool's condition, whose wait is the arrival of one of the attempts under way, drawn by lot."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world

    def wait(self, timeout: float | None = None) -> bool:
        self.world.arrive()
        return True


@attrs.define
class World:
    """Attempts at the candidate. Some answers are there only after having been missing once or twice."""

    truth: Mapping[str, Pair]
    workers: int
    rng: random.Random
    late: Mapping[str, int] = attrs.field(factory=dict)
    stored: dict[str, Outcome] = attrs.field(factory=dict)
    begun: list[str] = attrs.field(factory=list)
    under_way: list[tuple[Ask, Ended]] = attrs.field(factory=list)

    def pool(self) -> AttemptPool:
        pool = AttemptPool(
            lambda: self.workers,
            key=lambda ask: (ask.skill, ask.task.id, ask.sample),
            find=lambda ask: self.stored.get(ask.task.id),
            start=self.start,
            missing_retries=RETRIES,
        )
        pool._changed = Arrivals(self)
        pool._scored = True  # as in every run, whose rollouts come before
        return pool

    def start(self, ask: Ask, purpose: Purpose, done: Ended) -> None:
        assert ask.skill == CANDIDATE
        self.begun.append(ask.task.id)
        self.under_way.append((ask, done))
        assert len(self.under_way) <= self.workers

    def arrive(self) -> None:
        assert self.under_way, "the loop waits for what was never begun"
        ask, done = self.under_way.pop(self.rng.randrange(len(self.under_way)))
        name = ask.task.id
        lost = self.begun.count(name) <= self.late.get(name, 0)
        ended = outcome(name, None if lost else self.truth[name])
        if ended.scored:
            self.stored[name] = ended
        done(ended)


def outcome(name: str, pair: Pair) -> Outcome:
    if pair is None:
        return Outcome(name, "", "", 0, missing=Missing("endpoint", "no answer"))
    return Outcome(name, "", "", 0, score=Score(*pair))


@attrs.define
class Case:
    """Three skills on some tasks, as drawn by lot."""

    tasks: tuple[Task, ...]
    candidate: dict[str, Pair]
    current: Scored
    best: Scored
    late: dict[str, int]

    @classmethod
    def drawn(cls, rng: random.Random, missing: float) -> Case:
        names = [f"t{number}" for number in range(rng.randint(1, 24))]
        draw = rng.choice(KINDS_OF_SCORES)
        now = {name: None if rng.random() < missing else draw(rng) for name in names}
        how = rng.random()
        if how < 0.25:  # the same scores on other tasks: a tie that sums in floats would miss
            candidate = dict(zip(names, rng.sample(list(now.values()), len(names)), strict=True))
        elif how < 0.75:  # what a candidate mostly is: the current skill with a few tasks changed
            candidate = {name: draw(rng) if rng.random() < 0.15 else pair for name, pair in now.items()}
        else:
            candidate = {name: draw(rng) for name in names}
        candidate = {name: None if rng.random() < missing else pair for name, pair in candidate.items()}
        top = now if rng.random() < 0.5 else {name: draw(rng) for name in names}
        late = {name: rng.choice((1, RETRIES)) for name in names if missing and rng.random() < missing}
        tasks = tuple(Task(name) for name in names)
        return cls(tasks, candidate, scored(CURRENT, now), scored(CURRENT if top is now else BEST, top), late)


def scored(skill: str, pairs: Mapping[str, Pair]) -> Scored:
    return Scored(skill, "step_0001", {name: outcome(name, pair) for name, pair in pairs.items()})


def passed_or_not(rng: random.Random) -> Pair:
    return rng.choice(((0.0, 0.0), (1.0, 1.0)))


def fractions(rng: random.Random) -> Pair:
    """Tenths, thirds and sevenths: hardly one of them is a float."""
    part = rng.choice((3, 7, 10))
    soft = rng.randint(0, part) / part
    return (float(soft == 1.0), soft) if rng.random() < 0.5 else (rng.randint(0, part) / part, soft)


def anything(rng: random.Random) -> Pair:
    return rng.random(), rng.random()


KINDS_OF_SCORES: tuple[Callable[[random.Random], Pair], ...] = (passed_or_not, fractions, anything)
GATES: dict[str, dict[str, Any]] = {
    "hard": {},
    "soft": {"gate_metric": "soft"},
    "mixed": {"gate_metric": "mixed"},
    "mixed, a third": {"gate_metric": "mixed", "gate_mixed_weight": 1 / 3},
    "mixed, soft alone": {"gate_metric": "mixed", "gate_mixed_weight": 1},
    "hard with density": {"use_semantic_density": True, "semantic_density_weight": 0.1},
    "mixed with density": {
        "gate_metric": "mixed", "gate_mixed_weight": 0.1, "use_semantic_density": True, "semantic_density_weight": 0.03,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project.make(tmp_path_factory.mktemp("early_stop"))


def run_of(project: Project, evaluation: Mapping[str, Any]) -> RunContext:
    """A prepared run that is not opened: nothing is written, and the pool is the one of each case."""
    changes = [f"evaluation.{key}={value}" for key, value in evaluation.items()] + ["train.samples_per_task=3"]
    prepared = prepare(load_config(project.folder / "config.yaml", changes), ())
    missing = [field.name for field in attrs.fields(RunContext) if field.init and field.default is attrs.NOTHING]
    parts: dict[str, Any] = dict.fromkeys(missing) | attrs.asdict(prepared, recurse=False)
    run = RunContext(**parts)
    run.place.purpose = FOLDER
    return run


def judged(run: RunContext, case: Case, world: World) -> GateDecision:
    """By the gate stage."""
    run.pool, run.splits = world.pool(), Splits((), case.tasks)
    return run.hooks.gate(run, None, Applied(CANDIDATE), case.current, case.best)  # type: ignore[arg-type]


def judged_in_full(run: RunContext, case: Case, world: World) -> GateDecision:
    """By the same gate, which is told to ask everything."""
    run.pool = world.pool()
    coverage = run.settings.evaluation.min_coverage
    candidate = Scored(CANDIDATE, "step_0002")
    return run.gate.judge(RunTrial(run, candidate, case.current, case.best, case.tasks, False, coverage))


def verdict_in_fractions(run: RunContext, case: Case) -> str | None:
    """The rule written down anew, in exact numbers, where nothing is missing; `None`: too near to tell."""

    weight = Fraction({"hard": 0.0, "soft": 1.0}.get(run.gate.name, getattr(run.gate, "weight", 0.0)))

    def score(skill: str, pairs: list[Pair]) -> Fraction:
        hard, soft = (sum((Fraction(pair[at]) for pair in pairs if pair), Fraction(0)) / len(pairs) for at in (0, 1))
        return (1 - weight) * hard + weight * soft + Fraction(run.hooks.score_bonus(run, skill))

    def above(one: Fraction, other: Fraction) -> bool | None:
        return None if one != other and abs(one - other) < Fraction(1, 10**11) else one > other

    names = [task.id for task in case.tasks]
    candidate = score(CANDIDATE, [case.candidate[name] for name in names])
    sides = [(side.skill, [side.outcomes[name] for name in names]) for side in (case.current, case.best)]
    bars = [score(skill, [(one.hard, one.soft) for one in outcomes]) for skill, outcomes in sides]
    better, best = (above(candidate, bar) for bar in bars)
    if better is None or best is None:
        return None
    return ("accept_new_best" if best else "accept") if better else "reject"


@pytest.mark.parametrize(("missing", "coverage"), [(0.0, 0.95), (0.1, 0.8), (0.25, 0.0)])
@pytest.mark.parametrize("gate", GATES)
def test_a_gate_that_stops_decides_as_one_that_asks_everything(
    project: Project, gate: str, missing: float, coverage: float
) -> None:
    run = run_of(project, {**GATES[gate], "min_coverage": coverage, "missing_retries": RETRIES})
    rng = random.Random(f"{gate} {missing}")
    seen, stopped, exact = set[str](), 0, 0
    for _ in range(100):
        case = Case.drawn(rng, missing)
        asked_all = World(case.candidate, 4, rng, case.late)
        full = judged_in_full(run, case, asked_all)
        decisions = []
        for workers in (1, 3, 24):
            stored = {name: outcome(name, pair) for name, pair in case.candidate.items() if pair and rng.random() < 0.3}
            world = World(case.candidate, workers, rng, case.late, stored=stored if workers == 3 else {})
            decisions.append(judged(run, case, world))
            assert len(world.begun) <= len(asked_all.begun), "stopping never asks for more"
        decision = decisions[0]
        assert decisions[1:] == [decision, decision], "neither concurrency nor what was stored changes the record"
        assert (decision.action, decision.skill) == (full.action, full.skill)
        if decision.asked == decision.total:
            assert decision == full
        else:
            stopped += 1
            assert decision.action in ("reject", "undecided")
        if decision.bound is not None:
            assert (decision.action, decision.hard, decision.soft, decision.score) == ("reject", None, None, None)
            assert decision.current_score is not None
            assert decision.bound <= decision.current_score
        if not missing and (verdict := verdict_in_fractions(run, case)) is not None:
            exact += 1
            assert decision.action == verdict
        seen.add(decision.action)
    assert {"reject", "accept", "accept_new_best"} <= seen
    assert stopped > 2
    assert missing or exact > 90


def counted(run: RunContext, case: Case, workers: int, seed: int = 0) -> tuple[GateDecision, list[str]]:
    world = World(case.candidate, workers, random.Random(seed))
    return judged(run, case, world), world.begun


def case_of(current: list[float], candidate: list[float]) -> Case:
    names = [f"t{number:02d}" for number in range(len(current))]
    now, new = ({name: (one, one) for name, one in zip(names, side, strict=True)} for side in (current, candidate))
    known = scored(CURRENT, now)
    return Case(tuple(map(Task, names)), dict(new), known, known, {})


def test_a_candidate_that_changes_nothing_is_asked_no_more_than_decides_however_many_workers(project: Project) -> None:
    """Six of thirty fail with the current skill. They fail again: that settles it, so nothing else is begun for it."""
    run, fails = run_of(project, {}), [0.0] * 6 + [1.0] * 24
    for workers in (1, 4, 24):
        decision, begun = counted(run, case_of(fails, fails), workers)
        assert (decision.action, decision.asked, begun) == ("reject", 6, [f"t{number:02d}" for number in range(6)])
        assert (decision.hard, decision.bound) == (None, 0.8)


def test_the_first_win_lets_the_others_begin_and_a_loss_elsewhere_holds_them_again(project: Project) -> None:
    run, fails = run_of(project, {}), [0.0] * 6 + [1.0] * 24
    better = [0.0] * 5 + [1.0] * 25
    for workers in (1, 24):
        decision, begun = counted(run, case_of(fails, better), workers)
        assert (decision.action, len(begun)) == ("accept_new_best", 30)
    worse = better.copy()
    worse[8] = 0.0
    decision, begun = counted(run, case_of(fails, worse), 1)
    assert (decision.action, decision.asked, len(begun)) == ("reject", 9, 9)


def test_the_bonus_counts_in_what_is_expected(project: Project) -> None:
    """With the same answers as the current skill the bonus alone would win: nothing is held back."""
    run, fails = run_of(project, GATES["hard with density"]), [0.0] * 6 + [1.0] * 24
    decision, begun = counted(run, case_of(fails, fails), 24)
    assert (decision.action, len(begun)) == ("accept_new_best", 30)


def test_a_stopped_candidate_is_recorded_by_its_bound_and_the_optimizer_is_told_at_most(tmp_path: Path) -> None:
    """Steps 1 to 3 learn a rule each, step 4 proposes what spoils every answer."""
    world = make_project(tmp_path)
    with ChatServer(answer) as server:
        config = configure(world, server, train={"num_epochs": 3}, gradient={"keep_step_buffer": True})
        world.run("train", config, "--out", "run").ok()
        told = [str(received.body["messages"][-1]["content"]) for received in server.requests]
    stopped = world.json("run/history.json")[3]
    numbers = {name: stopped[f"selection_{name}"] for name in ("hard", "soft", "bound", "asked", "compared")}
    assert stopped["action"] == "reject"
    assert numbers == {"hard": None, "soft": None, "bound": 0.625, "asked": 3, "compared": 3}
    assert (stopped["candidate_gate_score"], stopped["bar"]) == (None, 0.625)
    assert len(world.lines("run/steps/step_0004/selection_eval/results.jsonl")) == 3, "no other was begun"
    sentence = "the score went from 0.6250 to at most 0.6250"
    assert any(sentence in one for one in told if "What was tried before" in one)
