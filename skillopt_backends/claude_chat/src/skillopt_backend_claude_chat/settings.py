"""What a configuration or the environment may say of the backend."""

from __future__ import annotations

from attrs import field, frozen
from skillopt_kernel.config.fields import above, option
from skillopt_lib_agent.claude.program import MODEL, ClaudeSettings


@frozen
class ClaudeChatSettings(ClaudeSettings):
    """Settings of the backend, beside those of every backend on Claude Code.

    path        the program: a name that PATH leads to, or where it lies (CLAUDE_CLI_BIN)
    max_tokens  the most tokens that a reply may have; null: what each call asks for
    """

    path: str = field(default="claude", metadata={"free": True, "env": "CLAUDE_CLI_BIN"})
    timeout_seconds: float = option(
        300.0, "seconds that one call may take, whatever its deadline allows", above(0), free=True
    )
    max_tokens: int | None = field(default=None, validator=above(0))
    structured_output: bool = option(True, "whether a reply's JSON schema is enforced, where a call has one")

    @property
    def model(self) -> str:
        """The model of a role that names none."""
        return MODEL
