"""The backend: one chat model a role, at one platform of MiniMax."""

from __future__ import annotations

from skillopt_kernel.interfaces import DriverContext
from skillopt_lib_chat.backend import HttpChatBackend
from skillopt_lib_chat.options import ChatOptions
from skillopt_lib_chat.settings import sent_temperature

from skillopt_backend_minimax_chat.settings import MiniMaxChatSettings

ALWAYS_THINKING = "minimax-m2"
"""How the names of models begin that take no "disabled"."""

STATUS_OF_CODE = {
    1001: 408,  # took too long
    1002: 429,  # too many requests
    1004: 401,  # not signed in
    1008: 402,  # no credit left
    1026: 451,  # the input was filtered
    1027: 451,  # the output was filtered
    1039: 429,  # too many tokens in a minute
    1041: 429,  # too many connections
    2013: 400,  # invalid parameters
    2049: 401,  # invalid key
    2056: 402,  # the plan is used up
}
"""The platform's codes in an answer of status 200 -> the HTTP status that means the same; others pass."""


def make_backend(settings: MiniMaxChatSettings, context: DriverContext) -> HttpChatBackend:
    """The backend of one role. `context.model` wins over the settings' model."""
    model = context.model or settings.model
    return HttpChatBackend("minimax_chat", lambda role: options_of(settings, model, role))


def options_of(told: MiniMaxChatSettings, model: str, role: str) -> ChatOptions:
    """The options of the model in a role. No reasoning effort is sent: MiniMax knows none."""
    thinks = told.enable_thinking or model.lower().startswith(ALWAYS_THINKING)
    return ChatOptions(
        model=model,
        base_url=told.address,
        role=role,
        prefix="minimax_",
        api_key=told.api_key.strip(),
        needs_key=not told.base_url.strip(),
        timeout_seconds=told.timeout_seconds,
        max_tokens=told.max_tokens,
        temperature=sent_temperature(told.temperature),
        token_limit_field="max_completion_tokens",
        # Split: what the model thinks comes in a field of its own, and not inside the answer.
        extra_body={"thinking": {"type": "adaptive" if thinks else "disabled"}, "reasoning_split": True},
        status_of_code=STATUS_OF_CODE,
    )
