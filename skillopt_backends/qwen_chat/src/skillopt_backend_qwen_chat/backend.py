"""The backend: one chat model a role, behind one server of Qwen models."""

from __future__ import annotations

from typing import Any

from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_lib_chat.backend import HttpChatBackend
from skillopt_lib_chat.options import ChatOptions, base_address
from skillopt_lib_chat.settings import sent_temperature

from skillopt_backend_qwen_chat.settings import QwenChatSettings


def make_backend(settings: QwenChatSettings, context: DriverContext) -> QwenChatBackend:
    """The backend of one role. `context.model` wins over the settings' model."""
    return QwenChatBackend(settings, context.model or settings.model)


class QwenChatBackend(HttpChatBackend):
    """Adds to the checks whether anybody says that the model is to think."""

    def __init__(self, settings: QwenChatSettings, model: str) -> None:
        super().__init__("qwen_chat", lambda role: options_of(settings, model, role))
        self._settings = settings

    def check(self, role: str) -> list[Finding]:
        findings = super().check(role)
        if self._settings.thinking == "server_default":
            warning = "whether the model thinks is the server's to say; set qwen_chat_thinking_mode to know it"
            findings.append(("warning", warning))
        return findings


def options_of(told: QwenChatSettings, model: str, role: str) -> ChatOptions:
    """The options of the model in a role. No reasoning effort is sent: Qwen models know none."""
    extra: dict[str, Any] = {}
    if told.thinking != "server_default":
        extra["chat_template_kwargs"] = {"enable_thinking": told.thinking == "enabled"}
    return ChatOptions(
        model=model,
        base_url=base_address(told.base_url),
        role=role,
        prefix="qwen_chat_",
        api_key=told.api_key.strip(),
        timeout_seconds=told.timeout_seconds,
        max_tokens=told.max_tokens,
        temperature=sent_temperature(told.temperature),
        token_limit_field="max_completion_tokens" if told.use_max_completion_tokens else "max_tokens",
        send_seed=told.send_seed,
        structured_output=told.structured_output,
        extra_body=extra,
    )
