"""One run as its stages and hooks see it: the `Run` of `skillopt_kernel.interfaces`, made of its parts."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import attrs
from attrs import define, field, frozen

from skillopt_kernel.errors import StoppedEarly
from skillopt_kernel.gating import DECIMALS, compute_score
from skillopt_kernel.interfaces import Moment, Optimizer
from skillopt_kernel.loop.attempts import AttemptPool, Purpose
from skillopt_kernel.loop.budget import Account
from skillopt_kernel.loop.length import long_skill, room_left
from skillopt_kernel.loop.memory import memory_text
from skillopt_kernel.loop.plan import Plan
from skillopt_kernel.loop.preparing import Prepared
from skillopt_kernel.loop.state import LoopState, saved_skill
from skillopt_kernel.models.requests import ChatReply
from skillopt_kernel.records import Applied, Ask, EditBudget, GateDecision, Outcome, Scored, Task, Update
from skillopt_kernel.skill import skill_hash
from skillopt_kernel.splits import SAMPLES_APART
from skillopt_kernel.store.directory import RunDirectory
from skillopt_kernel.store.event_log import EventLog
from skillopt_kernel.store.files import write_json, write_json_lines
from skillopt_kernel.store.outcomes import OutcomeStore

TIMING_KEYS = {"gate": "evaluate_s"}
"""What the record of a step calls a stage's time, where not `<stage>_s`."""


@define
class Place:
    """Where the loop is: what events and folders are labelled with, and what the stages there took in seconds."""

    epoch: int | None = None
    step: int | None = None
    stage: str | None = None
    purpose: Purpose = field(factory=lambda: Purpose("rollout", "rollout"))
    timing: dict[str, float] = field(factory=dict)


@frozen
class AppliedBy:
    """The `UpdateOptimizer` of `skillopt_kernel.interfaces`."""

    ask: Callable[..., ChatReply]
    ask_json: Callable[..., Mapping[str, Any]]
    prompt: Callable[..., str]
    memory: str
    meta: str
    room: str


@frozen
class RunTrial:
    """The `Trial` of `skillopt_kernel.interfaces`, evaluated on the run's pool."""

    run: RunContext
    candidate: Scored
    current: Scored
    best: Scored
    tasks: tuple[Task, ...]
    early_stop: bool
    min_coverage: float

    def bonus(self, skill: str) -> float:
        return self.run.hooks.score_bonus(self.run, skill)

    def evaluate(
        self,
        skill: str,
        tasks: Sequence[Task],
        sample: int = 0,
        settled: Callable[[Mapping[str, Outcome]], bool] | None = None,
    ) -> Iterator[Outcome]:
        asks = [Ask(skill, task, sample) for task in tasks]
        stops, expected = (settled, self.current.outcomes) if self.early_stop else (None, None)
        return self.run.pool.evaluate(asks, self.run.place.purpose, settled=stops, expected=expected, in_order=True)


