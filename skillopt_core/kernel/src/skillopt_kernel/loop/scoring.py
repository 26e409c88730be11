"""What is known of a skill on the selection tasks: asked where it is not known, answered from the store else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs

from skillopt_kernel.errors import StoppedEarly
from skillopt_kernel.loop import artifacts
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.records import Ask, GateDecision, Outcome, Scored, Task
from skillopt_kernel.skill import shown

BASELINE = "selection_eval_baseline"


def outcomes_of(run: RunContext, skill: str, tasks: Sequence[Task], purpose: Purpose) -> tuple[Outcome, ...]:
    """One outcome for each task, sample 0, in their order."""
    outcomes = tuple(run.pool.evaluate([Ask(skill, task) for task in tasks], purpose))
    refuse_nothing_scored(outcomes, purpose.stage)
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


def score_selection(run: RunContext, scored: Scored, purpose: Purpose) -> Scored:
    """`scored` with an outcome for each selection task."""
    outcomes = outcomes_of(run, scored.skill, run.splits.selection, purpose)
    artifacts.write_results(run, purpose.folder, outcomes)
    return attrs.evolve(scored, outcomes={outcome.task_id: outcome for outcome in outcomes})


def baseline_purpose() -> Purpose:
    """Behind the first rollout (rank 0): the gate needs it later than reflection needs the rollout."""
    return Purpose("selection", BASELINE, rank=1)


def ensure_scored(run: RunContext) -> None:
    """Make sure that the current and the best skill have their selection outcomes, the start skill's included."""
    state = run.state_of_run
    if state.current.outcomes:
        return
    state.start = score_selection(run, state.start, baseline_purpose())
    for name in ("best", "current"):
        scored: Scored = getattr(state, name)
        same = next(
            (s for s in (state.start, state.best) if shown(s.skill) == shown(scored.skill) and s.outcomes), None
        )
        if same is not None:
            known = attrs.evolve(scored, outcomes=same.outcomes)
        else:
            known = score_selection(run, scored, Purpose("selection", f"selection_eval_{name}"))
        setattr(state, name, known)
    if state.current_score is None:
        state.current_score = state.best_score = run.gate_score(state.current)


def accept(run: RunContext, decision: GateDecision, step: int) -> None:
    """Take the decision's skill as current, and as best where the gate says so.

    Every selection task is asked of it, whatever the gate asked: no text gets a score that it did not earn.
    """
    state = run.state_of_run
    taken = score_selection(run, Scored(decision.skill, f"step_{step:04d}"), run.place.purpose)
    state.current, state.current_score = taken, run.gate_score(taken)
    if decision.action == "force_accept":
        score, best = state.current_score, state.best_score
        new_best = score is not None and (best is None or score > best)
    else:
        new_best = decision.action == "accept_new_best"
    if new_best:
        state.best, state.best_score, state.best_step = taken, state.current_score, step
