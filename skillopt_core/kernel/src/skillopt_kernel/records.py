"""What flows through the loop: frozen records, made once and never changed.

Everything that one stage hands to the next is in the order of tasks and groups, never of completion. Scores
are floats in 0..1; `None` stands for *unknown* or *there is none*, never for zero.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

import attrs
from attrs import field, frozen

Role = Literal["system", "user", "assistant", "tool", "environment"]
EditOp = Literal["append", "insert_after", "replace", "delete"]
Source = Literal["failure", "success", "mixed"]

EDIT_STATUSES = ("applied", "unmatched", "ambiguous", "no_op", "protected", "over_budget", "invalid")
"""What can become of one item of an update; `edit_apply_report.json` uses these words."""

ENDINGS = ("attempt_timeout", "max_turns", "refused", "empty_answer", "context_exceeded")
"""The target's own doing. An attempt that ended so is scored: `hard` 0, `soft` as earned."""

MISSING_REASONS = ("endpoint", "call_timeout", "rejected", "worker", "program", "environment", "judge", "cancelled")
"""What the target cannot help. An outcome that is missing for one of these has no score and enters no mean."""

ACTIONS = (
    "accept_new_best", "accept", "reject", "undecided", "unverified", "force_accept",
    "skip_no_patches", "skip_no_rewrite", "skip_no_change",
)  # fmt: skip
"""How a step can end; `history.json` uses these words."""


