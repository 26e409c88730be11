"""A run that is killed at a boundary of its stages, and resumed, leaves the files of an unbroken one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from killed_runs import Place, decided, differences, run_until
from skillopt_testkit.project import Project
from small_worlds import two_rules_a_kind

PATCH: dict[str, Any] = {
    "train": {"num_epochs": 3, "batch_size": 2, "accumulation": 2, "seed": 4},
    "gradient": {"minibatch_size": 1, "merge_batch_size": 2},
    "optimizer": {
        "learning_rate": 2, "min_learning_rate": 1, "lr_scheduler": "linear",
        "use_slow_update": True, "slow_update_samples": 8, "use_meta_skill": True,
    },
}  # fmt: skip
"""Two steps an epoch, two accumulation batches a step; the guidance of epoch 2 passes the gate."""

OTHERS = {
    "forced": {
        "skill_update_mode": "rewrite_from_suggestions",
        "slow_update_gate_with_selection": False,
        "longitudinal_pair_policy": "changed",
    },
    "autonomous": {"lr_control_mode": "autonomous"},
    "whole": {"skill_update_mode": "full_rewrite_minibatch"},
    "aware": {"use_skill_aware_reflection": True, "skill_aware_consolidate_threshold": 1},
}
"""Variant -> how its section `optimizer` differs."""

STEP = "steps/step_0003"
END = "slow_update/epoch_02"
META = "meta_skill/epoch_02"

IN_STEP = [
    Place("rollout", "before", 5),
    Place(f"{STEP}/batch_1/rollout/predictions/*/conversation.json", "before", 2),
    Place(f"{STEP}/batch_1/rollout/results.jsonl", "before"),
    Place("reflect", "before", 6),
    Place(f"{STEP}/batch_1/patches/*", "before", 2),
    Place("aggregate", "before", 3),
    Place(f"{STEP}/merged_patch.json", "after"),
    Place("edit_budget", "after", 6),
    Place("select", "before", 3),
    Place("update", "before", 3),
    Place(f"{STEP}/candidate_skill.md", "after"),
    Place(f"{STEP}/selection_eval/predictions/*/conversation.json", "before", 3),
    Place("gate", "after", 3),
    Place(f"{STEP}/trajectory_digest.json", "before"),
    Place("skills/skill_v0003.md", "after"),
    Place("history.json", "after", 4),
    Place("runtime_state.json", "after", 4),
    Place("best_skill.md", "after", 4),
]
"""Step 3 is the first of epoch 2. Each step asks twice for a rollout, a reflection and an edit budget.

