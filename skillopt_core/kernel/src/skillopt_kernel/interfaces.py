"""The narrow interfaces of drivers ("which"), and what hooks and drivers are given to work with.

All are protocols: a driver inherits nothing, it only has these methods. Everything is synchronous; workers are
threads (or processes), and what may be called from several of them at once says so.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from attrs import frozen

if TYPE_CHECKING:
    from skillopt_kernel.execution import AttemptJob, Done, ModelCalls
    from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, ChatRequest, Message, Tool
    from skillopt_kernel.records import (
        Applied,
        Ask,
        Attempt,
        EditBudget,
        GateDecision,
        Outcome,
        Proposal,
        Score,
        Scored,
        Splits,
        Task,
        Turn,
        Update,
    )

Finding = tuple[Literal["ok", "warning", "error"], str]
"""One finding of a check: how bad, and a sentence. `skillopt doctor` asks every driver with a method `check`."""


@frozen
class DriverContext:
    """What a factory gets beside its settings.

    folder    where the driver may keep files of this run; `None` outside a run
    seed      the run's seed; role and model: for backends, which role it plays with which model
    common    the kernel's settings of the section (`EnvSettings`; of a backend `ExecutionSettings`), or a `Workplace`
    driver    `driver(kind, name, settings=None)` makes another driver that this one needs by name
    """

    logger: logging.Logger
    seed: int = 0
    folder: Path | None = None
    role: str = ""
    model: str | None = None
    common: Any = None
    driver: Callable[..., Any] | None = None


class Target(Protocol):
    """The frozen agent as one attempt may use it. Each call raises `Cancelled` after the deadline.

    `trajectory` is kept by the kernel: messages that the environment sends and replies that come back, in
    order; `note` adds what the environment says (role `environment`). `kind` is how it can be asked: "chat" or "agent".
    """

    kind: str

    @property
    def remaining(self) -> float | None: ...
    @property
    def cancelled(self) -> bool: ...
    @property
    def trajectory(self) -> tuple[Turn, ...]: ...
    @property
    def usage(self) -> Any: ...
    def chat(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Tool] = (),
        tool_choice: str = "auto",
        max_tokens: int | None = None,
    ) -> ChatReply: ...
    def agent(self, job: AgentJob) -> AgentResult: ...
    def note(self, content: str, *, step: int | None = None) -> None: ...


class Judge(Protocol):
    """The third role: a model that scores. `chat` is as the target's; its calls have the stage `judge`."""

    def chat(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> ChatReply: ...


class Environment(Protocol):
    """A benchmark: loads splits, attempts one task, scores one attempt.

    targets    which kinds of target it can work with: a subset of {"chat", "agent"}
    isolation  "thread": one instance serves all threads at once and must bear it; "process": one a worker

    Optional: `evidence(task, attempt) -> Mapping[str, str]` (analysts; training tasks only), `prompts()` (of analysts,
    by name), `describe(task) -> str` (for reports), `initial_skill() -> str` (where none is named), `notes()` (for
    the summary), `save_splits(folder)`, `check() -> list[Finding]`, `further_data: str` (hash of what else counts).
    """

    targets: frozenset[str]
    isolation: Literal["thread", "process"]

    def splits(self) -> Splits: ...
    def attempt(self, task: Task, skill: str, target: Target) -> Attempt: ...
    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score: ...


class ChatModel(Protocol):
    """One model behind one endpoint. `complete` is called from many threads at once.

    Raises `PassingError`, `PermanentError`, `RejectedRequest`, `ContextTooLong`, `RefusedError` or `Pending`. It does
    not retry, limit, cache, count or log. Optional, found by name: `max_tokens`, its own limit of a reply.
    """

    model: str

    def complete(self, request: ChatRequest) -> ChatReply: ...


class AgentHarness(Protocol):
    """An agent program. `run` is called from many threads at once and raises as `ChatModel.complete` does."""

    model: str

    def run(self, job: AgentJob) -> AgentResult: ...


class Backend(Protocol):
    """A provider for one role. `capabilities` maps each role it can play to a subset of {"chat", "agent"}.

    Optional, found by name: `tells`, what its replies say of their use, a subset of {"tokens", "usd"} (tokens);
    `enter(folder)`, told the run's before a model is opened; `waiting()`, what waits after `Pending`; `close()`.
    """

    capabilities: Mapping[str, frozenset[str]]

    def open_chat(self, role: str) -> ChatModel: ...
    def open_agent(self, role: str) -> AgentHarness: ...
    def endpoint(self, role: str) -> str: ...
    def check(self, role: str) -> list[Finding]: ...


class Trial(Protocol):
    """What a gate judges: a candidate beside the current and the best skill.

    `evaluate` is lazy, in the order asked, answered from the store where possible; leaving the loop cancels
    what has not begun. `settled`, if given, is asked with every outcome that has arrived (by task id, in any
    order) and stops the *starting* of further attempts once it says yes; what has started still arrives.
    `early_stop` is false when every task must be asked. `min_coverage`: the share of the tasks that must have a score
    on both sides; with fewer it is undecided, unless the candidate could not win with what is missing either.
    """

    @property
    def candidate(self) -> Scored: ...
    @property
    def current(self) -> Scored: ...
    @property
    def best(self) -> Scored: ...
    @property
    def tasks(self) -> tuple[Task, ...]: ...
    @property
    def early_stop(self) -> bool: ...
    @property
    def min_coverage(self) -> float: ...
    def bonus(self, skill: str) -> float: ...
    def evaluate(
        self,
        skill: str,
        tasks: Sequence[Task],
        sample: int = 0,
        settled: Callable[[Mapping[str, Outcome]], bool] | None = None,
    ) -> Iterator[Outcome]: ...


class Gate(Protocol):
    """Which number decides, and what counts as better. `name` stands in records and console."""

    name: str

    def judge(self, trial: Trial) -> GateDecision: ...
    def score(self, hard: float, soft: float, skill: str) -> float: ...


@frozen
class Moment:
    """What a scheduler is asked with. `step` is 1-based of `total_steps`.

    update is `None` when it is asked before reflection (what the analysts are told) and the aggregated update
    when it is asked again (what is enforced). Only then there are `optimizer`, for schedulers that ask it, and in
    `evidence` what to show it: `skill`, `items` (a line each), `item_kind`, `memory`, `meta`, and the rollout's
    `rollout_n`, `rollout_hard`, `rollout_soft`.
    """

    step: int
    total_steps: int
    update: Update | None = None
    evidence: Mapping[str, Any] | None = None
    optimizer: Optimizer | None = None


class Scheduler(Protocol):
    """How many items a step may apply. Stateless: the same moment gives the same budget.

    A scheduler that does not look at `total_steps` says so (`depends_on_total_steps = False`); then a finished
    run may go on with more epochs.
    """

    def budget(self, moment: Moment) -> EditBudget: ...


class Optimizer(Protocol):
    """The optimizer for one call site, through ledger, budget and limits.

    `ask` returns the reply; `ask_json` the JSON object in it, after at most one reminder, and raises
    `UnusableReply` when there is still none. `check`, if given, returns what is wrong with the object, or
    `None`: a wrong one is reminded of once, too.
    """

    def ask(self, system: str, user: str, *, max_tokens: int | None = None) -> ChatReply: ...
    def ask_json(
        self,
        system: str,
        user: str,
        *,
        check: Callable[[Mapping[str, Any]], str | None] | None = None,
        schema: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
    ) -> Mapping[str, Any]: ...


class UpdateOptimizer(Optimizer, Protocol):
    """The optimizer as an update mode may ask it when it applies an update, for a whole text.

    prompt   fills one of the mode's own prompts as the run uses it: the configuration may have replaced it
    memory   what was tried before; meta: advice from earlier epochs; room: what may be added. Each may be empty
    """

    @property
    def prompt(self) -> Callable[..., str]: ...
    @property
    def memory(self) -> str: ...
    @property
    def meta(self) -> str: ...
    @property
    def room(self) -> str: ...


class UpdateMode(Protocol):
    """What an update is made of and how it is applied.

    payload      the JSON key that holds a reply's items ("edits")
    item_schema  JSON schema of one item; a prompt shows it as `{{schema}}`
    budgeted     whether an edit budget applies; items that know none are whole skills, so replies may be long
    separable    whether items can be applied one by one

    `prompts()` has analyst_failure, analyst_success, merge_failure, merge_success, merge_final, with a budget
    ranking, and what else `apply` asks with.
    `read_item` makes one item of a reply's JSON and raises `ValueError` with the reason; `write_item` is its
    inverse, for files and prompts; `describe_item` is one line for ranking and memory. `apply` gets at most
    `budget` items that it may apply, and reports every item.
    """

    name: str
    payload: str
    item_schema: Mapping[str, Any]
    budgeted: bool
    separable: bool

    def prompts(self) -> Mapping[str, str]: ...
    def read_item(self, raw: Mapping[str, Any]) -> Any: ...
    def write_item(self, item: Any) -> dict[str, Any]: ...
    def describe_item(self, item: Any) -> str: ...
    def apply(self, skill: str, update: Update, budget: EditBudget, optimizer: UpdateOptimizer) -> Applied: ...


class Scorer(Protocol):
    """How an answer compares with a reference; one of no use is a `ValueError`. Optional: `check(reference, task)`, and
    `shape_only(tasks)`: what it looks at where that is the same whatever the outcome ("at the heading"), else ""."""

    def score(self, answer: str, reference: Any, task: Task, judge: Judge | None = None) -> Score: ...


class Executor(Protocol):
    """Where attempts run. The kernel keeps the queue and hands over at most `capacity` jobs at a time.

    job    data, and so is the result; `calls` are its model calls, which are made in the run's process
    done   called once for each job, from any thread, also when the worker failed or was lost

    The factory gets a `skillopt_kernel.loop.worker.Workplace` as `context.common`; once its `stopping` is set, jobs end
    as soon as they can. `close` comes when none is in flight, or nobody waits any more, and leaves no process behind.
    """

    @property
    def capacity(self) -> int: ...
    def submit(self, job: AttemptJob, calls: ModelCalls, done: Done) -> None: ...
    def close(self) -> None: ...


@runtime_checkable
class Run(Protocol):
    """What a stage hook works with. The loop's thread only.

    state     one JSON dict for each plugin (under 64 kB), saved with each checkpoint, restored on a resume
    train     the training tasks: the only ones that a reflecting stage can reach
    sample    the number of an epoch's rollouts, for asks that are to find them in the store; of several attempts
              at a task (`train.samples_per_task`) the first, `samples` has the numbers of all
    evaluate  outcomes of asks in their order; with `part` they are kept apart, as in `rollout_prev` for "prev".
              `write` puts a file beside them: JSON, or for `.jsonl` a line for each value
    mode      the update mode that the configuration names; `prompt` fills one of its prompts
    whole     an outcome with its trajectory read back; evidence: what the environment adds for analysts
    room      how much may still be added to a skill, as the optimizer is told; "" where its length is not limited
    """

    @property
    def settings(self) -> Any: ...
    @property
    def seed(self) -> int: ...
    @property
    def logger(self) -> logging.Logger: ...
    @property
    def train(self) -> tuple[Task, ...]: ...
    @property
    def mode(self) -> UpdateMode: ...
    @property
    def current(self) -> Scored: ...
    @property
    def best(self) -> Scored: ...
    @property
    def state(self) -> dict[str, Any]: ...
    def folder(self, moment: Step | Epoch) -> Path: ...
    def random(self, *names: str | int) -> random.Random: ...
    def sample(self, epoch: int) -> int: ...
    def samples(self, epoch: int) -> tuple[int, ...]: ...
    def evaluate(self, asks: Sequence[Ask], part: str = "") -> Iterator[Outcome]: ...
    def prefetch(self, asks: Sequence[Ask], part: str = "") -> None: ...
    def write(self, name: str, value: Any) -> None: ...
    def whole(self, outcome: Outcome) -> Outcome: ...
    def evidence(self, outcome: Outcome) -> Mapping[str, str]: ...
    def optimizer(self, stage: str, key: str = "") -> Optimizer: ...
    def prompt(self, name: str, **values: str) -> str: ...
    def room(self, skill: str) -> str: ...
    def scheduled_budget(self, step: Step, update: Update | None) -> EditBudget: ...
    def apply(self, skill: str, update: Update, budget: EditBudget) -> Applied: ...
    def judge(self, applied: Applied, current: Scored, best: Scored) -> GateDecision: ...
    def skill_after(self, step: int) -> str: ...


class Step(Protocol):
    """One step as a stage sees it: what earlier stages made, and what it is told.

    number is 1-based in the run; batch counts accumulation batches from 0, `batch_seed` shuffles its groups.
    `samples` are the numbers of its rollouts, one for each attempt at a task. `memory` is the step buffer as text,
    `meta` the meta skill; both may be empty.

    What a plugin may add to, each empty at first:
    instructions  "failure" or "success" -> what those analysts are told after their prompt; only analysts that are
                  told something may answer with `appendix_notes`
    counters      further numbers of the step's record, by name
    call_failures a sentence for each optimizer call of the plugin that came to nothing, as `failure_sentence` gives
                  it; the record's `model_failures` counts them
    """

    number: int
    epoch: int
    batch: int
    batch_seed: int
    samples: tuple[int, ...]
    planned_budget: EditBudget
    enforced_budget: EditBudget
    memory: str
    meta: str
    outcomes: tuple[Outcome, ...]
    proposals: tuple[Proposal, ...]
    update: Update | None
    applied: Applied | None
    instructions: dict[str, str]
    counters: dict[str, int]
    call_failures: list[str]


class Epoch(Protocol):
    """One epoch at its end.

    `first_skill` is the one at the end of the epoch before, before guidance was written into it (the start skill in
    the first), `last_skill` the current one, before this epoch's guidance. `memory` is the epoch's step buffer as
    text, `meta` the meta skill so far; both may be empty.
    """

    number: int
    steps: tuple[int, ...]
    first_skill: str
    last_skill: str
    memory: str
    meta: str
