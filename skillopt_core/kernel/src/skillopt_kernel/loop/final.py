"""The end of a run: last selection score, promotion, the test of first, best and last skill, the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from skillopt_kernel.gating import compute_score
from skillopt_kernel.history import RunSummary
from skillopt_kernel.loop import artifacts
from skillopt_kernel.loop.attempts import Purpose
from skillopt_kernel.loop.checkpoint import run_seconds, save
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.models.ledger import token_summary
from skillopt_kernel.records import Ask, Outcome, Scored
from skillopt_kernel.statistics import wilson_interval
from skillopt_kernel.store.files import write_json
from skillopt_kernel.version import version_of

TESTS = (
    ("baseline_test", "start", "test_eval_baseline"),
    ("test", "best", "test_eval"),
    ("final_test", "current", "test_eval_final"),
)
"""Prefix in the summary, the skill's name in the loop's state, the folder."""


def finish(run: RunContext) -> RunSummary:
    """Promote the last skill if it is the best, test, and write `summary.json`."""
    promote(run)
    tested = test_skills(run) if run.settings.evaluation.eval_test else {}
    summary = summarise(run, tested)
    write_json(run.directory.root / "summary.json", summary.as_json())
    run.emit(
        "run_finished",
        status=summary.status,
        best_step=summary.best_step,
        **{
            name: getattr(summary, name)
            for name in (
                "baseline_selection_hard", "best_selection_hard", "baseline_test_hard", "test_hard", "final_test_hard",
            )
        },
    )  # fmt: skip
    return summary


def promote(run: RunContext) -> None:
    """The last skill becomes the best when its gate score, earned on all selection tasks, is higher."""
    state = run.state_of_run
    if state.current_score is None or state.best_score is None or state.current_score <= state.best_score:
        return
    state.best, state.best_score, state.best_step = state.current, state.current_score, state.step
    state.best_path = state.current_path
    save(run)


def test_skills(run: RunContext) -> dict[str, tuple[Outcome, ...]]:
    """The test outcomes of first, best and last skill; equal skills are tested once."""
    state, tasks = run.state_of_run, run.splits.test
    tested: dict[str, tuple[Outcome, ...]] = {}
    for _, which, folder in TESTS:
        run.pool.prefetch([Ask(getattr(state, which).skill, task) for task in tasks], Purpose("test", folder))
    for prefix, which, folder in TESTS:
        purpose = Purpose("test", folder)
        with run.stage("test", {}, tasks=len(tasks), skill=which) as made:
            outcomes = tuple(run.pool.evaluate([Ask(getattr(state, which).skill, task) for task in tasks], purpose))
            if outcomes:
                artifacts.write_results(run, folder, outcomes)
                write_json(run.directory.root / folder / "summary.json", by_kind(outcomes))
            made["hard"], made["soft"] = compute_score(outcomes)
        tested[prefix] = outcomes
    return tested


def untested(tested: Mapping[str, tuple[Outcome, ...]]) -> bool:
    """Whether some skill has test outcomes but not one score: the endpoint or the environment failed at the end."""
    return any(outcomes and not any(o.scored for o in outcomes) for outcomes in tested.values())


def by_kind(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Scores by task type and `overall`: `{total, scored, hard_acc, soft}`."""
    kinds: dict[str, list[Outcome]] = {"overall": list(outcomes)}
    for outcome in outcomes:
        kinds.setdefault(outcome.kind or "other", []).append(outcome)
    table = {}
    for kind, members in kinds.items():
        hard, soft = compute_score(members)
        scored = sum(outcome.scored for outcome in members)
        table[kind] = {"total": len(members), "scored": scored, "hard_acc": hard, "soft": soft}
    return table


