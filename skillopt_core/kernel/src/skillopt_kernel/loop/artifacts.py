"""What a step leaves in its folder, for people and for the Web UI. The loop never reads it back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skillopt_kernel.records import Ask, Outcome, Proposal
from skillopt_kernel.store.fields import proposal_fields, report_fields, result_row, update_fields
from skillopt_kernel.store.files import write_json, write_json_lines, write_text

if TYPE_CHECKING:
    from skillopt_kernel.loop.run import RunContext
    from skillopt_kernel.loop.step import StepContext


def write_results(run: RunContext, folder: str, outcomes: Sequence[Outcome]) -> None:
    """`results.jsonl`: a row for each outcome of one evaluation, also for those answered from the store."""
    rows = [result_row(outcome, run.tasks.get(outcome.task_id)) for outcome in outcomes]
    write_json_lines(run.directory.root / folder / "results.jsonl", rows)


def write_selection(run: RunContext, skill: str) -> None:
    """The results of a candidate on the selection tasks, as far as it was asked."""
    found = [run.outcomes.find(Ask(skill, task)) for task in run.splits.selection]
    write_results(run, run.place.purpose.folder, [outcome for outcome in found if outcome is not None])


def write_proposals(run: RunContext, step: StepContext, batch: int | None, proposals: Sequence[Proposal]) -> None:
    folder = run.directory.patches(step.number, batch)
    for proposal in proposals:
        write_json(folder / f"minibatch_{proposal.group}.json", proposal_fields(proposal, run.mode))


def write_update(run: RunContext, step: StepContext, name: str) -> None:
    """`merged_patch.json` or `ranked_edits.json`: the step's update as it is now."""
    if step.update is not None:
        write_json(run.directory.step(step.number) / name, update_fields(step.update, run.mode))


def write_decision(run: RunContext, step: StepContext) -> None:
    """`lr_decision.json`: what a scheduler tells of how it came to its budget."""
    if step.enforced_budget.record is not None:
        write_json(run.directory.step(step.number) / "lr_decision.json", dict(step.enforced_budget.record))


def write_applied(run: RunContext, step: StepContext) -> None:
    """The candidate and what became of each item; whatever else the update mode records, by its names."""
    if step.applied is None:
        return
    folder = run.directory.step(step.number)
    write_text(folder / "candidate_skill.md", step.applied.candidate)
    write_json(folder / "edit_apply_report.json", [report_fields(one, run.mode) for one in step.applied.reports])
    for name, value in step.applied.record.items():
        write_json(folder / f"{name}.json", value)
