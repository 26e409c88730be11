"""The backend: Claude Code as the target, one process in a fresh folder for each job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_lib_agent.claude.program import FLAGS, OLDEST, program
from skillopt_lib_agent.launcher import Launcher

from skillopt_backend_claude_code_exec.harness import ClaudeCodeHarness
from skillopt_backend_claude_code_exec.sdk import command_of, use_of
from skillopt_backend_claude_code_exec.settings import ClaudeCodeExecSettings

PREFIX = "claude_code_exec_"


def make_backend(settings: ClaudeCodeExecSettings, context: DriverContext) -> ClaudeCodeExec:
    """The backend of one role. `context.model` wins over the settings' model; `context.common` is `execution`."""
    required = bool(getattr(context.common, "require_isolation", False))
    return ClaudeCodeExec(settings, context.model or settings.model, required)


class ClaudeCodeExec:
    """Implements `Backend`: the target as an agent. Nothing is started before the first job."""

    capabilities: Mapping[str, frozenset[str]] = {"target": frozenset({"agent"})}
    tells = frozenset({"tokens", "usd"})

    def __init__(self, settings: ClaudeCodeExecSettings, model: str, require_isolation: bool) -> None:
        self._settings = settings
        self._launcher = Launcher(
            program(PREFIX, "target"),
            settings,
            command_of(settings.path, use_of(settings.use_sdk)),
            needed=(*FLAGS, "--permission-mode", "--allowedTools", "--settings"),
            oldest=OLDEST,
            require_isolation=require_isolation,
            credentials=settings.credentials.values(),
            writable=[settings.config_dir] if settings.config_dir else [],
        )
        self._harness = ClaudeCodeHarness(model, settings, self._launcher)

    def open_agent(self, role: str) -> ClaudeCodeHarness:
        """The agent. Starts nothing."""
        return self._harness

    def open_chat(self, role: str) -> NoReturn:
        raise ConfigError(
            f"the backend 'claude_code_exec' runs agents' jobs and is no chat model; for Claude as a chat model name "
            f"claude_chat in `model.{role}_backend`."
        )

    def endpoint(self, role: str) -> str:
        return self._settings.address

    def check(self, role: str) -> list[Finding]:
        """Whether the program is there, new enough, isolated, and has something to sign in with. Spends nothing."""
        return [*self._launcher.check(), self._settings.sign_in_finding(self._launcher.program)]

    def close(self) -> None:
        """End every program that still runs."""
        self._launcher.close()