def summarise(run: RunContext, tested: Mapping[str, tuple[Outcome, ...]]) -> RunSummary:
    state, actions = run.state_of_run, Counter(record.action for record in run.state_of_run.history)
    summary = RunSummary(
        version=version_of("skillopt-kernel"),
        status="incomplete" if untested(tested) else "finished",
        folder=str(run.directory.root),
        config=run.settings.as_dict(),
        splits={name: len(getattr(run.splits, name)) for name in ("train", "selection", "test")},
        gate=run.gate.name,
        use_gate=run.settings.evaluation.use_gate,
        best_step=state.best_step,
        current_origin=state.current.origin,
        best_origin=state.best.origin,
        total_steps=len(state.history),
        total_accepts=actions["accept"] + actions["accept_new_best"],
        total_rejects=actions["reject"],
        total_undecided=actions["undecided"] + actions["unverified"],
        total_skips=sum(count for name, count in actions.items() if name.startswith("skip_")),
        total_forced=actions["force_accept"],
        epoch_stats=tuple(record.as_json() for record in state.epochs),
        total_wall_time_s=run_seconds(run),
        token_summary=token_summary(run.models.ledger),
        model_failures=model_failures(run),
        missing_outcomes=sum(not o.scored for outcomes in tested.values() for o in outcomes)
        + sum(record.rollout_missing + record.selection_missing for record in state.history),
        notes=tuple(notes(run, tested)),
    )
    return attrs.evolve(summary, **selection_fields(run), **test_fields(tested))


def model_failures(run: RunContext) -> dict[str, int]:
    """How many optimizer calls came to nothing, by kind, over all steps and ends of epochs."""
    failures: Counter[str] = Counter()
    for record in run.state_of_run.history:
        failures.update(record.model_failures)
    for end in run.state_of_run.epochs:
        failures.update(end.model_failures)
    return dict(failures)


def selection_fields(run: RunContext) -> dict[str, Any]:
    state = run.state_of_run
    fields: dict[str, Any] = {}
    for prefix, scored in (("baseline", state.start), ("best", state.best), ("final", state.current)):
        hard, soft = compute_score(scored.outcomes.values())
        fields |= {f"{prefix}_selection_hard": hard, f"{prefix}_selection_soft": soft}
        fields[f"{prefix}_gate_score"] = gate_score(run, scored)
    return fields


def gate_score(run: RunContext, scored: Scored) -> float | None:
    return run.gate_score(scored) if scored.outcomes else None


def test_fields(tested: Mapping[str, tuple[Outcome, ...]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    intervals: dict[str, Any] = {}
    for prefix, outcomes in tested.items():
        hard, soft = compute_score(outcomes)
        scored = [outcome.hard for outcome in outcomes if outcome.scored]
        fields |= {f"{prefix}_hard": hard, f"{prefix}_soft": soft, f"{prefix}_n": len(scored)}
        if scored and all(value in (0.0, 1.0) for value in scored):
            interval = wilson_interval(int(sum(scored)), len(scored))
            intervals[f"{prefix}_hard"] = [interval.low, interval.high] if interval is not None else None
    first = fields.get("baseline_test_hard")
    for prefix in ("test", "final_test"):
        hard = fields.get(f"{prefix}_hard")
        fields[f"{prefix}_delta_hard"] = None if hard is None or first is None else hard - first
    kinds = {prefix: by_kind(outcomes) for prefix, outcomes in tested.items() if outcomes}
    return fields | {"intervals": intervals, "by_kind": kinds}


def notes(run: RunContext, tested: Mapping[str, tuple[Outcome, ...]]) -> list[str]:
    """What a reader must know to read the numbers right."""
    settings, told = run.settings, []
    if not settings.evaluation.use_gate:
        told.append("evaluation.use_gate is false: every candidate was taken, whatever it scored.")
    if not settings.evaluation.eval_test:
        told.append("evaluation.eval_test is false: nothing was tested on held-out tasks.")
    elif not run.splits.test:
        told.append("the split has no test tasks: the scores are those on the selection tasks, which chose the skill.")
    if untested(tested):
        told.append("the test is incomplete: run the same command again, and what has no score is asked again.")
    missing = {prefix: sum(not o.scored for o in outcomes) for prefix, outcomes in tested.items()}
    for prefix, count in missing.items():
        if count:
            told.append(f"{prefix}: {count} of {len(tested[prefix])} tasks have no score and are in no mean.")
    optimizer = settings.optimizer
    for name in ("slow_update", "meta_skill"):
        if getattr(optimizer, f"use_{name}") and not run.hooks.performs(name):
            told.append(f"optimizer.use_{name} is true, but hooks.disable takes {name} out; nothing was done.")
    if (
        optimizer.use_slow_update
        and run.hooks.performs("slow_update")
        and not optimizer.slow_update_gate_with_selection
    ):
        told.append("optimizer.slow_update_gate_with_selection is false: guidance was taken without the gate.")
    return told
