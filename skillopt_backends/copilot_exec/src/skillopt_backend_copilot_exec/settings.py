"""What a configuration or the environment may say of the backend."""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import frozen
from skillopt_kernel.config.fields import above, option
from skillopt_lib_agent.environment import names_of_variables
from skillopt_lib_agent.settings import ProgramSettings
from skillopt_lib_copilot.settings import CopilotSettings

Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh", "max"]


@frozen
class CopilotExecSettings(CopilotSettings):
    """Settings of the backend, beside those of every Copilot."""

    copilot_exec_model: str = option("", "the model, where no role names one; empty: Copilot's own default")
    copilot_exec_reasoning_effort: Effort = option("", "reasoning effort; empty: the model's own")
    copilot_exec_allow_all_tools: bool = option(
        False, "let jobs that may change files use every tool of Copilot, and ask nobody"
    )
    copilot_exec_timeout: float = option(
        600.0, "seconds that one job may take, whatever its deadline allows", above(0), free=True
    )
    copilot_exec_pass_variables: tuple[str, ...] = option(
        (), "names of further environment variables that the program is given", names_of_variables
    )
    copilot_exec_readable_paths: tuple[Path, ...] = option(
        (), "what the program may read beside its own files when it is isolated", free=True, path="lazy"
    )

    @property
    def shared(self) -> ProgramSettings:
        """What the settings of every program say."""
        return ProgramSettings(
            self.copilot_exec_timeout, self.copilot_exec_pass_variables, self.copilot_exec_readable_paths
        )
