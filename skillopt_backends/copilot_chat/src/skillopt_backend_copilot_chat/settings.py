"""What a configuration or the environment may say of the backend."""

from __future__ import annotations

from attrs import frozen
from skillopt_kernel.config.fields import at_least, option
from skillopt_lib_copilot.settings import CopilotSettings


@frozen
class CopilotChatSettings(CopilotSettings):
    """Settings of the backend, beside those of every Copilot."""

    copilot_chat_model: str = option(
        "", "the model, where no role names one; empty: Copilot's own default", role_env=("COPILOT_CHAT_{}_MODEL",)
    )
    copilot_chat_timeout: int = option(
        600, "seconds that one call may take, whatever its deadline allows", at_least(1), free=True
    )
    copilot_chat_send_effort: bool = option(
        True, "whether `model.reasoning_effort` is sent; false for a model or an endpoint that takes none"
    )
