"""What `skillopt plan` says beside what whole runs asked: each count in its range, the sum near the expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from skillopt_analysis.planning.assuming import like_run
from skillopt_analysis.planning.making import plan_training
from skillopt_kernel import load_config, train
from skillopt_kernel.models.ledger import CALLS, Ledger
from skillopt_testkit.project import Project
from small_worlds import two_rules_a_kind

EPOCH_ENDS = ("optimizer.use_slow_update=true", "optimizer.use_meta_skill=true", "train.num_epochs=3")
CONFIGURATIONS = {
    "patch": (),
    "rewrite_from_suggestions": ("optimizer.skill_update_mode=rewrite_from_suggestions",),
    "full_rewrite_minibatch": ("optimizer.skill_update_mode=full_rewrite_minibatch",),
    "the optimizer decides how many": ("optimizer.lr_control_mode=autonomous",),
    "no limit of edits": ("optimizer.lr_control_mode=none",),
    "epoch ends": EPOCH_ENDS,
    "changed pairs, forced guidance": (
        *EPOCH_ENDS,
        "optimizer.longitudinal_pair_policy=changed",
        "optimizer.slow_update_samples=3",
        "optimizer.slow_update_gate_with_selection=false",
    ),
    "meta skill alone": (EPOCH_ENDS[1], EPOCH_ENDS[2]),
    "without a gate": ("evaluation.use_gate=false",),
    "accumulation, refilled": (
        "train.batch_size=5",
        "train.accumulation=2",
        "gradient.minibatch_size=1",
        "gradient.merge_batch_size=2",
    ),
    "several attempts, failures only": (
        "train.samples_per_task=3",
        "gradient.failure_only=true",
        "evaluation.eval_test=false",
    ),
    "a target that answers alike": (*EPOCH_ENDS, "evaluation.deterministic_target=true"),
    "patience": ("train.num_epochs=4", "train.patience=1"),
    "three turns": ("env.max_turns=3",),
}


def asked(run: Path) -> dict[tuple[str, str], int]:
    """Role and stage -> the calls of a run."""
    ledger = Ledger(run / CALLS, read_only=True)
    try:
        return {(row["role"], row["stage"]): row["calls"] for row in ledger.sums("role", "stage")}
    finally:
        ledger.close()


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_a_run_asks_what_was_planned(tmp_path: Path, name: str) -> None:
    project = Project.make(tmp_path)
    project.write("world.yaml", two_rules_a_kind("{insight: 0.6, harmful: 0.2}"))
    config = load_config(project.folder / "config.yaml", CONFIGURATIONS[name])
    planned = plan_training(config)
    assert list(tmp_path.glob("outputs*")) == []
    run = tmp_path / "run"
    train(config, out=run)
    stages, calls = planned.by_stage(), asked(run)
    assert set(calls) <= set(stages)
    for stage, amount in stages.items():
        assert amount.calls.least <= calls.get(stage, 0) <= amount.calls.most, (stage, amount.calls, calls.get(stage))
    made = sum(calls.values())
    assert 0.6 * made <= planned.total.calls.expected <= 1.5 * made

    learnt = plan_training(config, like_run(run, {}))  # what the run itself tells brings the plan nearer to it
    assert 0.75 * made <= learnt.total.calls.expected <= 1.3 * made