def _frozen_mapping(value: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return dict(value or {})


@frozen
class Task:
    """One task of a split.

    id         unique in all splits; becomes a file name in a safe form
    kind       the task type, for reports by type; empty when the benchmark has none
    inputs     what the target may see, JSON values by name
    reference  what only scoring may see (and, of training tasks, the optimizer); `None` once hidden
    files      relative name -> absolute path of files that the target may see; the paths are no part of what the task
               is, so that data can be moved: an environment puts digests of their content into `inputs`
    """

    id: str
    kind: str = ""
    inputs: Mapping[str, Any] = field(factory=dict, converter=_frozen_mapping)
    reference: Any = None
    files: Mapping[str, str] = field(factory=dict, converter=_frozen_mapping)

    def hidden(self) -> Task:
        """The task as an attempt sees it: without its reference."""
        return attrs.evolve(self, reference=None)

    def content_hash(self) -> str:
        """16 hex digits over everything that can change an outcome, the reference included; of `files` the names."""
        return self._content_hash

    @cached_property
    def _content_hash(self) -> str:
        content = json.dumps(
            [self.id, self.kind, self.inputs, self.reference, dict.fromkeys(self.files)],
            sort_keys=True,
            ensure_ascii=False,
            default=str,
        )
        return hashlib.sha256(content.encode("utf-8")).hexdigest()[:16]


@frozen
class Splits:
    """The three sequences of tasks, in file order. `test` may be empty, and `selection` where nothing gates."""

    train: tuple[Task, ...]
    selection: tuple[Task, ...]
    test: tuple[Task, ...] = ()


@frozen
class ToolCall:
    """A call that the model asks for. `arguments` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@frozen
class Turn:
    """One turn of a conversation as it happened. What an environment says has the role `environment`."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    step: int | None = None


Trajectory = tuple[Turn, ...]


@frozen
class Usage:
    """Tokens of one call or of many. `None` is *unknown*; sums keep how many calls did not tell.

    prompt_tokens includes `cached_tokens`, completion_tokens includes `reasoning_tokens`. `usd` is what the
    provider said, if it did.
    """

    calls: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    usd: float | None = None
    unknown_calls: int = 0

    def __add__(self, other: Usage) -> Usage:
        def both(a: float | None, b: float | None) -> Any:
            return b if a is None else a if b is None else a + b

        return Usage(*map(both, attrs.astuple(self), attrs.astuple(other)))


@frozen
class Attempt:
    """What the target did with one task.

    output      the final answer as text
    trajectory  every turn in order
    state       JSON values that the environment hands from `attempt` to `score`
    files       relative name -> bytes that scoring and the run directory get
    ended       one of `ENDINGS`, or `None` for an attempt that ended by itself
    usage       of the target's calls; seconds: wall time of the attempt
    isolated    whether the agent program could see nothing but its workspace and home; `None` where there was none
    """

    output: str
    trajectory: Trajectory = ()
    state: Mapping[str, Any] = field(factory=dict, converter=_frozen_mapping)
    files: Mapping[str, bytes] = field(factory=dict, converter=_frozen_mapping)
    ended: str | None = field(default=None, validator=attrs.validators.optional(attrs.validators.in_(ENDINGS)))
    usage: Usage = field(factory=Usage)
    seconds: float = 0.0
    isolated: bool | None = None


def _unit_interval(_: object, attribute: attrs.Attribute[float], value: float) -> None:
    # NaN fails the comparison too, so that a score is always finite.
    if isinstance(value, bool) or not 0.0 <= value <= 1.0:
        raise ValueError(f"a score's {attribute.name} must be a number from 0 to 1, not {value!r}")


@frozen
class Score:
    """How good one attempt is: `hard` (passed or not, or a share), `soft` (partial credit), both 0..1.

    feedback says why, in words that help whoever improves the skill; named holds further scores by name.
    """

    hard: float = field(validator=_unit_interval, converter=float)
    soft: float = field(validator=_unit_interval, converter=float)
    feedback: str = ""
    named: Mapping[str, float] = field(factory=dict, converter=_frozen_mapping)


@frozen
class Missing:
    """Why an outcome has no score: `reason` is one of `MISSING_REASONS`, `message` a sentence."""

    reason: str = field(validator=attrs.validators.in_(MISSING_REASONS))
    message: str = ""


@frozen
class Ask:
    """A request for one outcome: this skill, this task, this sample.

    Gate and final evaluation ask for sample 0, the training rollouts of an epoch for those of its number.
    """

    skill: str
    task: Task
    sample: int = 0


@frozen
class Outcome:
    """A task with its attempt and score, or the typed reason why there is none.

    `folder` is where its trajectory lies, relative to the run directory. Exactly one of `score` and `missing`
    is set.
    """

    task_id: str
    kind: str
    skill_hash: str
    sample: int
    attempt: Attempt | None = None
    score: Score | None = None
    missing: Missing | None = None
    folder: str = ""

    @property
    def scored(self) -> bool:
        return self.score is not None

    @property
    def hard(self) -> float:
        """The hard score. Raises `ValueError` for a missing outcome, which must not be taken for a zero."""
        return self._there().hard

    @property
    def soft(self) -> float:
        """The soft score. Raises as `hard`."""
        return self._there().soft

    def failed(self, below: float) -> bool:
        """Whether it counts as a failure: its hard score is below `gradient.failure_below`. Raises as `hard`."""
        return self.hard < below

    def _there(self) -> Score:
        if self.score is None:
            raise ValueError(f"the outcome of task {self.task_id!r} has no score")
        return self.score


@frozen
class Edit:
    """One change of the skill's text.

    target      the anchor: text of the document that the edit stands on; unused by `append`
    content     what is added, or put in the target's place
    support     in how many trajectories or patches the reason was seen, if told
    source      from failures or from successes
    context     text around the target that occurs once, to tell two equal anchors apart
    occurrence  or the number of the occurrence meant, from 1
    """

    op: EditOp
    content: str = ""
    target: str = ""
    support: int | None = None
    source: Source | None = None
    context: str = ""
    occurrence: int | None = None
    merge_level: int | None = None


@frozen
class FailurePattern:
    """A cause that an analyst named for its own group: how often, in which training tasks."""

    pattern: str
    count: int
    description: str = ""
    task_ids: tuple[str, ...] = ()


@frozen
class Proposal:
    """What one reflection of one minibatch returned.

    group     name of the minibatch, e.g. "fail_000"; also its file `patches/minibatch_fail_000.json`
    source    "failure" or "success"
    items     items of the update mode's type, at most the budget
    set_aside what could not be read as an item, with why
    error     a typed failure in a sentence when there is no usable reply; the step record counts these
    """

    group: str
    source: Source
    items: tuple[Any, ...] = ()
    reasoning: str = ""
    size: int = 0
    task_ids: tuple[str, ...] = ()
    failures: tuple[FailurePattern, ...] = ()
    success_patterns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    set_aside: tuple[ItemReport, ...] = ()
    error: str | None = None


@frozen
class Update:
    """What aggregation and selection made of the proposals.

    errors       failed model calls on the way
    over_budget  items that the budget left out
    set_aside    items that could not be applied to the current text, with why; they cost no budget
    """

    items: tuple[Any, ...] = ()
    reasoning: str = ""
    ranking: Mapping[str, Any] | None = None
    errors: tuple[str, ...] = ()
    over_budget: tuple[Any, ...] = ()
    set_aside: tuple[ItemReport, ...] = ()


@frozen
class EditBudget:
    """How many items a step may apply. `limit` `None` means no limit; 0 means none at all."""

    limit: int | None
    reason: str = ""
    record: Mapping[str, Any] | None = None

    def admits(self, count: int) -> bool:
        return self.limit is None or count <= self.limit


@frozen
class ItemReport:
    """What became of one item: `status` is one of `EDIT_STATUSES`, `detail` says why.

    `index` counts from 1 over the items handed in, those over the budget last; files hold it as it is.
    """

    index: int
    item: Any
    status: str = field(validator=attrs.validators.in_(EDIT_STATUSES))
    detail: str = ""


@frozen
class Applied:
    """The candidate's whole text and what became of each item. `record` goes into the step's folder."""

    candidate: str
    reports: tuple[ItemReport, ...] = ()
    record: Mapping[str, Any] = field(factory=dict, converter=_frozen_mapping)
    error: str | None = None


@frozen
class Scored:
    """A skill's text with its origin and what is stored of it on the selection tasks, in split order."""

    skill: str
    origin: str
    outcomes: Mapping[str, Outcome] = field(factory=dict, converter=_frozen_mapping)


@frozen
class GateDecision:
    """What the gate decided, and on what.

    skill           the text accepted (it may be a part of what was proposed); the current one on a rejection
    hard, soft      the candidate's means over the tasks compared; `None` when it was stopped early
    score           the candidate's gate score, bonus included; `None` when it was stopped early
    bound           the most that a stopped candidate could have reached
    current_score   the bar: the current skill's score over the same tasks
    asked           how many tasks were asked of the candidate, of `total`
    compared        over how many tasks both sides have a score
    """

    action: str = field(validator=attrs.validators.in_(ACTIONS))
    skill: str
    reason: str = ""
    hard: float | None = None
    soft: float | None = None
    score: float | None = None
    bound: float | None = None
    current_score: float | None = None
    best_score: float | None = None
    asked: int = 0
    total: int = 0
    compared: int = 0
    missing: int = 0
    trials: tuple[Mapping[str, Any], ...] = ()

    @property
    def accepted(self) -> bool:
        return self.action in ("accept", "accept_new_best", "force_accept")


@frozen
class SlowUpdate:
    """What a slow update made: the guidance (`None`: none), the comparison pairs and its record."""

    content: str | None
    pairs: tuple[Mapping[str, Any], ...] = ()
    record: Mapping[str, Any] = field(factory=dict, converter=_frozen_mapping)
