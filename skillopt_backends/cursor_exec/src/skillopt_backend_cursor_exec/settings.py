"""What a configuration or the environment may say of the backend."""

from __future__ import annotations

from typing import Literal

from attrs import frozen
from skillopt_kernel.config.fields import option
from skillopt_lib_agent.settings import ProgramSettings


@frozen
class CursorExecSettings(ProgramSettings):
    """Settings of the backend, beside those of every program."""

    path: str = option("cursor-agent", "Cursor's agent: its name in PATH, or its path", free=True)
    sandbox: Literal["enabled", "disabled"] = option(
        "enabled", "Cursor's own sandbox around commands; jobs that change files need it"
    )
    model: str = option("composer-2.5", "the model, where `model.target` names none; empty: Cursor's own choice")
    api_key: str = option("", "key that Cursor's agent signs in with", secret=True, free=True, env="CURSOR_API_KEY")
