"""Every flag that the earlier system had is there, and says to the configuration what an override of its key says."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from skillopt_commands.flagged import EVAL_COMMAND, TRAIN_COMMAND, FlagCommand, value_of
from skillopt_commands.flags import EVAL, TRAIN, Flag
from skillopt_kernel.config import load_config
from skillopt_kernel.config.known import OUTDATED, RENAMED, RETIRED

# The flags of the earlier system's training script, as its description lists them.
RENAMED_FLAGS = {
    "env": "env.name",
    "backend": "model.backend",
    "optimizer_model": "model.optimizer",
    "target_model": "model.target",
    "edit_budget": "optimizer.learning_rate",
    "min_edit_budget": "optimizer.min_learning_rate",
}
AZURE = "endpoint api_version api_key auth_mode ad_scope managed_identity_client_id"
QWEN = "base_url api_key temperature timeout_seconds max_tokens enable_thinking thinking_mode"
SAME_NAME = {
    "train": "num_epochs train_size steps_per_epoch batch_size accumulation seed",
    "gradient": "minibatch_size merge_batch_size analyst_workers failure_only max_analyst_rounds",
    "optimizer": "lr_scheduler lr_control_mode skill_update_mode use_slow_update slow_update_samples "
    "longitudinal_pair_policy use_meta_skill use_skill_aware_reflection skill_aware_appendix_source "
    "skill_aware_consolidate_threshold",
    "evaluation": "use_gate sel_env_num test_env_num eval_test",
    "env": "skill_init out_root max_steps max_api_workers data_path split_mode split_ratio split_seed split_dir "
    "split_output_dir data_root max_turns workers limit shuffle_choices use_theorem use_sketch image_detail "
    "judge_model judge_max_completion_tokens judge_retries mode",
    "model": "optimizer_backend target_backend reasoning_effort rewrite_reasoning_effort "
    "rewrite_max_completion_tokens codex_trace_to_optimizer codex_exec_path codex_exec_sandbox codex_exec_profile "
    "codex_exec_reasoning_effort codex_exec_use_sdk codex_exec_network_access codex_exec_web_search "
    "codex_exec_approval_policy codex_exec_full_auto claude_code_exec_path claude_code_exec_profile "
    "claude_code_exec_use_sdk claude_code_exec_effort claude_code_exec_max_thinking_tokens cursor_exec_path "
    "cursor_exec_sandbox copilot_exec_path copilot_exec_home copilot_exec_allow_all_tools "
    "copilot_chat_optimizer_model copilot_chat_target_model copilot_chat_timeout azure_endpoint azure_api_version "
    "azure_api_key minimax_region minimax_base_url minimax_api_key minimax_model minimax_temperature "
    "minimax_max_tokens minimax_enable_thinking optimizer_minimax_base_url optimizer_minimax_api_key "
    "target_minimax_base_url target_minimax_api_key "
    + " ".join(
        f"{role}{prefix}{name}"
        for role in ("", "optimizer_", "target_")
        for prefix, names in (("azure_openai_", AZURE), ("qwen_chat_", QWEN))
        for name in names.split()
    ),
}
LISTED = RENAMED_FLAGS | {name: f"{section}.{name}" for section, names in SAME_NAME.items() for name in names.split()}
WITHOUT_FLAG = (
    "gate_metric", "gate_mixed_weight", "use_semantic_density", "semantic_density_weight", "leading_words",
    "slow_update_gate_with_selection", "exec_timeout",
)  # fmt: skip

FLAGS = [flag for flags in TRAIN.values() for flag in flags]
VALUES = {
    "codex_exec_sandbox": "read-only", "codex_exec_approval_policy": "untrusted", "codex_exec_use_sdk": "cli",
    "codex_exec_reasoning_effort": "low", "cursor_exec_sandbox": "disabled",
    "claude_code_exec_profile": __file__, "claude_code_exec_use_sdk": "cli", "claude_code_exec_effort": "low",
    "lr_scheduler": "linear", "lr_control_mode": "none", "skill_update_mode": "full_rewrite_minibatch",
    "longitudinal_pair_policy": "changed", "reasoning_effort": "high", "rewrite_reasoning_effort": "low",
    "split_mode": "split_dir", "split_ratio": "3:2:5", "env": "probe_env", "skill_init": "skill.md",
    "backend": "openai_compatible", "optimizer_backend": "openai_compatible", "target_backend": "openai_compatible",
    "optimizer_model": "4", "target_model": "no", "data_path": "no", "split_dir": "1e10", "out_root": "yes",
    "skill_aware_appendix_source": "both", "skill_aware_consolidate_threshold": "0", "image_detail": "low",
    "mode": "multi", "judge_model": "7", "data_root": "off", "split_output_dir": "null-island",
}  # fmt: skip
"""Flag -> a value that its key accepts, for those that want no number."""

ENDINGS = {
    "_endpoint": "https://resource.openai.azure.com", "_base_url": "http://127.0.0.1:8000/v1", "_auth_mode": "api_key",
    "_temperature": "0.5", "_thinking_mode": "disabled", "_region": "cn_zh",
}  # fmt: skip
"""As `VALUES`, for keys that several backends or roles have, by how the flag ends."""

SKILL_AWARE = ("skill_aware_", "use_skill_aware_")
"""Flags of a plugin that need not be installed: they say what holds without it."""

ENVIRONMENT = """
from skillopt_kernel.plugins.manifest import Manifest
from attrs import frozen

