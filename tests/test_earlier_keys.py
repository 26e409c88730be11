"""Every key of the earlier system's files loads, in its section and without one, as the type that it was known with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from click.testing import CliRunner
from skillopt_kernel.cli.main import cli
from skillopt_kernel.config import Config, default_of, load_config
from skillopt_kernel.config.load import load
from skillopt_kernel.config.tree import plain
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.plugins.discovery import installed, load_manifest, settings_class
from skillopt_testkit.project import Project

NONE = object()
"""The base file of the earlier system did not have the key."""

KEYS: dict[str, tuple[str, Any, Any]] = {
    "train.num_epochs": ("num_epochs", 3, 4),
    "train.train_size": ("train_size", 7, 0),
    "train.steps_per_epoch": ("steps_per_epoch", 2, NONE),
    "train.batch_size": ("batch_size", 5, 40),
    "train.accumulation": ("accumulation", 2, 1),
    "train.seed": ("seed", 7, 42),
    "gradient.minibatch_size": ("minibatch_size", 3, 8),
    "gradient.merge_batch_size": ("merge_batch_size", 4, 8),
    "gradient.analyst_workers": ("analyst_workers", 2, 16),
    "gradient.failure_only": ("failure_only", True, False),
    "optimizer.learning_rate": ("edit_budget", 6, 4),
    "optimizer.min_learning_rate": ("min_edit_budget", 1, 2),
    "optimizer.lr_scheduler": ("lr_scheduler", "linear", "cosine"),
    "optimizer.lr_control_mode": ("lr_control_mode", "none", "fixed"),
    "optimizer.skill_update_mode": ("skill_update_mode", "rewrite_from_suggestions", "patch"),
    "optimizer.meta_learning_rate": ("meta_edit_budget", 2, NONE),
    "optimizer.use_slow_update": ("use_slow_update", False, True),
    "optimizer.slow_update_samples": ("slow_update_samples", 3, 20),
    "optimizer.slow_update_gate_with_selection": ("slow_update_gate_with_selection", True, False),
    "optimizer.longitudinal_pair_policy": ("longitudinal_pair_policy", "changed", "mixed"),
    "optimizer.use_meta_skill": ("use_meta_skill", False, True),
    "optimizer.use_skill_aware_reflection": ("use_skill_aware_reflection", True, False),
    "optimizer.skill_aware_appendix_source": ("skill_aware_appendix_source", "failure_only", "both"),
    "optimizer.skill_aware_consolidate_threshold": ("skill_aware_consolidate_threshold", 5, 0),
    "evaluation.use_gate": ("use_gate", False, True),
    "evaluation.gate_metric": ("gate_metric", " Mixed ", NONE),
    "evaluation.gate_mixed_weight": ("gate_mixed_weight", 0.25, NONE),
    "evaluation.use_semantic_density": ("use_semantic_density", True, NONE),
    "evaluation.semantic_density_weight": ("semantic_density_weight", 0.1, NONE),
    "evaluation.leading_words": ("leading_words", "must, never", NONE),
    "evaluation.sel_env_num": ("sel_env_num", 3, 0),
    "evaluation.test_env_num": ("test_env_num", 2, 0),
    "evaluation.eval_test": ("eval_test", False, True),
    "env.name": ("env", "searchqa", ""),
    "env.skill_init": ("skill_init", "skill.md", ""),
    "env.out_root": ("out_root", "out", ""),
    "env.split_mode": ("split_mode", "split_dir", "ratio"),
    "env.split_ratio": ("split_ratio", "8:1:1", NONE),
    "env.split_seed": ("split_seed", 3, 42),
    "env.split_dir": ("split_dir", "data", ""),
    "env.data_path": ("data_path", "data", ""),
    "env.split_output_dir": ("split_output_dir", "made", ""),
    "env.exec_timeout": ("exec_timeout", 30, 120),
    "env.limit": ("limit", 2, NONE),
    "model.backend": ("model_backend", "simulated", "azure_openai"),
    "model.optimizer": ("optimizer_model", "gpt-5.5", "gpt-5.5"),
    "model.target": ("target_model", "gpt-5.5", "gpt-5.5"),
    "model.optimizer_backend": ("optimizer_backend", "simulated", "openai_chat"),
    "model.target_backend": ("target_backend", "simulated", "openai_chat"),
    "model.reasoning_effort": ("reasoning_effort", "xhigh", "medium"),
    "model.rewrite_reasoning_effort": ("rewrite_reasoning_effort", "high", ""),
    "model.rewrite_max_completion_tokens": ("rewrite_max_completion_tokens", 1000, 64000),
    "model.codex_trace_to_optimizer": ("codex_trace_to_optimizer", True, True),
}
"""Key -> its flat name, a value of its documented type, the value in the earlier base file."""

BACKEND_KEYS: dict[str, Any] = {
    "codex_exec_path": "", "codex_exec_sandbox": "workspace-write", "codex_exec_profile": "",
    "codex_exec_use_sdk": None, "codex_exec_reasoning_effort": "high",
    "codex_exec_network_access": False, "codex_exec_web_search": True,
    "codex_exec_approval_policy": "never", "codex_exec_full_auto": True,
    "claude_code_exec_path": "claude", "claude_code_exec_profile": "", "claude_code_exec_use_sdk": "auto",
    "claude_code_exec_effort": "medium", "claude_code_exec_max_thinking_tokens": 16384,
    "cursor_exec_path": "", "cursor_exec_sandbox": "enabled",
    "copilot_exec_path": "", "copilot_exec_home": "", "copilot_exec_allow_all_tools": None,
    "copilot_chat_optimizer_model": "", "copilot_chat_target_model": "", "copilot_chat_timeout": 600,
    **{
        f"{role}azure_openai_{name}": value
        for role in ("", "optimizer_", "target_")
        for name, value in {
            "endpoint": "https://e", "api_version": "2024-12-01-preview", "api_key": "", "auth_mode": "azure_cli",
            "ad_scope": "https://cognitiveservices.azure.com/.default", "managed_identity_client_id": "",
        }.items()
    },
    "azure_endpoint": "https://e", "azure_api_version": "2024-12-01-preview", "azure_api_key": "sk-azure-1",
    **{
        f"{role}qwen_chat_{name}": value
        for role in ("", "optimizer_", "target_")
        for name, value in {
            "base_url": "http://localhost:8000/v1", "api_key": "", "temperature": 0.7, "timeout_seconds": 300,
            "max_tokens": 8000, "enable_thinking": False, "thinking_mode": "disabled",
        }.items()
    },
    "minimax_region": "", "minimax_base_url": "", "minimax_api_key": "", "minimax_model": "MiniMax-M3",
    "minimax_temperature": "0.7", "minimax_max_tokens": "8000", "minimax_enable_thinking": "false",
    "optimizer_minimax_base_url": "", "optimizer_minimax_api_key": "", "target_minimax_base_url": "",
    "target_minimax_api_key": "",
}  # fmt: skip
"""Key of `model` that a backend owns, by its leaf, which is also its flat name -> a value of its documented type."""

OF_AN_ENVIRONMENT = {"workers": 3, "max_turns": 2, "max_completion_tokens": 100}
"""Keys without a section that the environment in use, searchqa, knows."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = Project.make(tmp_path, train=6, selection=4, test=2)
    monkeypatch.chdir(project.folder)
    return project


