"""One step: rollout, reflect, aggregate, select, update, gate, and its commit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from attrs import define, field

from skillopt_kernel.gating import compute_score
from skillopt_kernel.history import StepRecord
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.commit import commit
from skillopt_kernel.loop.length import refused_for_length, tokens_of
from skillopt_kernel.loop.memory import memory_text, remember
from skillopt_kernel.loop.plan import PlannedStep
from skillopt_kernel.loop.run import Place, RunContext
from skillopt_kernel.loop.scoring import (
    accept,
    ask_missing,
    ensure_scored,
    refuse_nothing_scored,
    selection_fields,
    write_results,
    write_selection,
)
from skillopt_kernel.models.spending import tokens_by_stage
from skillopt_kernel.records import Applied, EditBudget, GateDecision, Outcome, Proposal, Update
from skillopt_kernel.skill import shown
from skillopt_kernel.stages.rollout import asks_of
from skillopt_kernel.store.fields import apply_summary, proposal_fields, report_fields, update_fields
from skillopt_kernel.store.files import write_json, write_text

NO_LIMIT = EditBudget(None)
TOLD = (
    "action", "reason", "rollout_hard", "rollout_soft", "candidate_gate_score", "selection_bound", "selection_asked",
    "current_score", "best_score", "best_step", "skill_len", "wall_time_s",
)  # fmt: skip
"""The fields of a step's record that its event carries."""


@define(eq=False)
class StepContext:
    """One step in progress: the `Step` of `skillopt_kernel.interfaces`."""

    planned: PlannedStep
    number: int
    epoch: int
    samples: tuple[int, ...]
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
    instructions: dict[str, str] = field(factory=dict)
    counters: dict[str, int] = field(factory=dict)
    call_failures: list[str] = field(factory=list)
    merged: int = 0
    batches: tuple[dict[str, Any], ...] = ()
    began: float = field(factory=time.monotonic)

    def numbers(self) -> dict[str, Any]:
        """What the rollout came to; also for a scheduler that decides by evidence."""
        missing = sum(not outcome.scored for outcome in self.outcomes)
        return {"rollout_n": len(self.outcomes), "rollout_missing": missing, **_means("rollout_", self.outcomes)}


def take_step(run: RunContext, planned: PlannedStep) -> None:
    """Take one step and commit it. Whatever raises before the commit leaves the last checkpoint as it was."""
    state = run.state_of_run
    run.place = Place(planned.epoch, planned.number)
    samples, memory = run.samples(planned.epoch), memory_text(state.memory)
    step = StepContext(planned, planned.number, planned.epoch, samples, memory, state.meta)
    skill = state.current.skill
    tasks = sum(len(batch.tasks) for batch in planned.batches)
    run.emit("step_started", tasks=tasks, skill_hash=run.digest(skill), skill_tokens=tokens_of(skill))
    step.planned_budget = step.enforced_budget = run.hooks.edit_budget(run, step, None)
    for at in range(len(planned.batches)):
        roll_out_and_reflect(run, step, at, skill)
    decision = propose_and_judge(run, step, skill)
    ensure_scored(run)
    if decision.accepted:
        accept(run, decision, step.number)
    record = make_record(run, step, decision, tokens_by_stage(run.models.ledger, step=step.number))
    commit(run, record, remember(step, run.mode, decision, run.settings.gradient.failure_below))
    told = {name: getattr(record, name) for name in TOLD}
    run.emit("step_finished", **told, edits=dict(record.edit_apply_summary), warning=run.warned())
    run.place = Place(planned.epoch)


def roll_out_and_reflect(run: RunContext, step: StepContext, at: int, skill: str) -> None:
    """One accumulation batch. The next one is rolled out while the optimizer reads this one."""
    batches = step.planned.batches
    batch = batches[at]
    step.batch, step.batch_seed = at, batch.seed
    run.place.purpose = rollout_purpose(run, step.planned, at)
    with run.stage("rollout", tasks=len(batch.tasks)) as made:
        outcomes = run.hooks.rollout(run, step, batch.tasks, skill)
        write_results(run, run.place.purpose.folder, outcomes)
        refuse_nothing_scored(outcomes, "rollout")
        hard, soft = compute_score(outcomes)
        made |= {"hard": hard, "soft": soft, "missing": sum(not outcome.scored for outcome in outcomes)}
    if at + 1 < len(batches):
        following = asks_of(skill, batches[at + 1].tasks, step.samples)
        run.pool.prefetch(following, rollout_purpose(run, step.planned, at + 1))
    with run.stage("reflect") as made:
        proposals = run.hooks.reflect(run, step, outcomes, skill)
        folder = run.directory.patches(step.number, step.planned.folder(at))
        for proposal in proposals:
            write_json(folder / f"minibatch_{proposal.group}.json", proposal_fields(proposal, run.mode))
        made |= {"proposals": len(proposals), "failed": sum(p.error is not None for p in proposals)}
    step.outcomes += outcomes
    step.proposals += proposals
    numbers = {"batch_idx": at, "batch_seed": batch.seed, "n_envs": len(batch.tasks)}
    step.batches += (numbers | _means("", outcomes) | _patches(proposals),)


