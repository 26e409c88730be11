"""What is known of a skill on the selection tasks: asked where it is not known, answered from the store else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import attrs

from skillopt_kernel.errors import StoppedEarly
from skillopt_kernel.loop.attempts import Purpose, is_passing
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.records import Ask, GateDecision, Outcome, Scored, Task
from skillopt_kernel.skill import shown
from skillopt_kernel.store.fields import result_row
from skillopt_kernel.store.files import write_json_lines

BASELINE = Purpose("selection", "selection_eval_baseline", rank=1)
"""Behind the first rollout (rank 0): the gate needs it later than reflection needs the rollout."""


def outcomes_of(run: RunContext, skill: str, tasks: Sequence[Task], purpose: Purpose) -> tuple[Outcome, ...]:
    """One outcome for each task, sample 0, in their order; a row for each in the folder's `results.jsonl`."""
    outcomes = tuple(run.pool.evaluate([Ask(skill, task) for task in tasks], purpose))
    refuse_nothing_scored(outcomes, purpose.stage)
    write_results(run, purpose.folder, outcomes)
    return outcomes


def refuse_nothing_scored(outcomes: Sequence[Outcome], what: str) -> None:
    """Raise `StoppedEarly` when there are outcomes and not one of them has a score.

    A broken endpoint or environment must not look like a bad skill, and must not eat up a run.
    """
    if not outcomes or any(outcome.scored for outcome in outcomes):
        return
    reasons = Counter(f"{o.missing.reason}: {o.missing.message}" for o in outcomes if o.missing is not None)
    reason, count = reasons.most_common(1)[0]
    raise StoppedEarly(
        f"none of the {len(outcomes)} attempts of the {what} has a score; {count} of them failed for this reason: "
        f"{reason}. Nothing finished is lost: put it right and run the same command again."
    )


def write_results(run: RunContext, folder: str, outcomes: Sequence[Outcome]) -> None:
    """`results.jsonl`: a row for each outcome of one evaluation, also for those answered from the store."""
    rows = [result_row(outcome, run.tasks.get(outcome.task_id)) for outcome in outcomes]
    write_json_lines(run.directory.root / folder / "results.jsonl", rows)


def write_selection(run: RunContext, skill: str) -> None:
    """The results of a candidate on the selection tasks, as far as it was asked."""
    found = [run.outcomes.find(Ask(skill, task)) for task in run.splits.selection]
    write_results(run, run.place.purpose.folder, [outcome for outcome in found if outcome is not None])


def selection_fields(decision: GateDecision) -> dict[str, Any]:
    """What a record tells of how a candidate did on the selection tasks."""
    names = ("hard", "soft", "bound", "asked", "compared", "missing")
    return {f"selection_{name}": getattr(decision, name) for name in names}


def score_selection(run: RunContext, scored: Scored, purpose: Purpose) -> Scored:
    """`scored` with an outcome for each selection task."""
    outcomes = outcomes_of(run, scored.skill, run.splits.selection, purpose)
    return attrs.evolve(scored, outcomes={outcome.task_id: outcome for outcome in outcomes})


def ensure_scored(run: RunContext) -> None:
    """Make sure that the current and the best skill have their selection outcomes, the start skill's included."""
    state = run.state_of_run
    if state.current.outcomes:
        return
    state.start = score_selection(run, state.start, BASELINE)
    for name in ("best", "current"):
        scored: Scored = getattr(state, name)
        same = [known for known in (state.start, state.best) if shown(known.skill) == shown(scored.skill)]
        outcomes = next((known.outcomes for known in same if known.outcomes), None)
        if outcomes is None:  # a resumed run: they are stored, and the step that earned them wrote its results
            asks = [Ask(scored.skill, task) for task in run.splits.selection]
            found = run.pool.evaluate(asks, Purpose("selection", f"selection_eval_{name}"))
            outcomes = {outcome.task_id: outcome for outcome in found}
        setattr(state, name, attrs.evolve(scored, outcomes=outcomes))
    if state.current_score is None:
        state.current_score = state.best_score = run.gate_score(state.current)


def ask_missing(run: RunContext) -> None:
    """Ask again what the current skill has no score on, so that a gate has as much as there is to compare with."""
    state = run.state_of_run
    if not any(map(is_passing, state.current.outcomes.values())):
        return
    scored = score_selection(run, state.current, Purpose("selection", "selection_eval_current"))
    for name in ("start", "best", "current"):
        if shown(getattr(state, name).skill) == shown(scored.skill):
            setattr(state, name, attrs.evolve(getattr(state, name), outcomes=scored.outcomes))
    state.current_score = run.gate_score(state.current)
    if shown(state.best.skill) == shown(state.current.skill):
        state.best_score = state.current_score


def accept(run: RunContext, decision: GateDecision, step: int) -> None:
    """Take the decision's skill as current, and as best where the gate says so.

    Every selection task is asked of it, whatever the gate asked: no text gets a score that it did not earn.
    """
    state = run.state_of_run
    taken = score_selection(run, Scored(decision.skill, f"step_{step:04d}"), run.place.purpose)
    score = run.gate_score(taken)
    state.current, state.current_score = taken, score
    better = score is not None and (state.best_score is None or score > state.best_score)
    better = better or not run.splits.selection  # nothing can tell which is best: the last one is taken
    if decision.action == "accept_new_best" or (decision.action == "force_accept" and better):
        state.best, state.best_score, state.best_step = taken, score, step
