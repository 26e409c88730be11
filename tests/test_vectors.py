"""The known values that training is held to: each vector and the test that has it.

Where the behaviour is another one by intention, the vector says so.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
KERNEL = "skillopt_core/kernel/tests/test_skillopt_kernel_"
VECTORS = {
    "linear schedule": ("skillopt_core/scheduler_linear/tests/test_skillopt_scheduler_linear.py", "test_known_values"),
    "cosine schedule": ("skillopt_core/scheduler_cosine/tests/test_skillopt_scheduler_cosine.py", "test_known_values"),
    "linear, one step": (
        "skillopt_core/scheduler_linear/tests/test_skillopt_scheduler_linear.py",
        "test_a_run_of_one_step_has_the_most",
    ),
    "cosine, minimum above maximum": (
        "skillopt_core/scheduler_cosine/tests/test_skillopt_scheduler_cosine.py",
        "test_a_minimum_above_the_maximum_is_the_budget",
    ),
    "hash": (f"{KERNEL}skill.py", "test_the_hash_is_of_the_shown_text"),
    "split counts": ("skillopt_envs/lib_env/tests/test_skillopt_lib_env_ratio_split.py", "test_split_counts"),
    "shuffle, and a sample of four": (f"{KERNEL}splits.py", "test_an_ad_hoc_sample"),
    "epoch plan": (f"{KERNEL}splits.py", "test_the_epoch_plan_of_the_specification"),
    "minibatches": (f"{KERNEL}splits.py", "test_minibatches"),
    "gate": ("tests/test_stages.py", "test_the_vectors_of_the_gate"),
    "mixed gate": ("skillopt_core/gate_mixed/tests/test_skillopt_gate_mixed.py", "test_the_weight_is_the_soft_scores"),
    "mixed gate, weights beyond 0 and 1: refused instead of cut off": (
        "skillopt_core/gate_mixed/tests/test_skillopt_gate_mixed.py",
        "test_a_weight_outside_its_range_is_an_error",
    ),
    "density": (
        "skillopt_core/hook_semantic_density/tests/test_skillopt_hook_semantic_density.py",
        "test_the_density_is_the_share_of_leading_words",
    ),
    "density, regions ignored": (
        "skillopt_core/hook_semantic_density/tests/test_skillopt_hook_semantic_density.py",
        "test_protected_regions_are_no_part_of_the_text",
    ),
    "density, bonus": (
        "skillopt_core/hook_semantic_density/tests/test_skillopt_hook_semantic_density.py",
        "test_the_bonus_is_weight_times_density",
    ),
    "edits": ("skillopt_core/update_patch/tests/test_skillopt_update_patch_engine.py", "test_operations"),
    "region replaced": (f"{KERNEL}skill.py", "test_a_region_is_replaced_whole_and_stands_last"),
    "appendix notes": (
        "skillopt_core/hook_skill_aware/tests/test_skillopt_hook_skill_aware_notes.py",
        "test_notes_that_say_the_same_collapse_to_the_first",
    ),
    "JSON, fences": (f"{KERNEL}models_parsing.py", "test_fences"),
    "JSON, two objects": (f"{KERNEL}models_parsing.py", "test_no_object_or_several_or_cut_off"),
    "JSON, trailing comma": (f"{KERNEL}models_parsing.py", "test_repair_of_a_reply_that_is_one_object"),
    "JSON, prose that looks like an object": (
        f"{KERNEL}models_parsing.py",
        "test_a_pseudo_object_in_prose_is_no_answer",
    ),
    "JSON, arrays": (f"{KERNEL}models_parsing.py", "test_arrays"),
    "merge ends for any size": ("tests/test_stages.py", "test_merging_ends_for_any_batch_size_and_loses_nothing"),
    "merge falls back": ("tests/test_stages.py", "test_a_merge_that_comes_to_nothing_keeps_its_inputs_and_says_so"),
    "a failed merge says why, without credentials; earlier it said nothing of the exception": (
        "tests/test_stages.py",
        "test_a_failed_call_is_told_apart_from_a_bad_reply_and_a_permanent_one_ends_the_run",
    ),
    "failure patterns without analysts": (
        "tests/test_stages.py",
        "test_failures_that_no_analyst_named_are_told_by_the_beginning_of_their_feedback",
    ),
    "values of overrides: by the declared type of the key, null is unset": (
        f"{KERNEL}config_load.py",
        "test_overrides_are_read_by_the_declared_type",
    ),
}
"""Vector -> file and test. Orders of base seeds have none: every environment here lists its tasks."""


@pytest.mark.parametrize("vector", VECTORS)
def test_a_vector_has_its_test(vector: str) -> None:
    file, name = VECTORS[vector]
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{file} has no {name}"
