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
    required = getattr(context.common, "require_isolation", False)
    copilot = Copilot.of(settings, settings.shared, require_isolation=required)
    return CopilotExecBackend(CopilotHarness(context.model or settings.copilot_exec_model, copilot, settings))


class CopilotExecBackend:
    """Implements `Backend`: the target as an agent."""

    capabilities: Mapping[str, frozenset[str]] = {"target": frozenset({"agent"})}

    def __init__(self, harness: CopilotHarness) -> None:
        self._harness = harness

    def open_chat(self, role: str) -> NoReturn:
        raise ConfigError(
            f"the backend 'copilot_exec' is an agent and no chat model; name 'copilot_chat' in `model.{role}_backend`."
        )

    def open_agent(self, role: str) -> CopilotHarness:
        """The agent; starts nothing."""
        return self._harness

    def endpoint(self, role: str) -> str:
        return self._harness.copilot.settings.endpoint

    def check(self, role: str) -> list[Finding]:
        return self._harness.copilot.check(self._harness.model)

    def close(self) -> None:
        """End the jobs that run."""
        self._harness.copilot.close()