def propose_and_judge(run: RunContext, step: StepContext, skill: str) -> GateDecision:
    """From proposals to the gate's decision, or to one that says why the gate was not asked."""
    # Notes are something to make a candidate of where a plugin has asked for them, and nothing elsewhere.
    if not any(proposal.items or (step.instructions and proposal.notes) for proposal in step.proposals):
        return GateDecision("skip_no_patches", skill)
    folder = run.directory.step(step.number)
    with run.stage("aggregate") as made:
        step.update = run.hooks.aggregate(run, step, step.proposals, skill)
        write_json(folder / "merged_patch.json", update_fields(step.update, run.mode))
        step.merged = made["items"] = len(step.update.items)
    step.enforced_budget = run.hooks.edit_budget(run, step, step.update)
    if step.enforced_budget.record is not None:
        write_json(folder / "lr_decision.json", dict(step.enforced_budget.record))
    with run.stage("select", budget=step.enforced_budget.limit) as made:
        step.update = run.hooks.select(run, step, step.update, step.enforced_budget, skill)
        write_json(folder / "ranked_edits.json", update_fields(step.update, run.mode))
        made["items"] = len(step.update.items)
    with run.stage("update") as made:
        step.applied = applied = run.hooks.update(run, step, step.update, skill)
        write_text(folder / "candidate_skill.md", applied.candidate)
        write_json(folder / "edit_apply_report.json", [report_fields(one, run.mode) for one in applied.reports])
        for name, value in applied.record.items():
            write_json(folder / f"{name}.json", value)
        made |= dict(Counter(report.status for report in applied.reports))
    if applied.error is not None:
        return GateDecision("skip_no_rewrite", skill, applied.error)
    if shown(applied.candidate) == shown(skill):
        return GateDecision("skip_no_change", skill)
    refused = refused_for_length(applied.candidate, skill, run.settings.optimizer.max_skill_tokens)
    if refused is not None:
        return refused
    ensure_scored(run)  # joins the baseline, which the first rollouts ran beside
    ask_missing(run)
    selection = run.directory.relative(run.directory.selection_eval(step.number))
    run.place.purpose = Purpose("selection", selection, epoch=step.epoch, step=step.number)
    with run.stage("gate", tasks=len(run.splits.selection)) as made:
        decision = run.hooks.gate(run, step, applied, run.current, run.best)
        if not decision.accepted:  # what is accepted is asked everything, and written then
            write_selection(run, applied.candidate)
        made |= {"action": decision.action, "score": decision.score, "asked": decision.asked}
    return decision


def make_record(run: RunContext, step: StepContext, decision: GateDecision, tokens: dict[str, Any]) -> StepRecord:
    """The step's record; `tokens` is what its calls used."""
    applied, items = step.applied, step.update.items if step.update is not None else ()
    rewrite = applied.record.get("rewrite_result", {}) if applied is not None else {}
    return StepRecord(
        step=step.number,
        epoch=step.epoch,
        step_in_epoch=step.planned.in_epoch,
        action=decision.action,
        reason=decision.reason,
        **step.numbers(),
        accumulation_batches=step.batches,
        n_patches=sum(bool(proposal.items) for proposal in step.proposals),
        **_patches(step.proposals),
        n_edits_merged=step.merged,
        n_edits_ranked=len(items),
        edit_budget=step.enforced_budget.limit,
        planned_edit_budget=step.planned_budget.limit,
        lr_control_mode=run.settings.optimizer.lr_control_mode if run.mode.budgeted else "none",
        lr_decision=step.enforced_budget.record,
        support_counts=tuple(getattr(item, "support", None) or 0 for item in items),
        rewrite_change_summary=tuple(rewrite.get("change_summary", ())),
        edit_apply_summary=apply_summary(applied) if applied is not None else {},
        model_failures=_failures(step),
        candidate_hash=run.digest(applied.candidate) if applied is not None else None,
        candidate_skill_len=len(applied.candidate) if applied is not None else None,
        candidate_skill_tokens=tokens_of(applied.candidate) if applied is not None else None,
        gate_metric=run.gate.name,
        candidate_gate_score=decision.score,
        **selection_fields(decision),
        bar=decision.current_score,
        **run.state_of_run.standing(),
        skill_len=len(run.current.skill),
        timing=run.place.timing,
        tokens=tokens,
        wall_time_s=round(time.monotonic() - step.began, 3),
        counters=step.counters,
    )


def _failures(step: StepContext) -> dict[str, int]:
    """How many optimizer calls of the step came to nothing, by kind: the word that their sentences begin with."""
    sentences = [proposal.error for proposal in step.proposals]
    sentences += step.update.errors if step.update is not None else ()
    sentences += [step.applied.error] if step.applied is not None else []
    sentences += [(step.enforced_budget.record or {}).get("error"), *step.call_failures]
    kinds = [str(sentence).partition(":")[0] for sentence in sentences if sentence]
    return dict(Counter(kind for kind in kinds if " " not in kind))


def rollout_purpose(run: RunContext, planned: PlannedStep, at: int) -> Purpose:
    """The rollout of one accumulation batch."""
    folder = run.directory.relative(run.directory.rollout(planned.number, planned.folder(at)))
    return Purpose("rollout", folder, epoch=planned.epoch, step=planned.number)


def _patches(proposals: Sequence[Proposal]) -> dict[str, Any]:
    sources = [proposal.source for proposal in proposals if proposal.items]
    return {f"n_{source}_patches": sources.count(source) for source in ("failure", "success")}


def _means(prefix: str, outcomes: Sequence[Outcome]) -> dict[str, float | None]:
    means = zip(("hard", "soft"), compute_score(outcomes), strict=True)
    return {prefix + name: None if mean is None else round(mean, 6) for name, mean in means}
