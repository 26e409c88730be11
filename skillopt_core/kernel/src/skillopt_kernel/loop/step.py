"""One step: rollout, reflect, aggregate, select, update, gate, and its commit."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import attrs
from attrs import define, field

from skillopt_kernel.gating import compute_score
from skillopt_kernel.history import StepRecord
from skillopt_kernel.loop import artifacts
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.checkpoint import commit
from skillopt_kernel.loop.memory import memory_text, remember
from skillopt_kernel.loop.plan import PlannedBatch, PlannedStep
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.loop.scoring import accept, ensure_scored, refuse_nothing_scored
from skillopt_kernel.models.ledger import tokens_by_stage
from skillopt_kernel.models.pricing import estimate_tokens
from skillopt_kernel.records import Applied, Ask, EditBudget, GateDecision, Outcome, Proposal, Update
from skillopt_kernel.skill import shown
from skillopt_kernel.store.fields import apply_summary

NO_LIMIT = EditBudget(None)
TOLD = (
    "action", "reason", "rollout_hard", "rollout_soft", "candidate_gate_score", "selection_bound", "selection_asked",
    "current_score", "best_score", "best_step", "skill_len", "wall_time_s",
)  # fmt: skip
"""The fields of a step's record that its event carries."""


@define(eq=False)
class StepContext:
    """One step in progress: the `Step` of `skillopt_kernel.interfaces`."""

    number: int
    epoch: int
    sample: int
    memory: str
    meta: str
    batch: int = 0
    batch_seed: int = 0
    planned_budget: EditBudget = NO_LIMIT
    enforced_budget: EditBudget = NO_LIMIT
    outcomes: tuple[Outcome, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    update: Update | None = None
    applied: Applied | None = None
    merged: int = 0
    batches: list[dict[str, Any]] = field(factory=list)
    timing: dict[str, float] = field(factory=dict)

    def numbers(self) -> dict[str, Any]:
        """What the rollout came to, for a scheduler that decides by evidence."""
        hard, soft = compute_score(self.outcomes)
        return {"rollout_n": len(self.outcomes), "rollout_hard": hard, "rollout_soft": soft}


def take_step(run: RunContext, planned: PlannedStep) -> None:
    """Take one step and commit it. Whatever raises before the commit leaves the last checkpoint as it was."""
    began, before = time.monotonic(), run.models.ledger.tallies()
    state = run.state_of_run
    run.place.epoch, run.place.step = planned.epoch, planned.number
    step = StepContext(
        number=planned.number,
        epoch=planned.epoch,
        sample=0 if run.settings.evaluation.deterministic_target else planned.epoch,
        memory=memory_text(state.memory),
        meta=state.meta,
    )
    skill = state.current.skill
    run.emit(
        "step_started",
        tasks=sum(len(b.tasks) for b in planned.batches),
        skill_hash=run.digest(skill),
        skill_tokens=estimate_tokens(shown(skill)),
    )
    step.planned_budget = step.enforced_budget = run.hooks.edit_budget(run, step, None)
    for at, batch in enumerate(planned.batches):
        roll_out_and_reflect(run, step, planned, at, batch, skill)
    action, decision = propose_and_judge(run, step, skill)
    ensure_scored(run)
    if decision is not None and decision.accepted:
        accept(run, decision, step.number)
    entry = remember(
        step.number, run.mode, outcomes=step.outcomes, proposals=step.proposals, applied=step.applied,
        decision=decision, action=action,
    )  # fmt: skip
    state.memory.append(entry)
    record = attrs.evolve(
        make_record(run, planned, step, action, decision),
        tokens=tokens_by_stage(run.models.ledger.since(before)),
        wall_time_s=round(time.monotonic() - began, 3),
    )
    commit(run, record, entry)
    run.place.purpose = Purpose("rollout", "rollout")
    run.emit("step_finished", **{name: getattr(record, name) for name in TOLD}, edits=dict(record.edit_apply_summary))
    run.place.step = None


def roll_out_and_reflect(
    run: RunContext, step: StepContext, planned: PlannedStep, at: int, batch: PlannedBatch, skill: str
) -> None:
    """One accumulation batch. The next one is rolled out while the optimizer reads this one."""
    step.batch, step.batch_seed = at, batch.seed
    several = len(planned.batches) > 1
    run.place.purpose = _rollout_purpose(run, step.number, at if several else None)
    with run.stage("rollout", step.timing, tasks=len(batch.tasks)) as made:
        outcomes = run.hooks.rollout(run, step, batch.tasks, skill)
        artifacts.write_results(run, run.place.purpose.folder, outcomes)
        refuse_nothing_scored(outcomes, "rollout")
        hard, soft = compute_score(outcomes)
        made |= {"hard": hard, "soft": soft, "missing": sum(not outcome.scored for outcome in outcomes)}
    if at + 1 < len(planned.batches):
        purpose = _rollout_purpose(run, step.number, at + 1)
        run.pool.prefetch([Ask(skill, task, step.sample) for task in planned.batches[at + 1].tasks], purpose)
    with run.stage("reflect", step.timing) as made:
        proposals = run.hooks.reflect(run, step, outcomes, skill)
        artifacts.write_proposals(run, step, at if several else None, proposals)
        made |= {"proposals": len(proposals), "failed": sum(p.error is not None for p in proposals)}
    step.outcomes += outcomes
    step.proposals += proposals
    step.batches.append(
        {
            "batch_idx": at,
            "batch_seed": batch.seed,
            "n_envs": len(batch.tasks),
            "hard": _rounded(hard),
            "soft": _rounded(soft),
            "n_failure_patches": _patches(proposals, "failure"),
            "n_success_patches": _patches(proposals, "success"),
        }
    )


def propose_and_judge(run: RunContext, step: StepContext, skill: str) -> tuple[str, GateDecision | None]:
    """From proposals to a decision: the step's action, and the gate's decision where the gate was asked."""
    if not any(proposal.items for proposal in step.proposals):
        return "skip_no_patches", None
    with run.stage("aggregate", step.timing) as made:
        step.update = run.hooks.aggregate(run, step, step.proposals, skill)
        artifacts.write_update(run, step, "merged_patch.json")
        step.merged = len(step.update.items)
        made["items"] = step.merged
    step.enforced_budget = run.hooks.edit_budget(run, step, step.update)
    artifacts.write_decision(run, step)
    with run.stage("select", step.timing, budget=step.enforced_budget.limit) as made:
        step.update = run.hooks.select(run, step, step.update, step.enforced_budget, skill)
        artifacts.write_update(run, step, "ranked_edits.json")
        made["items"] = len(step.update.items)
    with run.stage("update", step.timing) as made:
        step.applied = run.hooks.update(run, step, step.update, skill)
        artifacts.write_applied(run, step)
        made |= dict(Counter(report.status for report in step.applied.reports))
    if step.applied.error is not None:
        return "skip_no_rewrite", None
    if shown(step.applied.candidate) == shown(skill):
        return "skip_no_change", None
    ensure_scored(run)  # joins the baseline, which the first rollouts ran beside
    run.place.purpose = Purpose("selection", run.directory.relative(run.directory.selection_eval(step.number)))
    with run.stage("gate", step.timing, tasks=len(run.splits.selection)) as made:
        decision = run.hooks.gate(run, step, step.applied, run.current, run.best)
        artifacts.write_selection(run, step.applied.candidate)
        made |= {"action": decision.action, "score": decision.score, "asked": decision.asked}
    return decision.action, decision


def make_record(
    run: RunContext, planned: PlannedStep, step: StepContext, action: str, decision: GateDecision | None
) -> StepRecord:
    """The step's record, but for its costs."""
    state, applied, update = run.state_of_run, step.applied, step.update
    hard, soft = compute_score(step.outcomes)
    record = StepRecord(
        step=step.number,
        epoch=step.epoch,
        step_in_epoch=planned.in_epoch,
        action=action,
        reason=decision.reason if decision is not None else (applied.error or "" if applied is not None else ""),
        rollout_hard=_rounded(hard),
        rollout_soft=_rounded(soft),
        rollout_n=len(step.outcomes),
        rollout_missing=sum(not outcome.scored for outcome in step.outcomes),
        accumulation_batches=tuple(step.batches),
        n_patches=sum(bool(proposal.items) for proposal in step.proposals),
        n_failure_patches=_patches(step.proposals, "failure"),
        n_success_patches=_patches(step.proposals, "success"),
        n_edits_merged=step.merged,
        n_edits_ranked=len(update.items) if update is not None else 0,
        edit_budget=step.enforced_budget.limit,
        planned_edit_budget=step.planned_budget.limit,
        lr_control_mode=run.settings.optimizer.lr_control_mode if run.mode.budgeted else "none",
        lr_decision=step.enforced_budget.record,
        support_counts=tuple(getattr(item, "support", None) or 0 for item in update.items) if update else (),
        rewrite_change_summary=tuple(
            applied.record.get("rewrite_result", {}).get("change_summary", ()) if applied else ()
        ),
        edit_apply_summary=apply_summary(applied) if applied is not None else {},
        model_failures=_failures(step),
        candidate_hash=run.digest(applied.candidate) if applied is not None else None,
        candidate_skill_len=len(applied.candidate) if applied is not None else None,
        gate_metric=run.gate.name,
        current_score=state.current_score,
        best_score=state.best_score,
        best_step=state.best_step,
        current_origin=state.current.origin,
        best_origin=state.best.origin,
        skill_len=len(state.current.skill),
        timing=dict(step.timing),
    )
    return record if decision is None else _with_decision(record, decision)


def _with_decision(record: StepRecord, decision: GateDecision) -> StepRecord:
    return attrs.evolve(
        record,
        candidate_gate_score=decision.score,
        selection_hard=decision.hard,
        selection_soft=decision.soft,
        selection_bound=decision.bound,
        selection_asked=decision.asked,
        selection_compared=decision.compared,
        selection_missing=decision.missing,
        bar=decision.current_score,
    )


def _failures(step: StepContext) -> dict[str, int]:
    """How many optimizer calls of the step came to nothing, by kind: the word that their sentences begin with."""
    sentences = [proposal.error for proposal in step.proposals if proposal.error]
    sentences += list(step.update.errors) if step.update is not None else []
    sentences += [step.applied.error] if step.applied is not None and step.applied.error else []
    decision = step.enforced_budget.record or {}
    sentences += [str(decision["error"])] if decision.get("error") else []
    kinds = (sentence.partition(":")[0] for sentence in sentences)
    return dict(Counter(kind for kind in kinds if " " not in kind))


def first_rollout_purpose(run: RunContext, planned: PlannedStep) -> Purpose:
    return _rollout_purpose(run, planned.number, 0 if len(planned.batches) > 1 else None)


def _rollout_purpose(run: RunContext, number: int, batch: int | None) -> Purpose:
    return Purpose("rollout", run.directory.relative(run.directory.rollout(number, batch)))


def _patches(proposals: tuple[Proposal, ...], source: str) -> int:
    return sum(1 for proposal in proposals if proposal.items and proposal.source == source)


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 6)
