"""Every file and field that a run directory is known for, against whole runs with every mechanism on.

The tables are the names of the earlier system, which people's scripts read. What was renamed or left out on purpose
stands in `CHANGED`, with the reason.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from skillopt_testkit.project import Project, world

import skillopt_core

COMMON = (
    "train.num_epochs=3", "train.seed=3", "train.batch_size=3",
    "optimizer.use_slow_update=true", "optimizer.use_meta_skill=true",
    "optimizer.learning_rate=1", "optimizer.longitudinal_pair_policy=changed", "optimizer.slow_update_samples=6",
)  # fmt: skip
RUNS = {
    "patch": (
        "optimizer.lr_control_mode=autonomous", "optimizer.use_skill_aware_reflection=true",
        "env.split_mode=ratio", "env.data_path=all.json", "env.split_ratio=1:1:1",
    ),
    "suggestions": ("optimizer.skill_update_mode=rewrite_from_suggestions", "train.accumulation=2"),
    "whole": ("optimizer.skill_update_mode=full_rewrite_minibatch", "optimizer.use_slow_update=false"),
}  # fmt: skip
"""One run for each update mode; between them every mechanism is on."""

STEP, ROLLOUT = "steps/step_0001", "steps/step_0001/rollout"
FILES: dict[str, tuple[str, ...]] = {
    "patch": (
        "config.json", "history.json", "runtime_state.json", "best_skill.md", "summary.json", "lr_history.jsonl",
        "calls.sqlite", "events.jsonl", "outcomes.jsonl",
        "skills/skill_v0000.md", "skills/skill_v0006.md", "selection_eval_baseline/results.jsonl",
        "test_eval_baseline/results.jsonl", "test_eval/results.jsonl", "test_eval_final/results.jsonl",
        "test_eval_baseline/summary.json", "test_eval/summary.json", "test_eval_final/summary.json",
        "_generated_splits/*/train/items.json", "_generated_splits/*/split_manifest.json",
        f"{ROLLOUT}/results.jsonl", f"{ROLLOUT}/predictions/*/conversation.json",
        f"{ROLLOUT}/predictions/*/target_system_prompt.txt", f"{ROLLOUT}/predictions/*/target_user_prompt.txt",
        f"{STEP}/patches/minibatch_fail_000.json", "steps/*/patches/minibatch_succ_000.json",
        f"{STEP}/merged_patch.json", f"{STEP}/ranked_edits.json", f"{STEP}/lr_decision.json",
        f"{STEP}/candidate_skill.md", f"{STEP}/edit_apply_report.json", "steps/*/appendix_notes.json",
        f"{STEP}/selection_eval/results.jsonl", f"{STEP}/trajectory_digest.json", f"{STEP}/step_record.json",
        "slow_update/epoch_02/slow_result.json", "slow_update/epoch_02/comparison_pairs.json",
        "slow_update/epoch_02/comparison_pairs_all.json", "slow_update/epoch_*/candidate_skill.md",
        "slow_update/epoch_02/rollout_prev/results.jsonl", "slow_update/epoch_02/rollout_curr/results.jsonl",
        "slow_update/epoch_*/selection_eval/results.jsonl", "meta_skill/epoch_02/meta_skill_result.json",
    ),
    "suggestions": (
        f"{STEP}/batch_0/rollout/results.jsonl", f"{STEP}/batch_1/rollout/predictions/*/conversation.json",
        f"{STEP}/batch_0/patches/minibatch_fail_000.json", "steps/*/rewrite_result.json",
    ),
    "whole": (
        "steps/*/full_rewrite_result.json", "meta_skill/epoch_02/comparison_pairs.json",
        "meta_skill/epoch_02/comparison_pairs_all.json", "meta_skill/epoch_02/rollout_prev/results.jsonl",
        "meta_skill/epoch_02/rollout_curr/results.jsonl",
    ),
}  # fmt: skip

CHANGED = {
    "final_selection_eval/": "the step that took the last skill has its selection scores",
    "slow_result.json: time_s": "times stand where times live: `timing.slow_update_s` of the epoch in epoch_stats",
    "meta_skill_result.json: time_s": "likewise `timing.meta_skill_s`",
    "meta_skill_result.json: reasoning": "the hook returns the advice alone; the whole reply is in the run's ledger",
    "slow_result.json: inject_placeholder": "no region is ever empty; the first epoch is `skip_first_epoch`",
    "update_origin: slow_update_momentum": "the origin that the skill bears in records: slow_update_epoch_NN",
    "skills/skill_vNNNN.md": "never overwritten by a slow update: slow_update/epoch_NN/skill.md has the text with it",
}
"""Names of the earlier system that are others here, and why."""

FIELDS: dict[str, str] = {
    "history.json": (
        "step epoch step_in_epoch timing tokens rollout_hard rollout_soft rollout_n accumulation_batches n_patches "
        "n_failure_patches n_success_patches n_edits_merged n_edits_ranked edit_budget lr_control_mode lr_decision "
        "support_counts candidate_hash candidate_skill_len rewrite_change_summary edit_apply_summary selection_hard "
        "selection_soft gate_metric candidate_gate_score action current_score best_score best_step current_origin "
        "best_origin skill_len wall_time_s n_execution_lapse_notes n_appendix_notes_added n_appendix_notes_total"
    ),
    "runtime_state.json": (
        "last_completed_step current_skill_path current_score current_origin best_skill_path best_score best_step "
        "best_origin"
    ),
    "summary.json": (
        "version config baseline_selection_hard best_selection_hard final_selection_hard final_selection_soft "
        "best_step current_origin best_origin total_steps total_accepts total_rejects total_skips epoch_stats "
        "baseline_test_hard baseline_test_soft test_hard test_soft final_test_hard final_test_soft "
        "test_delta_hard final_test_delta_hard "
        "total_wall_time_s token_summary"
    ),
    "test_eval/summary.json": "overall",
    f"{STEP}/trajectory_digest.json": (
        "step action n_total n_fail failure_patterns score_before score_after rejected_edits"
    ),
    f"{STEP}/patches/minibatch_fail_000.json": "patch source_type batch_size failure_summary",
    "steps/*/patches/minibatch_succ_000.json": "patch source_type batch_size success_patterns",
    f"{STEP}/merged_patch.json": "reasoning edits",
    "slow_update/epoch_02/slow_result.json": (
        "reasoning slow_update_content action prev_hard curr_hard selection_hard selection_soft candidate_hash "
        "update_origin update_target"
    ),
    "slow_update/epoch_02/comparison_pairs_all.json": "id task category prev curr",
    "slow_update/epoch_02/rollout_prev/results.jsonl": (
        "id hard soft n_turns fail_reason task_type predicted_answer question"
    ),
    f"{ROLLOUT}/results.jsonl": "id hard soft n_turns fail_reason task_type predicted_answer question",
    "meta_skill/epoch_02/meta_skill_result.json": "meta_skill_content action",
    "steps/*/appendix_notes.json": "step_notes appendix_after",
    "lr_history.jsonl": "step epoch",
    "_generated_splits/*/split_manifest.json": "source_data_path split_mode split_ratio split_seed counts",
}
"""A file of the run `patch` -> the fields of each of its objects."""

INNER = {
    ("history.json", "timing"): "rollout_s reflect_s aggregate_s select_s update_s evaluate_s",
    ("history.json", "accumulation_batches"): (
        "batch_idx batch_seed n_envs hard soft n_failure_patches n_success_patches"
    ),
    ("summary.json", "epoch_stats"): (
        "epoch steps accepts rejects skips best_score_at_epoch_end current_score_at_epoch_end timing tokens"
    ),
    ("test_eval/summary.json", "overall"): "total hard_acc",
    ("slow_update/epoch_02/comparison_pairs.json", "prev"): "hard soft predicted_answer fail_reason",
    ("slow_update/epoch_02/comparison_pairs.json", "curr"): "hard soft predicted_answer fail_reason",
}
"""(file, field) -> the fields of what stands there."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    project = Project.make(tmp_path_factory.mktemp("directory"), train=6, selection=6, test=6)
    project.write("world.yaml", world("{insight: 0.5, harmful: 0.3}"))
    items = [item for split in ("train", "val", "test") for item in project.json(f"data/{split}/items.json")]
    project.write("all.json", json.dumps(items))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.folder)
        for name, more in RUNS.items():
            skillopt_core.train("config.yaml", (*COMMON, *more), out=project.folder / name)
        yield project