State is saved after steps 1 and 2, epoch 1, steps 3 and 4, epoch 2; then a process that went on counts anew.
"""

AT_EPOCH_END = [
    Place("runtime_state.json", "after", 2),
    Place("slow_update", "before"),
    Place(f"{END}/rollout_*/predictions/*/conversation.json", "before", 2),
    Place(f"{END}/candidate_skill.md", "before"),
    Place(f"{END}/candidate_skill.md", "after"),
    Place(f"{END}/selection_eval/predictions/*/conversation.json", "before", 5),
    Place(f"{END}/selection_eval/results.jsonl", "after"),
    Place(f"{END}/skill.md", "after"),
    Place(f"{END}/slow_result.json", "before"),
    Place(f"{END}/comparison_pairs.json", "after"),
    Place("meta_skill", "before"),
    Place("meta_skill", "after"),
    Place(f"{META}/meta_skill_result.json", "after"),
    Place("history.json", "after", 3),
    Place("runtime_state.json", "after", 3),
]

AT_END = [
    Place("runtime_state.json", "after", 3),
    Place("test_eval/predictions/*/conversation.json", "before", 3),
    Place("test_eval_baseline/results.jsonl", "after"),
    Place("test_eval_baseline/summary.json", "after"),
    Place("test_eval/results.jsonl", "before"),
    Place("test_eval/summary.json", "after"),
    Place("test_eval_final/results.jsonl", "after"),
    Place("test_eval_final/summary.json", "after"),
    Place("summary.json", "before"),
    Place("summary.json", "after"),
]

# The optimizer sees what is missing but brings useless rules too.
WORLD = two_rules_a_kind("{insight: 1.0, harmful: 0.0, distractors: 0.5, over_budget: 0.0, bad_anchors: 0.0}")


def make(folder: Path, settings: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """The configuration, and what an unbroken run of it decided."""
    project = Project.make(folder, train=8, selection=12, test=4)
    project.write("world.yaml", WORLD)
    path = project.write("mine.yaml", json.dumps({"_base_": "config.yaml", **settings}))
    run_until(path, folder / "unbroken")
    return path, decided(folder / "unbroken")


Unbroken = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module")
def patch(tmp_path_factory: pytest.TempPathFactory) -> Unbroken:
    return make(tmp_path_factory.mktemp("patch"), PATCH)


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Unbroken]:
    def made(name: str) -> Unbroken:
        model = {"simulated_lapses": 0.8 if name == "aware" else 0.0}
        settings = {**PATCH, "optimizer": PATCH["optimizer"] | OTHERS[name], "model": model}
        if name == "aware":
            settings["train"] = PATCH["train"] | {"seed": 1}  # notes fall with a candidate
        if name == "autonomous":
            settings["train"] = PATCH["train"] | {"samples_per_task": 2}
            settings["gradient"] = PATCH["gradient"] | {"keep_step_buffer": True}
        return make(tmp_path_factory.mktemp(name), settings)

    return {name: made(name) for name in OTHERS}


def assert_resumed(unbroken: Unbroken, out: Path, *places: Place) -> None:
    """Killed at each place in turn and then run to its end, the run must have left the same files."""
    config, expected = unbroken
    for place in places:
        run_until(config, out, place)
    run_until(config, out)
    assert not differences(out, expected)
    rows = [json.loads(line) for line in (out / "outcomes.jsonl").read_text("utf-8").splitlines()]
    keys = [(row["skill_hash"], row["id"], row["sample"]) for row in rows]
    assert len(keys) == len(set(keys)), "a finished attempt was made again"


def test_the_unbroken_runs_have_what_is_to_be_resumed(patch: Unbroken, others: dict[str, Unbroken]) -> None:
    for _, files in (patch, *others.values()):
        assert "accept_new_best" in {step["action"] for step in files["history.json"]}
        assert len(files["history.json"]) == 6
    for (_, files), action in ((patch, "accept_new_best"), (others["forced"], "force_accept")):
        assert files[f"{END}/slow_result.json"]["action"] == action
        assert files[f"{META}/meta_skill_result.json"]["action"] == "write_meta_skill"
    assert any(step["lr_decision"] for step in others["autonomous"][1]["history.json"])
    aware = others["aware"][1]
    assert any(step["n_appendix_notes_added"] for step in aware["history.json"])
    waiting = [aware[name]["waited"] for name in aware if name.endswith("appendix_notes.json")]
    assert any(waiting), "notes fell with a candidate and joined the next"


@pytest.mark.parametrize("number", range(len(IN_STEP)), ids=lambda number: str(IN_STEP[number]))
def test_killed_in_a_step_at_an_epochs_end_and_at_the_end(patch: Unbroken, tmp_path: Path, number: int) -> None:
    """The places of the three lists, one of each in one run; the shorter lists begin again."""
    places = [IN_STEP[number], AT_EPOCH_END[number % len(AT_EPOCH_END)], AT_END[number % len(AT_END)]]
    assert_resumed(patch, tmp_path / "run", *places)


def test_killed_before_anything_is_saved(patch: Unbroken, tmp_path: Path) -> None:
    names = ("config.json", "fingerprint.json", "skills/skill_v0000.md", "selection_eval_baseline/results.jsonl")
    assert_resumed(patch, tmp_path / "run", *(Place(name, "after") for name in names), Place("runtime_state.json"))


@pytest.mark.parametrize(
    ("variant", "places"),
    [
        (
            "forced",
            (
                Place(f"{STEP}/rewrite_result.json", "after"),
                Place(f"{END}/candidate_skill.md", "after"),
                Place(f"{END}/selection_eval/predictions/*/conversation.json", "before", 3),
                Place(f"{END}/skill.md", "after"),
                Place(f"{META}/meta_skill_result.json", "after"),
            ),
        ),
        (
            "autonomous",
            (
                Place("edit_budget", "after", 2),
                Place("steps/step_0001/lr_decision.json", "after"),
                Place("lr_history.jsonl", "after"),
                Place("runtime_state.json", "before"),
                Place("steps/step_0002/batch_1/rollout/predictions/*/conversation.json", "before", 3),
                Place("runtime_state.json", "after", 2),
            ),
        ),
        (
            "aware",
            (
                Place("steps/step_0004/appendix_notes.json", "after"),
                Place("gate", "after"),
                Place("runtime_state.json", "before"),
                Place("runtime_state.json", "after"),
                Place("steps/step_0005/appendix_notes.json", "after"),
                Place("gate", "after"),
                Place("skills/skill_v0005.md", "after"),
            ),
        ),
        ("whole", (Place("aggregate", "after"), Place("steps/step_0001/full_rewrite_result.json", "after"))),
    ],
    ids=["forced", "autonomous", "aware", "whole"],
)
def test_killed_in_another_mode(
    others: dict[str, Unbroken], tmp_path: Path, variant: str, places: tuple[Place, ...]
) -> None:
    assert_resumed(others[variant], tmp_path / "run", *places)


@pytest.mark.parametrize(
    "places",
    [
        (Place("gate", "before", 3), Place("gate", "before"), Place("gate", "after"), Place("gate", "after")),
        (Place("runtime_state.json", "before", 4), *[Place("runtime_state.json", "before")] * 2),
        (*[Place(f"{END}/skill.md", "after")] * 2, *[Place("slow_update", "after")] * 2),
        (*[Place("meta_skill", "after")] * 2, *[Place("summary.json", "before")] * 2),
    ],
    ids=lambda places: "-then-".join(map(str, places)),
)
def test_killed_again_where_it_went_on(patch: Unbroken, tmp_path: Path, places: tuple[Place, ...]) -> None:
    assert_resumed(patch, tmp_path / "run", *places)
