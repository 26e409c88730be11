"""The backend: the target as an agent that works in a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext, Finding

from skillopt_backend_cursor_exec.harness import CursorHarness
from skillopt_backend_cursor_exec.settings import CursorExecSettings


def make_backend(settings: CursorExecSettings, context: DriverContext) -> CursorExecBackend:
    """The backend of one role. `context.model` wins over the settings' model."""
    required = getattr(context.common, "require_isolation", False)
    return CursorExecBackend(CursorHarness.of(settings, context.model or settings.model, require_isolation=required))


class CursorExecBackend:
    """Implements `Backend`: the target as an agent, whose use nobody tells."""

    capabilities: Mapping[str, frozenset[str]] = {"target": frozenset({"agent"})}
    tells: frozenset[str] = frozenset()

    def __init__(self, harness: CursorHarness) -> None:
        self._harness = harness

    def open_chat(self, role: str) -> NoReturn:
        raise ConfigError(
            "the backend 'cursor_exec' is an agent and no chat model; name a chat backend, such as 'openai_chat', in "
            f"`model.{role}_backend`."
        )

    def open_agent(self, role: str) -> CursorHarness:
        """The agent; starts nothing."""
        return self._harness

    def endpoint(self, role: str) -> str:
        return "cursor"

    def check(self, role: str) -> list[Finding]:
        return self._harness.check()

    def close(self) -> None:
        """End the jobs that run."""
        self._harness.close()