def resolved(project: Project, keys: dict[str, Any], overrides: Sequence[str] = ()) -> Config:
    """The configuration of a file with these keys (sections or flat names) over the project's own."""
    project.write("run.yaml", yaml.safe_dump({"_base_": "config.yaml", **keys}))
    return load_config("run.yaml", overrides, environ={})


def in_section(key: str, value: Any) -> dict[str, Any]:
    section, _, name = key.partition(".")
    return {section: {name: value}}


def told(config: Config) -> list[str]:
    """The warnings without their places and the names under which the keys were written."""
    return sorted(warning.rpartition(": ")[2] for warning in config.warnings)


@pytest.mark.parametrize("key", sorted(KEYS))
def test_a_key_loads_in_its_section_and_flat_with_its_type(project: Project, key: str) -> None:
    flat, value, _ = KEYS[key]
    structured, loose = resolved(project, in_section(key, value)), resolved(project, {flat: value})
    assert structured.as_dict() == loose.as_dict() and structured.unused == loose.unused
    assert told(structured) == told(loose)
    assert structured.origins[key].startswith("run.yaml:")
    section, _, name = key.partition(".")
    found = structured.as_dict()[section].get(name, NONE)
    if isinstance(value, bool | int | float):
        assert found == value or key in structured.unused or structured.plugins
    again = resolved(project, {}, [f"{flat}={value}"])
    assert again.as_dict()[section].get(name, NONE) == found and again.origins[key] == "-o"


@pytest.mark.parametrize("name", sorted(BACKEND_KEYS))
def test_a_backends_key_loads_in_its_section_and_flat_and_is_shown_as_unused(project: Project, name: str) -> None:
    value = BACKEND_KEYS[name]
    structured, loose = resolved(project, {"model": {name: value}}), resolved(project, {name: value})
    assert structured.as_dict() == loose.as_dict()
    assert structured.unused == loose.unused and len(structured.unused) == 1
    assert told(structured) == told(loose)
    shown = CliRunner().invoke(cli, ["config", "show", "run.yaml", "--origins"])
    (key,) = loose.unused
    assert shown.exit_code == 0 and f"#   {key}  {loose.origins[key]}  ({loose.unused[key]})" in shown.output
    assert "sk-azure-1" not in shown.output


@pytest.mark.parametrize("name", sorted(OF_AN_ENVIRONMENT))
def test_an_environments_key_loads_in_its_section_and_flat(project: Project, name: str) -> None:
    value = OF_AN_ENVIRONMENT[name]
    for config in (resolved(project, {"env": {name: value}}), resolved(project, {name: value}),
                   resolved(project, {}, [f"{name}={value}"])):  # fmt: skip
        assert config.as_dict()["env"][name] == value and not config.unused


