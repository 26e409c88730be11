"""The end of a run: last selection score, promotion, the test of first, best and last skill, the summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillopt_kernel.gating import compute_score
from skillopt_kernel.history import RunSummary
from skillopt_kernel.loop.attempts import BACKGROUND, Purpose
from skillopt_kernel.loop.commit import save
from skillopt_kernel.loop.patience import ended_early
from skillopt_kernel.loop.run import RunContext
from skillopt_kernel.loop.scoring import write_results
from skillopt_kernel.models.spending import token_summary
from skillopt_kernel.records import Ask, Outcome
from skillopt_kernel.splits import PARTS
from skillopt_kernel.statistics import score_interval
from skillopt_kernel.store.files import write_json
from skillopt_kernel.version import version_of

Tested = Mapping[str, tuple[Outcome, ...]]
"""The test outcomes by the prefix of `TESTS`; empty when nothing was to be tested."""

TESTS = (
    ("baseline_test", "start", "test_eval_baseline"),
    ("test", "best", "test_eval"),
    ("final_test", "current", "test_eval_final"),
)
"""Prefix in the summary, the skill's name in the loop's state, the folder."""

START_TEST = Purpose("test", TESTS[0][2], rank=BACKGROUND)
"""Of the start skill, which is known from the beginning: where places are free while the optimizer is asked."""

TOLD = (
    "status", "best_step", "baseline_selection_hard", "best_selection_hard", "baseline_test_hard", "test_hard",
    "final_test_hard", "ended_early", "budget",
)  # fmt: skip
"""The fields of the summary that its event carries."""


def finish(run: RunContext) -> RunSummary:
    """Promote the last skill if it is the best, test, and write `summary.json`."""
    promote(run)
    run.account.finishing = True
    tested = test_skills(run) if run.settings.evaluation.eval_test else {}
    run.pool.drain()  # what was in flight when a gate had decided is in the totals, too
    return end(run, summarise(run, tested))


def end(run: RunContext, summary: RunSummary) -> RunSummary:
    """Write `summary.json` and tell that the run has ended."""
    write_json(run.directory.root / "summary.json", summary.as_json())
    run.emit("run_finished", **{name: getattr(summary, name) for name in TOLD})
    return summary


def promote(run: RunContext) -> None:
    """The last skill becomes the best when its gate score, earned on all selection tasks, is higher."""
    state = run.state_of_run
    if state.current_score is None or state.best_score is None or state.current_score <= state.best_score:
        return
    state.best, state.best_score, state.best_step = state.current, state.current_score, state.step
    state.best_path = state.current_path
    save(run)


def test_skills(run: RunContext, parent: str = "", *, best_first: bool = False) -> Tested:
    """The test outcomes of first, best and last skill, kept in folders of `parent`; equal skills are tested once."""
    tested: dict[str, tuple[Outcome, ...]] = {}
    known: dict[str, tuple[Outcome, ...]] = {}
    state = run.state_of_run
    asks = {name: [Ask(getattr(state, name).skill, task) for task in run.splits.test] for _, name, _ in TESTS}
    ranks = {"best": 0, "start": 1, "current": 2} if best_first else {}
    purposes = {name: Purpose("test", parent + folder, ranks.get(name, 0)) for _, name, folder in TESTS}
    for name, purpose in purposes.items():
        run.pool.prefetch(asks[name], purpose)
    for prefix, name, folder in TESTS:
        with run.stage("test", tasks=len(asks[name]), skill=name) as made:
            digest = run.digest(getattr(run.state_of_run, name).skill)
            if digest not in known:
                known[digest] = tuple(run.pool.evaluate(asks[name], purposes[name]))
            outcomes = tested[prefix] = known[digest]
            write_test(run, parent + folder, outcomes)
            made["hard"], made["soft"] = compute_score(outcomes)
    return tested


def write_test(run: RunContext, folder: str, outcomes: Sequence[Outcome]) -> None:
    if outcomes:
        write_results(run, folder, outcomes)
        write_json(run.directory.root / folder / "summary.json", by_kind(outcomes))


def hard_interval(outcomes: Sequence[Outcome]) -> tuple[float, float] | None:
    """The 95 % interval of the mean hard score, low and high; `None` where nothing is scored, or too little."""
    interval = score_interval([outcome.hard for outcome in outcomes if outcome.scored])
    return None if interval is None else (interval.low, interval.high)


def unscored(outcomes: Sequence[Outcome]) -> int:
    return sum(not outcome.scored for outcome in outcomes)


def incomplete(tested: Tested) -> bool:
    """Whether some skill has test outcomes but not one score: the endpoint or the environment failed at the end."""
    return any(outcomes and unscored(outcomes) == len(outcomes) for outcomes in tested.values())


def grouped(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """The outcomes by task type ("other" where it has none), and all of them as `overall`, which stands first."""
    kinds: dict[str, list[Outcome]] = {"overall": list(outcomes)}
    for outcome in outcomes:
        kinds.setdefault(outcome.kind or "other", []).append(outcome)
    return kinds


def by_kind(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Scores by task type and `overall`: `{total, scored, hard_acc, soft}`."""
    table = {}
    for kind, members in grouped(outcomes).items():
        hard, soft = compute_score(members)
        scored = len(members) - unscored(members)
        table[kind] = {"total": len(members), "scored": scored, "hard_acc": hard, "soft": soft}
    return table


