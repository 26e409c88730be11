"""Which of our distributions provides which name, also of those that are not installed.

A configuration that names a plugin which nothing installed provides is answered with the `pip install` line.
"""

from __future__ import annotations

_ONE_EACH = {
    "backend": "simulated openai_compatible openai_chat qwen_chat minimax_chat claude_chat copilot_chat codex_exec "
    "claude_code_exec cursor_exec copilot_exec handoff",
    "env": "tasks searchqa docvqa officeqa livemathematicianbench spreadsheetbench alfworld",
    "gate": "hard soft mixed paired",
    "scheduler": "constant linear cosine autonomous",
    "update": "patch rewrite_from_suggestions full_rewrite_minibatch",
    "executor": "processes ray",
    "hook": "semantic_density skill_aware backtrack",
}
"""Kind -> the names of plugins that have a distribution each, `skillopt-<kind>-<name>`."""

_TOGETHER = {
    "skillopt-kernel": ("executor", "threads"),
    "skillopt-testkit": ("env", "rehearsal"),
    "skillopt-scorers": ("scorer", "exact token_f1 anls llm_judge"),
    "skillopt-sleep": ("source", "claude_code codex"),
    "skillopt-webui": ("command", "webui"),
    "skillopt-commands": ("command", "train eval config status runs plugins hooks"),
    "skillopt-analysis": ("command", "audit calls plan"),
}
"""Distribution -> the kind and the names of the plugins that share it."""

DISTRIBUTIONS: dict[tuple[str, str], str] = {
    ("command", "sleep"): "skillopt-sleep",
    ("hook", "data_audit"): "skillopt-analysis",
    **{(kind, name): owner for owner, (kind, names) in _TOGETHER.items() for name in names.split()},
    **{
        (kind, name): f"skillopt-{kind}-{name.replace('_', '-')}"
        for kind, names in _ONE_EACH.items()
        for name in names.split()
    },
}
"""(kind, name) -> distribution, of every plugin of ours."""


def distribution_of(kind: str, name: str) -> str | None:
    """The distribution of ours that provides the plugin, or `None` for a name that is not ours."""
    return DISTRIBUTIONS.get((kind, name))


def known_names(kind: str) -> tuple[str, ...]:
    """The names of all our plugins of a kind, sorted."""
    return tuple(sorted(name for of, name in DISTRIBUTIONS if of == kind))
