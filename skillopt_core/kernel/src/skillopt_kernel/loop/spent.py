"""The end of a run at a limit of its budget: in order, with its best skill, and so that it can go on."""

from __future__ import annotations

import attrs

from skillopt_kernel.errors import BudgetSpent
from skillopt_kernel.history import RunSummary
from skillopt_kernel.loop.final import TESTS, Tested, end, summarise, test_skills, write_test
from skillopt_kernel.loop.patience import next_epoch
from skillopt_kernel.loop.run import Place, RunContext
from skillopt_kernel.loop.state import LoopState, restore
from skillopt_kernel.records import Ask
from skillopt_kernel.skill import shown


def finish_within(run: RunContext, spent: BudgetSpent) -> RunSummary:
    """Let what is in flight settle, go back to the last checkpoint, test on what was kept, and write `summary.json`.

    What was begun of the open step is not judged. Its calls are in the ledger, so that a run with a higher limit goes
    through it as if it had never stopped.
    """
    run.pool.clear()
    run.place = Place()
    rewind(run)
    run.account.finishing = True
    state = run.state_of_run
    folder = "" if next_epoch(run.settings.train, state) is None else f"budget/step_{state.step:04d}/"
    try:
        tested: Tested = test_skills(run, folder, best_first=True) if run.settings.evaluation.eval_test else {}
    except BudgetSpent:
        run.pool.clear()
        tested = stored_tests(run, folder)
    summary = summarise(run, tested)
    counts = ", ".join(str(len(outcomes)) for outcomes in tested.values())
    notes = (str(spent), *summary.notes)
    if any(len(outcomes) < len(run.splits.test) for outcomes in tested.values()):
        notes += (f"of {len(run.splits.test)} test tasks the first, best and last skill were tested on {counts}.",)
        summary = attrs.evolve(summary, test_delta_hard=None, final_test_delta_hard=None)
    return end(run, attrs.evolve(summary, status="budget", budget=str(spent), notes=notes))


def outlook(run: RunContext) -> tuple[int, int, int]:
    """Attempts that the final evaluation is going to make if one more candidate is accepted, those that were made so
    far, and how many are made at the same time.
    """
    state, tests = run.state_of_run, run.settings.evaluation.eval_test and not run.evaluates
    skills = 1 + len({shown(state.best.skill), shown(state.current.skill)})
    return tests * skills * len(run.splits.test), run.outcomes.count, run.settings.env.workers


def rewind(run: RunContext) -> None:
    """Take up the last checkpoint again, and of the selection scores what is stored."""
    state = LoopState.at_start(run.start.text)
    restore(run.directory, state)
    state.seconds = run.state_of_run.seconds  # those of earlier processes: this one goes on
    run.state_of_run = state
    for name in ("start", "best", "current"):
        scored = getattr(state, name)
        found = [run.outcomes.find(Ask(scored.skill, task)) for task in run.splits.selection]
        outcomes = {outcome.task_id: outcome for outcome in found if outcome is not None}
        if state.current_score is not None or len(outcomes) == len(run.splits.selection):
            setattr(state, name, attrs.evolve(scored, outcomes=outcomes))
    run.directory.save_best(state.best.skill)


def stored_tests(run: RunContext, folder: str) -> Tested:
    """The test outcomes as far as there are any."""
    tested = {}
    for prefix, name, place in TESTS:
        found = [run.outcomes.find(Ask(getattr(run.state_of_run, name).skill, task)) for task in run.splits.test]
        tested[prefix] = tuple(outcome for outcome in found if outcome is not None)
        write_test(run, folder + place, tested[prefix])
    return tested
