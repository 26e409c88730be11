"""Keys that people know although the driver that owns them may not be installed, and the older names of keys."""

from __future__ import annotations

from skillopt_kernel.models.roles import backend_name
from skillopt_kernel.plugins.known import known_names

OWNED: dict[str, tuple[str, str]] = {
    "optimizer.learning_rate": ("scheduler", "constant"),
    "optimizer.min_learning_rate": ("scheduler", "linear"),
    "evaluation.gate_mixed_weight": ("gate", "mixed"),
    "evaluation.use_semantic_density": ("hook", "semantic_density"),
    "evaluation.semantic_density_weight": ("hook", "semantic_density"),
    "evaluation.leading_words": ("hook", "semantic_density"),
    "model.codex_trace_to_optimizer": ("backend", "codex_exec"),
}
"""Key -> kind and name of a driver that owns it: accepted, and unused, while no driver in use owns it."""

SWITCHES: dict[str, str] = {"evaluation.use_semantic_density": "semantic_density"}
"""Key that, when true, means `hooks.plugins: [<name>]`; the plugin's settings are the keys that it owns."""

IGNORED: dict[str, str] = {
    "train.steps_per_epoch": "is computed from the data and the batch size; delete it",
    "optimizer.meta_learning_rate": "has no effect; delete it",
    "gradient.max_analyst_rounds": "has no effect any more; delete it",
}
"""Key -> why it is accepted and does nothing."""

PREFIXES: dict[str, str] = {"azure_openai_": "openai_chat", "azure_": "openai_chat", "minimax_": "minimax_chat"} | {
    f"{name}_": name for name in known_names("backend")
}
"""What a backend's keys in `model` begin with -> the backend."""

FLAT: dict[str, str] = {
    "env": "env.name",
    "model_backend": "model.backend",
    "optimizer_model": "model.optimizer",
    "target_model": "model.target",
    "edit_budget": "optimizer.learning_rate",
    "min_edit_budget": "optimizer.min_learning_rate",
    "meta_edit_budget": "optimizer.meta_learning_rate",
}
"""Names of keys outside any section that differ from the key's name in its section."""

_ALIASES: dict[str, dict[str, str]] = {
    "optimizer.skill_update_mode": {
        "patch": "edits",
        "rewrite_from_suggestions": "rewrite suggestions rewrite_suggestions",
        "full_rewrite_minibatch": "full_rewrite minibatch_full_rewrite skill_rewrite_minibatch",
    },
    "optimizer.lr_control_mode": {
        "fixed": "manual scheduler scheduled",
        "autonomous": "auto optimizer",
        "none": "off no_lr false",  # an unquoted `off` is false in YAML
    },
    "optimizer.longitudinal_pair_policy": {
        "mixed": "default random all",
        "changed": "change delta 10_01 01_10",
        "unchanged": "stable same 00_11",
    },
    "optimizer.lr_scheduler": {},
    "evaluation.gate_metric": {},
    "env.name": {},
    "execution.executor": {},
}
"""Key whose value is a name -> name -> its aliases. Names are trimmed and in lower case."""


def canonical(key: str, text: str) -> str:
    """The name that an alias stands for; other keys' values as they are."""
    if key in ("model.optimizer_backend", "model.target_backend", "model.judge_backend"):
        return backend_name(text) if text.strip() else ""
    if key not in _ALIASES:
        return text
    plain = text.strip().lower()
    return next((name for name, aliases in _ALIASES[key].items() if plain in aliases.split()), plain)