def summarise(run: RunContext, tested: Tested) -> RunSummary:
    state = run.state_of_run
    actions = Counter(record.action for record in state.history)
    missing = sum(record.rollout_missing + record.selection_missing for record in state.history)
    return RunSummary(
        version=version_of("skillopt-kernel"),
        status="incomplete" if incomplete(tested) else "finished",
        folder=str(run.directory.root),
        config=run.settings.as_dict(),
        splits={name: len(getattr(run.splits, name)) for name in PARTS},
        gate=run.gate.name,
        use_gate=run.settings.evaluation.use_gate,
        ended_early=ended_early(run.settings.train, state),
        start_skill=run.start.source,
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
        total_wall_time_s=run.seconds,
        token_summary=token_summary(run.models.ledger),
        model_failures=model_failures(run),
        missing_outcomes=missing + sum(map(unscored, tested.values())),
        notes=tuple(notes(run, tested)),
        **selection_fields(run),
        **test_fields(tested),
    )


def model_failures(run: RunContext) -> dict[str, int]:
    """How many optimizer calls came to nothing, by kind, over all steps and ends of epochs."""
    state, failures = run.state_of_run, Counter[str]()
    for counted in [one.model_failures for one in state.history] + [one.model_failures for one in state.epochs]:
        failures.update(counted)
    return dict(failures)


def selection_fields(run: RunContext) -> dict[str, Any]:
    """Means and gate score of first, best and last skill on the selection tasks."""
    state = run.state_of_run
    fields: dict[str, Any] = {}
    for prefix, scored in (("baseline", state.start), ("best", state.best), ("final", state.current)):
        hard, soft = compute_score(scored.outcomes.values())
        fields |= {f"{prefix}_selection_hard": hard, f"{prefix}_selection_soft": soft}
        fields[f"{prefix}_gate_score"] = run.gate_score(scored)
    return fields


def test_fields(tested: Tested) -> dict[str, Any]:
    """Means, counts, differences to the first skill, intervals and means by task type of each test."""
    fields: dict[str, Any] = {"intervals": {}, "by_kind": {}}
    for prefix, outcomes in tested.items():
        hard, soft = compute_score(outcomes)
        scored = len(outcomes) - unscored(outcomes)
        fields |= {f"{prefix}_hard": hard, f"{prefix}_soft": soft, f"{prefix}_n": scored}
        first = fields["baseline_test_hard"]
        if prefix != "baseline_test":
            fields[f"{prefix}_delta_hard"] = None if hard is None or first is None else hard - first
        if interval := hard_interval(outcomes):
            fields["intervals"][f"{prefix}_hard"] = list(interval)
        if outcomes:
            fields["by_kind"][prefix] = by_kind(outcomes)
    return fields


def notes(run: RunContext, tested: Tested) -> Iterator[str]:
    """What a reader must know to read the numbers right."""
    yield from getattr(run.environment, "notes", tuple)()
    evaluation, optimizer = run.settings.evaluation, run.settings.optimizer
    if early := ended_early(run.settings.train, run.state_of_run):
        yield early
    if not evaluation.use_gate:
        yield "evaluation.use_gate is false: every candidate was taken, whatever it scored."
    if not run.splits.selection:
        yield "the split has no selection tasks: nothing chose between the skills, and the best skill is the last one."
    if not evaluation.eval_test:
        yield "evaluation.eval_test is false: nothing was tested on held-out tasks."
    elif not run.splits.test:
        yield "the split has no test tasks: no score here is of tasks that the skill was not chosen on."
    limit = run.settings.optimizer.max_skill_tokens
    if limit and (count := sum((one.candidate_skill_tokens or 0) > limit for one in run.state_of_run.history)):
        yield f"{count} candidates were refused untried: they were longer than optimizer.max_skill_tokens ({limit:,})."
    if incomplete(tested):
        yield "the test is incomplete: run the same command again, and what has no score is asked again."
    for prefix, outcomes in tested.items():
        if count := unscored(outcomes):
            yield f"{prefix}: {count} of {len(outcomes)} tasks have no score and are in no mean."
    if count := run.outcomes.unisolated:
        yield f"{count} attempts were not isolated: the agent's program could read this machine's files."
    for name in ("slow_update", "meta_skill"):
        if getattr(optimizer, f"use_{name}") and not run.hooks.performs(name):
            yield f"optimizer.use_{name} is true, but hooks.disable takes {name} out; nothing was done."
    guided = optimizer.use_slow_update and run.hooks.performs("slow_update")
    if guided and not optimizer.slow_update_gate_with_selection:
        yield "optimizer.slow_update_gate_with_selection is false: guidance was taken without the gate."