def objects(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON or JSON Lines file: its rows, or the one that it is."""
    text = path.read_text(encoding="utf-8")
    value = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)
    return value if isinstance(value, list) else [value]


def found(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if path.stat().st_size)


@pytest.mark.parametrize(("run", "pattern"), [(run, pattern) for run, each in FILES.items() for pattern in each])
def test_the_file_is_there(project: Project, run: str, pattern: str) -> None:
    assert found(project.folder / run, pattern), f"{pattern} is missing or empty"


@pytest.mark.parametrize("pattern", FIELDS)
def test_its_objects_have_the_fields(project: Project, pattern: str) -> None:
    rows = [row for path in found(project.folder / "patch", pattern) for row in objects(path)]
    assert rows
    for row in rows:
        assert not set(FIELDS[pattern].split()) - set(row)


@pytest.mark.parametrize(("pattern", "name"), INNER)
def test_what_stands_in_a_field_has_its_fields(project: Project, pattern: str, name: str) -> None:
    values = [row[name] for path in found(project.folder / "patch", pattern) for row in objects(path)]
    wanted = set(INNER[pattern, name].split())
    several = [one for value in values for one in (value if isinstance(value, list) else [value])]
    assert any(wanted <= set(one) for one in several)
    if name != "timing":  # a step that was skipped has no time of what it did not do
        assert all(wanted <= set(one) for one in several)


def test_what_is_left_out_or_renamed_is_really_so(project: Project) -> None:
    run = project.folder / "patch"
    assert not (run / "final_selection_eval").exists()
    slow = project.json("patch/slow_update/epoch_02/slow_result.json")
    assert "time_s" not in slow and slow["update_origin"] == "slow_update_epoch_02"
    assert project.json("patch/slow_update/epoch_01/slow_result.json")["action"] == "skip_first_epoch"
    meta = project.json("patch/meta_skill/epoch_02/meta_skill_result.json")
    assert not {"time_s", "reasoning"} & set(meta)
    stats = project.json("patch/summary.json")["epoch_stats"]
    assert all("slow_update_s" in one["timing"] for one in stats)
    assert ["meta_skill_s" in one["timing"] for one in stats] == [True, True, False]


def test_the_sides_of_a_comparison_lie_apart_and_hold_all_that_was_compared(project: Project) -> None:
    for run, folder in (("patch", "slow_update/epoch_02"), ("whole", "meta_skill/epoch_02")):
        place = project.folder / run / folder
        pairs = json.loads((place / "comparison_pairs_all.json").read_text())
        kept = json.loads((place / "comparison_pairs.json").read_text())
        assert len(kept) < len(pairs) and {pair["category"] for pair in kept} <= {"improved", "regressed"}
        assert [pair for pair in pairs if pair in kept] == sorted(kept, key=pairs.index)
        for side in ("prev", "curr"):
            rows = objects(place / f"rollout_{side}/results.jsonl")
            assert [row["id"] for row in rows] == [pair["id"] for pair in pairs]
            assert [row["hard"] for row in rows] == [pair[side]["hard"] for pair in pairs]
            assert len({row["skill_hash"] for row in rows}) == 1
    outcomes = project.lines("patch/outcomes.jsonl")
    keys = [(row["skill_hash"], row["id"], row["sample"]) for row in outcomes]
    assert len(keys) == len(set(keys)), "what is stored is not rolled out again"
