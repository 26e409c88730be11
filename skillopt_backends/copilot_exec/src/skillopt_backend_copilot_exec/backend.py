"""The backend: the target as an agent that works in a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_lib_copilot.program import Copilot

from skillopt_backend_copilot_exec.harness import CopilotHarness
from skillopt_backend_copilot_exec.settings import CopilotExecSettings


def make_backend(settings: CopilotExecSettings, context: DriverContext) -> CopilotExecBackend:
    """The backend of one role. `context.model` wins over the settings' model."""
    return CopilotExecBackend(settings, context.model or settings.copilot_exec_model)


class CopilotExecBackend:
    """Implements `Backend`: the target as an agent."""

    capabilities: Mapping[str, frozenset[str]] = {"target": frozenset({"agent"})}

    def __init__(self, settings: CopilotExecSettings, model: str) -> None:
        self._settings = settings
        self._copilot = Copilot.of(settings, settings.shared)
        self._harness = CopilotHarness(model, self._copilot, settings)

    def open_chat(self, role: str) -> NoReturn:
        raise ConfigError(
            f"the backend 'copilot_exec' is an agent and no chat model; name 'copilot_chat' in `model.{role}_backend`."
        )

    def open_agent(self, role: str) -> CopilotHarness:
        """The agent; starts nothing."""
        return self._harness

    def endpoint(self, role: str) -> str:
        return self._settings.endpoint

    def check(self, role: str) -> list[Finding]:
        return self._copilot.check(self._harness.model)

    def close(self) -> None:
        """End the jobs that run."""
        self._copilot.close()
