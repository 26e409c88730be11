"""What `history.json` and `summary.json` hold: one record a step, an epoch and a run.

The field names are the file's; people's scripts read them. `None` in a field is *there is none*.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from attrs import field, frozen


@frozen(kw_only=True)
class StepRecord:
    """One step. Scores 0..1, times in seconds.

    step is 1-based in the run, step_in_epoch 0-based. `selection_hard` and `selection_soft` are the
    candidate's means, `None` when its evaluation was stopped early; then `selection_bound` is the most that
    its gate score could have reached and `selection_asked` how many tasks were asked. `current_score` and
    `best_score` are gate scores after the step. `candidate_skill_tokens` is an estimate, one for four bytes.
    `counters` holds numbers that hook plugins add. `tokens` are by stage, of all processes of the run; what was in
    flight when the gate had decided is in the run's totals only.
    """

    step: int
    epoch: int
    step_in_epoch: int
    action: str
    reason: str = ""
    rollout_hard: float | None = None
    rollout_soft: float | None = None
    rollout_n: int = 0
    rollout_missing: int = 0
    accumulation_batches: tuple[Mapping[str, Any], ...] = ()
    n_patches: int = 0
    n_failure_patches: int = 0
    n_success_patches: int = 0
    n_edits_merged: int = 0
    n_edits_ranked: int = 0
    edit_budget: int | None = None
    planned_edit_budget: int | None = None
    lr_control_mode: str = ""
    lr_decision: Mapping[str, Any] | None = None
    support_counts: tuple[int, ...] = ()
    rewrite_change_summary: tuple[str, ...] = ()
    edit_apply_summary: Mapping[str, int] = field(factory=dict)
    model_failures: Mapping[str, int] = field(factory=dict)
    candidate_hash: str | None = None
    candidate_skill_len: int | None = None
    candidate_skill_tokens: int | None = None
    gate_metric: str = ""
    candidate_gate_score: float | None = None
    selection_hard: float | None = None
    selection_soft: float | None = None
    selection_bound: float | None = None
    selection_asked: int = 0
    selection_compared: int = 0
    selection_missing: int = 0
    bar: float | None = None
    current_score: float | None = None
    best_score: float | None = None
    best_step: int = 0
    current_origin: str = ""
    best_origin: str = ""
    skill_len: int = 0
    timing: Mapping[str, float] = field(factory=dict)
    tokens: Mapping[str, Any] = field(factory=dict)
    wall_time_s: float = 0.0
    counters: Mapping[str, Any] = field(factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The file's fields: those of plugins stand beside the record's own."""
        fields = attrs.asdict(self)
        counters = fields.pop("counters")
        return {**fields, **{name: value for name, value in counters.items() if name not in fields}}

    @classmethod
    def gathered(cls, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The inverse of `as_json`, for a strict reader: what is no field of the record is a counter."""
        own = attrs.fields_dict(cls)
        counters = {name: value for name, value in fields.items() if name not in own}
        return {name: value for name, value in fields.items() if name in own} | {"counters": counters}


@frozen(kw_only=True)
class EpochRecord:
    """One epoch at its end. Skips are steps that ended before the gate.

    epochs_without_best    for how many epochs, this one included, neither a step nor the guidance at the epoch's
                           end became the best skill; 0 when this one brought a new best
    tokens                 by stage, of the calls at the epoch's end, in all processes of the run
    """

    epoch: int
    steps: int
    accepts: int = 0
    rejects: int = 0
    skips: int = 0
    best_score_at_epoch_end: float | None = None
    current_score_at_epoch_end: float | None = None
    epochs_without_best: int = 0
    timing: Mapping[str, float] = field(factory=dict)
    model_failures: Mapping[str, int] = field(factory=dict)
    tokens: Mapping[str, Any] = field(factory=dict)

    def as_json(self) -> dict[str, Any]:
        return attrs.asdict(self)


@frozen(kw_only=True)
class RunSummary:
    """A run at its end: what `summary.json` holds and `train` returns.

    status       "finished", "incomplete", or "budget": a limit ended the run, `budget` says which and what to do
    folder       where the run lies
    ended_early  why training ended before its last epoch, in a sentence; "" when it did not
    gate         what decided, and whether it was switched off
    scores       `*_selection_*` on the selection tasks, `*_test_*` on the test tasks; `*_gate_score` are what
                 the gate compared. "baseline" is the start skill, "final" the last one.
    notes        what a reader must know to read the numbers right
    start_skill  where the start skill is from: `from` (file, run, environment), its hash and path as it was written;
                 of a run also the folder's name, and step and origin of its best skill
    already_finished    the run had been finished before and nothing was done
    """

    version: str
    status: str
    folder: str
    config: Mapping[str, Any]
    splits: Mapping[str, int]
    gate: str
    use_gate: bool = True
    ended_early: str = ""
    budget: str = ""
    start_skill: Mapping[str, Any] = field(factory=dict)
    baseline_selection_hard: float | None = None
    baseline_selection_soft: float | None = None
    baseline_gate_score: float | None = None
    best_selection_hard: float | None = None
    best_selection_soft: float | None = None
    best_gate_score: float | None = None
    final_selection_hard: float | None = None
    final_selection_soft: float | None = None
    final_gate_score: float | None = None
    best_step: int = 0
    current_origin: str = ""
    best_origin: str = ""
    total_steps: int = 0
    total_accepts: int = 0
    total_rejects: int = 0
    total_undecided: int = 0
    total_skips: int = 0
    total_forced: int = 0
    epoch_stats: tuple[Mapping[str, Any], ...] = ()
    baseline_test_hard: float | None = None
    baseline_test_soft: float | None = None
    baseline_test_n: int = 0
    test_hard: float | None = None
    test_soft: float | None = None
    test_n: int = 0
    final_test_hard: float | None = None
    final_test_soft: float | None = None
    final_test_n: int = 0
    test_delta_hard: float | None = None
    final_test_delta_hard: float | None = None
    intervals: Mapping[str, Any] = field(factory=dict)
    by_kind: Mapping[str, Any] = field(factory=dict)
    best_skill_path: str = "best_skill.md"
    total_wall_time_s: float = 0.0
    token_summary: Mapping[str, Any] = field(factory=dict)
    model_failures: Mapping[str, int] = field(factory=dict)
    missing_outcomes: int = 0
    notes: tuple[str, ...] = ()
    already_finished: bool = False

    def as_json(self) -> dict[str, Any]:
        """What `summary.json` holds: all but where the folder lies, which may be moved."""
        return attrs.asdict(self, filter=lambda field, _: field.name not in ("folder", "already_finished"))

    @classmethod
    def from_json(cls, value: Mapping[str, Any], *, folder: str) -> RunSummary:
        """The summary of a run that had been finished before; fields that are not known are left out."""
        known = {field.name for field in attrs.fields(cls)}
        fields: dict[str, Any] = {
            name: tuple(v) if isinstance(v, list) else v for name, v in value.items() if name in known
        }
        return cls(**(fields | {"folder": folder, "already_finished": True}))