@define(eq=False)
class RunContext(Prepared):
    """A prepared run under way: everything that it works with. The loop's thread only, but for `emit`.

    tasks     every task by its id
    digest    the skill hash of a text, remembered: every ask needs it
    """

    directory: RunDirectory
    outcomes: OutcomeStore
    events: EventLog
    state_of_run: LoopState
    stop: threading.Event
    account: Account
    pool: AttemptPool = field(init=False)
    plan: Plan = field(init=False)
    tasks: dict[str, Task] = field(init=False)
    place: Place = field(factory=Place, init=False)
    ended: threading.Event = field(factory=threading.Event, init=False)
    digest: Callable[[str], str] = field(factory=lambda: lru_cache(maxsize=64)(skill_hash), init=False)
    _warned: bool = field(default=False, init=False)
    _began: float = field(factory=time.monotonic, init=False)
    _train_ids: frozenset[str] = field(init=False)

    def __attrs_post_init__(self) -> None:
        splits = self.splits
        self.plan = Plan(splits.train, self.settings.train)
        self.tasks = {task.id: task for task in (*splits.train, *splits.selection, *splits.test)}
        self._train_ids = frozenset(task.id for task in splits.train)

    @property
    def seed(self) -> int:
        return self.settings.train.seed

    @property
    def train(self) -> tuple[Task, ...]:
        return self.splits.train

    @property
    def state(self) -> dict[str, Any]:
        """One JSON dict a plugin, by the plugin's name; made empty at the first look."""
        return self.state_of_run.plugins

    @property
    def current(self) -> Scored:
        return self.state_of_run.current

    @property
    def best(self) -> Scored:
        return self.state_of_run.best

    @property
    def seconds(self) -> float:
        """Wall time, that of earlier processes of this run included."""
        return round(self.state_of_run.seconds + time.monotonic() - self._began, 3)

    def sample(self, epoch: int) -> int:
        """The number of an epoch's rollouts: a new epoch asks anew, unless the target would answer alike."""
        return 0 if self.settings.evaluation.deterministic_target else epoch

    def samples(self, epoch: int) -> tuple[int, ...]:
        """The numbers of all attempts that an epoch's rollouts make at one task, the first as `sample` says."""
        return tuple(self.sample(epoch) + SAMPLES_APART * at for at in range(self.settings.train.samples_per_task))

    def folder(self, moment: Any) -> Path:
        """The folder of a step or an epoch's end, made if need be."""
        layout = self.directory
        path = layout.step(moment.number) if hasattr(moment, "batch") else layout.slow_update(moment.number)
        path.mkdir(parents=True, exist_ok=True)
        return path

    def random(self, *names: str | int) -> random.Random:
        """A generator of its own for these names, the same on every run with this seed."""
        digest = hashlib.sha256("|".join(map(str, (self.seed, *names))).encode("utf-8")).digest()
        return random.Random(int.from_bytes(digest[:8], "big"))

    # Attempts ----------------------------------------------------------------------------------------------

    def evaluate(self, asks: Sequence[Ask], part: str = "") -> Iterator[Outcome]:
        """Outcomes of training tasks in the order asked, for a stage's own use."""
        return self.pool.evaluate(asks, self._purpose(part))

    def prefetch(self, asks: Sequence[Ask], part: str = "") -> None:
        self.pool.prefetch(asks, self._purpose(part))

    def _purpose(self, part: str) -> Purpose:
        purpose = self.place.purpose
        return attrs.evolve(purpose, folder=f"{purpose.folder}_{part}") if part else purpose

    def write(self, name: str, value: Any) -> None:
        """A file in the folder of the stage under way; `.jsonl` has a line for each of the values."""
        path = self.directory.root / Path(self.place.purpose.folder).parent / name
        write_json_lines(path, value) if path.suffix == ".jsonl" else write_json(path, value)

    def whole(self, outcome: Outcome) -> Outcome:
        return self.outcomes.with_trajectory(outcome)

    def evidence(self, outcome: Outcome) -> Mapping[str, str]:
        """What the environment adds for analysts; nothing for a task that is not a training task."""
        give = getattr(self.environment, "evidence", None)
        if outcome.task_id not in self._train_ids or give is None or outcome.attempt is None:
            return {}
        return dict(give(self.tasks[outcome.task_id], outcome.attempt))

    # Models and drivers ------------------------------------------------------------------------------------

    def optimizer(self, stage: str, key: str = "") -> Optimizer:
        if self.stop.is_set():
            raise StoppedEarly("the run was asked to stop; its state is saved.")
        model, ask = self.settings.model, partial(self.models.optimizer, stage, key, self.place.epoch, self.place.step)
        if stage != "rewrite" and (self.mode.budgeted or stage not in ("analyst", "merge")):
            return ask()
        effort = model.rewrite_reasoning_effort or None
        return ask(effort=effort, max_tokens=model.rewrite_max_completion_tokens)

    def prompt(self, name: str, **values: str) -> str:
        return self.prompts[name].fill(**values)

    def room(self, skill: str) -> str:
        return room_left(skill, self.settings.optimizer.max_skill_tokens)

    def scheduled_budget(self, step: Any, update: Update | None) -> EditBudget:
        if not self.mode.budgeted or self.settings.optimizer.lr_control_mode == "none":
            return EditBudget(None, "the configuration asks for no limit")
        moment = Moment(step.number, self.plan.total_steps)
        if update is not None:
            items = tuple(self.mode.describe_item(item) for item in update.items)
            shown = {"skill": self.current.skill, "items": items, "item_kind": self.mode.payload}
            evidence = {**step.numbers(), **shown, "memory": step.memory, "meta": step.meta}
            optimizer = self.optimizer("lr_autonomous")
            moment = attrs.evolve(moment, update=update, evidence=evidence, optimizer=optimizer)
        return self.scheduler.budget(moment)

    def apply(self, skill: str, update: Update, budget: EditBudget) -> Applied:
        model, state = self.optimizer("rewrite"), self.state_of_run
        told = (memory_text(state.memory), state.meta, self.room(skill))
        optimizer = AppliedBy(model.ask, model.ask_json, self.prompt, *told)
        return self.mode.apply(skill, update, budget, optimizer)

    def judge(self, applied: Applied, current: Scored, best: Scored) -> GateDecision:
        """Ask the gate driver. Without a gate everything is asked, and the candidate is taken whatever it says."""
        use_gate, coverage = self.settings.evaluation.use_gate, self.settings.evaluation.min_coverage
        candidate = Scored(applied.candidate, f"step_{self.place.step or 0:04d}")
        trial = RunTrial(self, candidate, current, best, self.splits.selection, use_gate, coverage)
        decision = self.gate.judge(trial)
        if use_gate:
            return decision
        reason = f"evaluation.use_gate is false: taken without regard to the gate ({decision.reason})"
        return attrs.evolve(decision, action="force_accept", skill=applied.candidate, reason=reason)

    def gate_score(self, scored: Scored) -> float | None:
        """The gate score of a skill over the selection tasks that it has a score on, bonus included."""
        hard, soft = compute_score(scored.outcomes.values())
        if hard is None or soft is None:
            return None
        bonus = self.hooks.score_bonus(self, scored.skill)
        return round(self.gate.score(hard, soft, scored.skill) + bonus, DECIMALS)

    def skill_after(self, step: int) -> str:
        """The current skill as it was after `step`; 0 is the start skill."""
        return saved_skill(self.directory, self.state_of_run, self.directory.relative(self.directory.skill(step)))

    def warned(self) -> str:
        """The warning that the current skill is long, the first time in a process that it is; "" else."""
        warning = "" if self._warned else long_skill(self.current.skill)
        self._warned = self._warned or bool(warning)
        return warning

    # Events and stages -------------------------------------------------------------------------------------

    def emit(self, name: str, **data: Any) -> None:
        place = self.place
        self.events.emit(name, epoch=place.epoch, step=place.step, stage=place.stage, **data)

    @contextmanager
    def stage(self, name: str, **about: Any) -> Iterator[dict[str, Any]]:
        """Announce a stage, time it and announce its end with what the body put into the dict."""
        self.place.stage = name
        began = time.monotonic()
        self.emit("stage_started", **about)
        made: dict[str, Any] = {}
        try:
            yield made
        finally:
            seconds = time.monotonic() - began
            key, timing = TIMING_KEYS.get(name, f"{name}_s"), self.place.timing
            timing[key] = round(timing.get(key, 0.0) + seconds, 3)
        self.emit("stage_finished", seconds=round(seconds, 3), **made)
        self.place.stage = None
