"""The backend: one chat model a role, behind one endpoint."""

from __future__ import annotations

from skillopt_kernel.interfaces import DriverContext
from skillopt_lib_chat.backend import HttpChatBackend
from skillopt_lib_chat.options import EFFORTS, ChatOptions, base_address

from skillopt_backend_openai_compatible.settings import OpenAICompatibleSettings


def make_backend(settings: OpenAICompatibleSettings, context: DriverContext) -> HttpChatBackend:
    """The backend of one role. `context.model` wins over the settings' model."""
    model = context.model or settings.model
    return HttpChatBackend("openai_compatible", lambda role: options_of(settings, model, role))


def options_of(told: OpenAICompatibleSettings, model: str, role: str) -> ChatOptions:
    """The options of the model in a role."""
    return ChatOptions(
        model=model,
        base_url=base_address(told.base_url),
        role=role,
        prefix="openai_compatible_",
        api_key=told.api_key.strip(),
        timeout_seconds=told.timeout_seconds,
        max_tokens=told.max_tokens,
        temperature=told.temperature,
        token_limit_field=told.token_limit_field,
        structured_output=told.structured_output,
        send_seed=told.send_seed,
        efforts=EFFORTS if told.send_effort else (),
    )
