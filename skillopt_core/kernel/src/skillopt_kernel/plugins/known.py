"""Which of our distributions provides which name, also of those that are not installed.

A configuration that names a plugin which nothing installed provides is answered with the `pip install` line.
"""

from __future__ import annotations

_BY_RULE: dict[str, tuple[str, str]] = {
    "backend": (
        "skillopt-backend-",
        "simulated openai_compatible openai_chat qwen_chat minimax_chat claude_chat copilot_chat codex_exec "
        "claude_code_exec cursor_exec copilot_exec handoff",
    ),
    "env": ("skillopt-env-", "tasks searchqa docvqa officeqa livemathematicianbench spreadsheetbench alfworld"),
    "gate": ("skillopt-gate-", "hard soft mixed paired"),
    "scheduler": ("skillopt-scheduler-", "constant linear cosine autonomous"),
    "update": ("skillopt-update-", "patch rewrite_from_suggestions full_rewrite_minibatch"),
    "executor": ("skillopt-executor-", "processes ray"),
    "hook": ("skillopt-hook-", "semantic_density backtrack"),
}
"""Kind -> what a distribution's name begins with, and the names of the plugins, one distribution each."""

_TOGETHER: dict[tuple[str, str], str] = {
    ("executor", "threads"): "skillopt-kernel",
    ("scorer", "exact"): "skillopt-scorers",
    ("scorer", "token_f1"): "skillopt-scorers",
    ("scorer", "anls"): "skillopt-scorers",
    ("scorer", "llm_judge"): "skillopt-scorers",
    ("source", "claude_code"): "skillopt-sleep",
    ("source", "codex"): "skillopt-sleep",
    ("command", "sleep"): "skillopt-sleep",
    ("command", "webui"): "skillopt-webui",
    ("command", "report"): "skillopt-analysis",
    ("command", "blame"): "skillopt-analysis",
    ("command", "audit"): "skillopt-analysis",
}
"""Plugins that share a distribution."""


def distribution_of(kind: str, name: str) -> str | None:
    """The distribution of ours that provides the plugin, or `None` for a name that is not ours."""
    beginning, names = _BY_RULE.get(kind, ("", ""))
    if name in names.split():
        return beginning + name.replace("_", "-")
    return _TOGETHER.get((kind, name))


def known_names(kind: str) -> tuple[str, ...]:
    """The names of all our plugins of a kind, sorted."""
    together = [name for (of, name) in _TOGETHER if of == kind]
    return tuple(sorted([*_BY_RULE.get(kind, ("", ""))[1].split(), *together]))