def test_a_whole_file_in_either_form_says_the_same(project: Project) -> None:
    sections: dict[str, dict[str, Any]] = {}
    flat: dict[str, Any] = {}
    for key, (name, value, _) in KEYS.items():
        section, _, leaf = key.partition(".")
        sections.setdefault(section, {})[leaf] = value
        flat[name] = value
    sections["model"] |= BACKEND_KEYS
    structured, loose = resolved(project, sections), resolved(project, flat | BACKEND_KEYS)
    assert structured.as_dict() == loose.as_dict() and structured.unused == loose.unused
    assert told(structured) == told(loose)


# Defaults ---------------------------------------------------------------------------------------------------

ON_PURPOSE = {
    "model.optimizer", "model.target", "model.optimizer_backend", "model.target_backend",
    "model.codex_trace_to_optimizer", "optimizer.slow_update_gate_with_selection",
}  # fmt: skip
"""Keys whose default is another one; all of them but one are not for a configuration to put back."""


def our_defaults() -> dict[str, Any]:
    """Every default by its dotted key: of the shipped base file, and of the hook plugins that keys switch on."""
    sections: dict[str, dict[str, Any]] = plain(load("default").root)
    found = {f"{section}.{name}": value for section, keys in sections.items() for name, value in (keys or {}).items()}
    for each in installed("hook"):
        manifest = load_manifest("hook", each.name)
        for key in manifest.keys:
            fields = attrs.fields(settings_class(manifest))
            found |= {key: False} | {f"{key.partition('.')[0]}.{field.name}": default_of(field) for field in fields}
    return found


def test_the_earlier_defaults_are_ours_or_the_features() -> None:
    ours = our_defaults()
    feature = yaml.safe_load(Path(load("features/earlier_defaults").path or "").read_text("utf-8"))
    for key, (_, _, earlier) in KEYS.items():
        if earlier is not NONE and key not in ON_PURPOSE:
            assert ours[key] == earlier, key
    changed = {f"{section}.{name}": value for section, keys in feature.items() for name, value in keys.items()}
    assert changed == {"optimizer.slow_update_gate_with_selection": False}
    for key, value in changed.items():
        assert value == KEYS[key][2] != ours[key]


def test_the_feature_tells_of_each_other_difference() -> None:
    text = Path(load("features/earlier_defaults").path or "").read_text("utf-8")
    for key in ON_PURPOSE - {"model.codex_trace_to_optimizer"}:
        name = key.partition(".")[2]
        assert name in text or key.replace("optimizer_", "<role>_").replace("target_", "<role>_") in text, key


# What was taken silently, or for something else ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"batch_size": "abc"}, "run.yaml:2:1: batch_size: expected a whole number, got the text 'abc'"),
        ({"skill_update_mode": "pach"}, "there is no update mode named 'pach'. Did you mean 'patch'?"),
        ({"lr_scheduler": "cosin"}, "there is no scheduler named 'cosin'. Did you mean 'cosine'?"),
        ({"gate_metric": "softer"}, "there is no gate named 'softer'"),
        ({"skill_init": "none.md"}, "run.yaml:2:1: skill_init: 'none.md' is not at "),
        ({"batchsize": 3}, "run.yaml:2:1: batchsize: is no section and no key; did you mean 'batch_size'?"),
        ({"train": {"batchsize": 3}}, "run.yaml:3:3: train.batchsize: is no key; did you mean 'batch_size'?"),
        ({"split_mode": "ration"}, "run.yaml:2:1: split_mode: expected one of ratio, split_dir"),
        ({"data_root": "x"}, "run.yaml:2:1: data_root: is no section and no key"),
        ({"merge_batch_size": 1}, "run.yaml:2:1: merge_batch_size: must be at least 2"),
        (
            {"gate_mixed_weight": 1.5},
            "run.yaml:2:1: gate_mixed_weight: evaluation.gate_mixed_weight must be",
        ),
        ({"use_gate": "off"}, "run.yaml:2:1: use_gate: expected true or false, got the text 'off'"),
    ],
)
def test_what_was_taken_silently_is_an_error_with_its_place(
    project: Project, keys: dict[str, Any], problem: str
) -> None:
    project.write("run.yaml", "_base_: config.yaml\n" + yaml.safe_dump(keys))
    with pytest.raises(ConfigError) as caught:
        load_config("run.yaml", environ={})
    assert len(caught.value.problems) == 1 and problem in caught.value.problems[0]


def test_an_unknown_split_is_no_validation_data(project: Project) -> None:
    refused = project.run("eval", "config.yaml", "--skill", "skill.md", "--split", "valdation")
    refused.refused("valdation")


def test_a_name_that_looks_like_a_number_or_a_switch_stays_a_name(project: Project) -> None:
    project.write("no/train/items.json", json.dumps([]))
    config = resolved(project, {}, ["target_model=4", "optimizer_model=1e10", "split_dir=no"])
    assert [config.backends[role].model for role in ("target", "optimizer")] == ["4", "1e10"]
    assert config.env.split_dir == project.folder / "no"