plugin = Manifest(kind="env", name="probe_env", api=1, summary="probe", factory="probe_env:make",
                  settings="probe_env:Settings")

@frozen
class Settings:
    max_turns: int = 1
    max_steps: int = 1
    max_api_workers: int = 1
    data_root: str = ""
    mode: str = ""
    shuffle_choices: bool = False
    use_theorem: bool = False
    use_sketch: bool = False
    image_detail: str = ""
    judge_model: str = ""
    judge_max_completion_tokens: int = 1
    judge_retries: int = 1
"""
"""An environment that has every key which some environment of the earlier system had a flag for."""

BASE = {
    "env": {"name": "probe_env"},
    "model": {"optimizer_backend": "simulated", "target_backend": "simulated"},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory with a start skill, and the probe environment installed beside it."""
    site = tmp_path / "site"
    information = site / "probe_env-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Metadata-Version: 2.4\nName: probe-env\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[skillopt.envs]\nprobe_env = probe_env:plugin\n")
    (site / "probe_env.py").write_text(ENVIRONMENT)
    (tmp_path / "skill.md").write_text("Answer briefly.\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("probe_env", None)


def sample(flag: Flag) -> str:
    """A value that the flag's key accepts; of a switch that is on by default, that it is off."""
    on = flag.name in ("use_slow_update", "use_meta_skill", "use_gate", "eval_test", "use_skill_aware_reflection")
    for ending, value in ENDINGS.items():
        if flag.name.endswith(ending):
            return value
    return VALUES.get(flag.name, "3" if flag.kind == "value" else "no" if on else "yes")


def overrides_of(command: FlagCommand, *words: str) -> list[Any]:
    """What the command hands on to that of `skillopt` as overrides."""
    given: dict[str, Any] = {}

    def note(**arguments: Any) -> int:
        given.update(arguments)
        return 0

    kernel = type(command.command)(name="kernel", params=command.command.params, callback=note)
    listening = FlagCommand("train" if command is TRAIN_COMMAND else "eval", kernel, command.groups)
    result = CliRunner().invoke(listening, ["--config", "demo", *words])
    assert result.exit_code == 0, result.output
    assert given["config_option"] == "demo"
    return list(given["overrides"])


def test_every_flag_of_the_earlier_system_is_there_and_no_other() -> None:
    assert {flag.name: flag.key for flag in FLAGS} == LISTED
    assert len(FLAGS) == len(LISTED)
    assert not set(WITHOUT_FLAG) & {flag.name for flag in FLAGS}


def test_the_flags_of_an_evaluation_are_flags_of_training() -> None:
    evaluating = [flag for flags in EVAL.values() for flag in flags]
    assert {(flag.name, flag.key, flag.kind) for flag in evaluating} < {(f.name, f.key, f.kind) for f in FLAGS}
    assert {"seed", "test_env_num", "out_root", "backend", "qwen_chat_api_key", "split_dir"} <= {
        f.name for f in evaluating
    }


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_a_flag_says_what_an_override_of_its_key_says(flag: Flag) -> None:
    value = sample(flag)
    overrides = overrides_of(TRAIN_COMMAND, f"--{flag.name}", value)
    flagged, base = load_config(BASE, overrides, environ={}), load_config(BASE, environ={})
    written = {"yes": "true", "no": "false"}[value] if flag.kind != "value" else value
    overridden = load_config(BASE, [f"{flag.key}={written}"], environ={})
    assert flagged.as_dict() == overridden.as_dict()
    assert flagged.unused == overridden.unused
    key = RENAMED.get(flag.key, flag.key)
    assert flagged.origins[key] == f"--{flag.name}"
    unchanged = key in flagged.unused or flag.name in ("env", "backend") or flag.name.startswith(SKILL_AWARE)
    assert (flagged.as_dict() == base.as_dict()) == unchanged


@pytest.mark.parametrize(
    "flag", [flag for flag in FLAGS if flag.key in {*RETIRED, *OUTDATED}], ids=lambda flag: flag.name
)
def test_a_retired_or_renamed_flag_is_warned_of_once_and_says_what_instead(flag: Flag) -> None:
    config = load_config(BASE, overrides_of(TRAIN_COMMAND, f"--{flag.name}", sample(flag)), environ={})
    told = [warning for warning in config.warnings if "a credential" not in warning]
    assert len(told) == 1 and told[0].startswith(f"--{flag.name}: {flag.key}: ")
    assert RETIRED.get(flag.key, f"the older name of {RENAMED.get(flag.key)}; write that") in told[0]


def test_names_of_backends_are_offered_under_every_label_and_alias() -> None:
    choices = next(flag.choices for flag in FLAGS if flag.name == "backend")
    assert {"openai_compatible", "qwen", "qwen_chat", "azure_openai", "claude", "codex", "compat"} <= set(choices)
    for label in choices:
        overrides = overrides_of(TRAIN_COMMAND, "--backend", label, "--optimizer_backend", "simulated",
                                 "--target_backend", "simulated")  # fmt: skip
        assert load_config(BASE, overrides, environ={}).model.backend == label


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", "true"),
        ("YES", "true"),
        ("1", "true"),
        ("no", "false"),
        ("false", "false"),
        ("0", "false"),
        ("", "false"),
    ],
)
def test_a_switch_is_true_for_the_words_that_say_so(text: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert value_of(Flag("use_gate", "evaluation.use_gate", "switch"), text) == value
    assert not capsys.readouterr().err


def test_another_word_is_false_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert value_of(Flag("use_gate", "evaluation.use_gate", "switch"), "ture") == "false"
    assert capsys.readouterr().err == "Warning: --use_gate ture: is taken for false; write true or false\n"


@pytest.mark.parametrize("text", ["", "null"])
def test_a_switch_that_may_be_unset_can_be_unset(text: str) -> None:
    assert value_of(Flag("x", "model.codex_exec_web_search", "switch or unset"), text) == text


def test_a_flag_wins_over_an_override_and_an_empty_text_is_set() -> None:
    overrides = overrides_of(
        TRAIN_COMMAND, "--num_epochs", "5", "-o", "train.num_epochs=3", "train.seed=8", "--reasoning_effort", ""
    )
    config = load_config(BASE, overrides, environ={})
    assert (config.train.num_epochs, config.train.seed, config.model.reasoning_effort) == (5, 8, "")
    assert config.origins["model.reasoning_effort"] == "--reasoning_effort"


def test_a_text_stays_text_whatever_it_looks_like() -> None:
    overrides = overrides_of(TRAIN_COMMAND, "--target_model", "4", "--optimizer_model", "yes", "--data_path", "no")
    config = load_config(BASE, overrides, environ={})
    assert (config.backends["target"].model, config.backends["optimizer"].model) == ("4", "yes")
    assert config.env.data_path == Path.cwd() / "no"


@pytest.mark.parametrize("command", [TRAIN_COMMAND, EVAL_COMMAND], ids=["train", "eval"])
def test_the_help_shows_every_flag_in_its_group(command: FlagCommand) -> None:
    result = CliRunner().invoke(command, ["--help"])
    assert result.exit_code == 0
    for heading, flags in command.groups.items():
        _, _, group = result.output.partition(f"\n{heading} (")
        for flag in flags:
            assert f"  --{flag.name} " in group.partition("\n\n")[0], flag.name
    assert "one of anthropic, azure, " in " ".join(result.output.split())
    assert max(map(len, result.output.splitlines())) <= 80
