"""The flags of `skillopt-train` and `skillopt-eval`: each stands for one key of the configuration."""

from __future__ import annotations

from typing import NamedTuple

from skillopt_kernel.config.known import LABELS
from skillopt_kernel.plugins.known import known_names


class Flag(NamedTuple):
    """One flag.

    name     without its dashes
    key      the dotted key that it sets
    kind     "value": read as the key's type asks; "switch": true or false; "switch or unset": an empty text or
             null, too, which leaves the key to the environment
    choices  what the help names as possible values. Whether a value is one the configuration decides
    about    what the key means, where the kernel's schema does not say it or says it of training
    """

    name: str
    key: str
    kind: str = "value"
    choices: tuple[str, ...] = ()
    about: str = ""


Flags = tuple[Flag, ...]


def _in(section: str, names: str, kind: str = "value") -> Flags:
    """A flag for each name, of the same name as its key in the section."""
    return tuple(Flag(name, f"{section}.{name}", kind) for name in names.split())


def _by_role(keys: Flags, *roles: str) -> Flags:
    """Flags for both roles at once and then, with the role before the name, for each alone."""
    alone = [
        flag._replace(name=f"{role}_{flag.name}", key=flag.key.replace("model.", f"model.{role}_"))
        for role in roles
        for flag in keys
    ]
    return (*keys, *alone)


def _choice(section: str, name: str, choices: str) -> Flag:
    return Flag(name, f"{section}.{name}", choices=tuple(choices.split()))


_LABELS = tuple(sorted({"azure_openai", "codex", *known_names("backend"), *LABELS}))
_EFFORTS = ("", "low", "medium", "high", "xhigh", "max")
_ROLES = ("optimizer", "target")

_MODELS: dict[str, Flags] = {
    "Models": (
        Flag("backend", "model.backend", choices=_LABELS),
        Flag("optimizer_model", "model.optimizer"),
        Flag("target_model", "model.target"),
        *_in("model", "optimizer_backend target_backend"),
        Flag("reasoning_effort", "model.reasoning_effort", choices=_EFFORTS),
        Flag("rewrite_reasoning_effort", "model.rewrite_reasoning_effort", choices=_EFFORTS),
        *_in("model", "rewrite_max_completion_tokens"),
    ),
    "Backend openai_chat": (
        *_by_role(
            _in(
                "model",
                "azure_openai_endpoint azure_openai_api_version azure_openai_api_key azure_openai_auth_mode "
                "azure_openai_ad_scope azure_openai_managed_identity_client_id",
            ),
            *_ROLES,
        ),
        *_in("model", "azure_endpoint azure_api_version azure_api_key"),
    ),
    "Backend codex_exec": (
        *_in(
            "model",
            "codex_exec_path codex_exec_sandbox codex_exec_profile codex_exec_reasoning_effort codex_exec_use_sdk "
            "codex_exec_approval_policy",
        ),
        *_in("model", "codex_exec_network_access codex_exec_web_search", "switch or unset"),
        *_in("model", "codex_exec_full_auto codex_trace_to_optimizer", "switch"),
    ),
    "Backend claude_code_exec": _in(
        "model",
        "claude_code_exec_path claude_code_exec_profile claude_code_exec_use_sdk claude_code_exec_effort "
        "claude_code_exec_max_thinking_tokens",
    ),
    "Backends cursor_exec, copilot_exec and copilot_chat": (
        *_in("model", "cursor_exec_path cursor_exec_sandbox copilot_exec_path copilot_exec_home"),
        *_in("model", "copilot_exec_allow_all_tools", "switch or unset"),
        *_in("model", "copilot_chat_optimizer_model copilot_chat_target_model copilot_chat_timeout"),
    ),
    "Backend qwen_chat": _by_role(
        (
            *_in(
                "model",
                "qwen_chat_base_url qwen_chat_api_key qwen_chat_temperature qwen_chat_timeout_seconds "
                "qwen_chat_max_tokens qwen_chat_thinking_mode",
            ),
            *_in("model", "qwen_chat_enable_thinking", "switch or unset"),
        ),
        *_ROLES,
    ),
    "Backend minimax_chat": (
        *_by_role(_in("model", "minimax_base_url minimax_api_key"), *_ROLES),
        *_in("model", "minimax_region minimax_model minimax_temperature minimax_max_tokens"),
        *_in("model", "minimax_enable_thinking", "switch or unset"),
    ),
}

_ENVIRONMENT: Flags = (
    Flag("env", "env.name"),
    _choice("env", "split_mode", "ratio split_dir"),
    *_in("env", "split_ratio split_seed split_dir split_output_dir data_path data_root limit workers"),
    *_in("env", "mode max_turns max_steps max_api_workers image_detail"),
    *_in("env", "shuffle_choices use_theorem use_sketch", "switch"),
    *_in("env", "judge_model judge_max_completion_tokens judge_retries"),
)

TRAIN: dict[str, Flags] = {
    "Training": _in("train", "num_epochs train_size steps_per_epoch batch_size accumulation seed"),
    "Reflection": (
        *_in("gradient", "minibatch_size merge_batch_size analyst_workers max_analyst_rounds"),
        *_in("gradient", "failure_only", "switch"),
    ),
    "Updates": (
        Flag("edit_budget", "optimizer.learning_rate", about="at most so many edits in a step"),
        Flag("min_edit_budget", "optimizer.min_learning_rate", about="where a decay of that number ends"),
        _choice("optimizer", "lr_scheduler", "constant linear cosine autonomous"),
        _choice("optimizer", "lr_control_mode", "fixed autonomous none"),
        _choice("optimizer", "skill_update_mode", "patch rewrite_from_suggestions full_rewrite_minibatch"),
        *_in("optimizer", "use_slow_update", "switch"),
        *_in("optimizer", "slow_update_samples"),
        _choice("optimizer", "longitudinal_pair_policy", "mixed changed unchanged"),
        *_in("optimizer", "use_meta_skill use_skill_aware_reflection", "switch"),
        _choice("optimizer", "skill_aware_appendix_source", "both failure_only"),
        *_in("optimizer", "skill_aware_consolidate_threshold"),
    ),
    "Evaluation": (
        *_in("evaluation", "use_gate eval_test", "switch"),
        *_in("evaluation", "sel_env_num test_env_num"),
    ),
    "Environment and data": (*_in("env", "skill_init out_root"), *_ENVIRONMENT),
    **_MODELS,
}
"""Heading of the help -> the flags of `skillopt-train`."""

EVAL: dict[str, Flags] = {
    "Randomness": _in("train", "seed"),
    "Evaluation": _in("evaluation", "sel_env_num test_env_num"),
    "Environment and data": (
        Flag("out_root", "env.out_root", about="folder of the evaluation; empty: outputs/eval-<split>-<name>-<8 hex>"),
        *_ENVIRONMENT,
    ),
    **_MODELS,
}
"""The same of `skillopt-eval`."""
