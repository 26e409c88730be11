"""Which backend plays which role: one pure function of the label and of what the roles say themselves."""

from __future__ import annotations

ALIASES: dict[str, str] = {
    "": "openai_chat",
    "azure": "openai_chat",
    "azure-openai": "openai_chat",
    "azure_openai": "openai_chat",
    "openai": "openai_chat",
    "codex": "codex_exec",
    "claude": "claude_chat",
    "anthropic": "claude_chat",
    "cursor": "cursor_exec",
    "cursor_agent": "cursor_exec",
    "copilot": "copilot_chat",
    "copilot_cli": "copilot_chat",
    "github_copilot": "copilot_chat",
    "qwen": "qwen_chat",
    "minimax": "minimax_chat",
    "compat": "openai_compatible",
    "openai-compatible": "openai_compatible",
    "openai_compatible_chat": "openai_compatible",
}
"""What people write -> the backend's name. Any other name stands for itself."""

TARGET_ONLY = frozenset({"codex_exec", "claude_code_exec", "cursor_exec", "copilot_exec", "qwen_chat", "minimax_chat"})
"""Labels that name the target's backend; the optimizer's is then `openai_chat`."""


def backend_name(text: str) -> str:
    """The name of a backend from a label or alias: trimmed, in lower case."""
    plain = text.strip().lower()
    return ALIASES.get(plain, plain)


def plan_roles(
    label: str, optimizer: str | None = None, target: str | None = None, judge: str | None = None
) -> dict[str, str]:
    """Role -> the name of its backend, for the roles optimizer, target and judge.

    A role that names its own backend has it. One that does not has what the label says: `TARGET_ONLY` labels set
    the target alone, every other label both roles. The judge is played by the optimizer's backend unless it names
    its own.
    """
    own = {"optimizer": optimizer, "target": target, "judge": judge}
    named = {role: backend_name(value) for role, value in own.items() if value and value.strip()}
    target_of_label = backend_name(label)
    plays = named.get("optimizer", "openai_chat" if target_of_label in TARGET_ONLY else target_of_label)
    return {"optimizer": plays, "target": target_of_label, "judge": plays} | named
