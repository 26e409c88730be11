"""The backend: `claude -p` once for each call, with nothing in it but what the call says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_lib_agent.claude.program import FLAGS, OLDEST, program
from skillopt_lib_agent.launcher import Launcher

from skillopt_backend_claude_chat.model import ClaudeChatModel
from skillopt_backend_claude_chat.settings import ClaudeChatSettings

PREFIX = "claude_chat_"
CHAT = frozenset({"chat"})


def make_backend(settings: ClaudeChatSettings, context: DriverContext) -> ClaudeChat:
    """The backend of one role. `context.model` wins over the settings' model; `context.common` is `execution`."""
    required = bool(getattr(context.common, "require_isolation", False))
    return ClaudeChat(settings, context.model or settings.model, context.role or "target", required)


class ClaudeChat:
    """Implements `Backend`: every role as a chat model. Nothing is started before the first call."""

    capabilities: Mapping[str, frozenset[str]] = {"optimizer": CHAT, "target": CHAT, "judge": CHAT}
    tells = frozenset({"tokens", "usd"})

    def __init__(self, settings: ClaudeChatSettings, model: str, role: str, require_isolation: bool) -> None:
        self._settings = settings
        self._launcher = Launcher(
            program(PREFIX, role),
            settings,
            settings.path,
            needed=(*FLAGS, "--json-schema", "--disable-slash-commands", "--bare"),
            oldest=OLDEST,
            require_isolation=require_isolation,
            credentials=settings.credentials.values(),
            writable=[settings.config_dir] if settings.config_dir else [],
        )
        self._model = ClaudeChatModel(model, settings, self._launcher)

    def open_chat(self, role: str) -> ClaudeChatModel:
        """The model, the same in every role. Starts nothing."""
        return self._model

    def open_agent(self, role: str) -> NoReturn:
        raise ConfigError(
            f"the backend 'claude_chat' is a chat model and runs no agent's job; for Claude Code as an agent name "
            f"claude_code_exec in `model.{role}_backend`."
        )

    def endpoint(self, role: str) -> str:
        return self._settings.address

    def check(self, role: str) -> list[Finding]:
        """Whether the program is there and new enough, and has something to sign in with. Spends nothing."""
        return [*self._launcher.check(), self._settings.sign_in_finding(self._launcher.program)]

    def close(self) -> None:
        """End every program that still runs."""
        self._launcher.close()
