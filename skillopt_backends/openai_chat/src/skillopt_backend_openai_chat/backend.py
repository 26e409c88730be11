"""The backend: one chat model a role, at the OpenAI API or at an Azure resource."""

from __future__ import annotations

from collections.abc import Callable

from skillopt_kernel.interfaces import DriverContext
from skillopt_lib_chat.backend import HttpChatBackend
from skillopt_lib_chat.client import PUBLIC_API
from skillopt_lib_chat.options import ChatOptions, base_address

from skillopt_backend_openai_chat.facts import azure_api_version, facts_of
from skillopt_backend_openai_chat.settings import OpenAIChatSettings
from skillopt_backend_openai_chat.tokens import SIGN_IN, tokens_of


def make_backend(settings: OpenAIChatSettings, context: DriverContext) -> HttpChatBackend:
    """The backend of one role. `context.model` wins over the settings' model."""
    model, tokens = context.model or settings.model, tokens_of(settings)
    return HttpChatBackend("openai_chat", lambda role: options_of(settings, model, role, tokens))


def options_of(told: OpenAIChatSettings, model: str, role: str, tokens: Callable[[], str] | None) -> ChatOptions:
    """The options of the model in a role. `tokens`: what gives a token in place of a key."""
    facts = facts_of(told.openai_chat_base_model or model)
    where = told.endpoint or base_address(told.openai_base_url)
    at_azure = told.mode != "openai_compatible"
    # Azure's newer addresses name their version themselves and are asked like the OpenAI API.
    dated = at_azure and not where.endswith("/v1")
    api = facts.api if told.openai_chat_api == "auto" else told.openai_chat_api
    names = {"base_url": "openai_base_url", "api_key": "openai_api_key"}
    if told.endpoint:
        names = {"base_url": "azure_openai_endpoint", "api_key": "azure_openai_api_key"}
    return ChatOptions(
        model=model,
        base_url=f"{where}/openai" if dated else where,
        role=role,
        prefix="openai_chat_",
        names=names,
        api_key=(told.azure_openai_api_key if told.endpoint else told.openai_api_key).strip(),
        needs_key=told.mode == "api_key" or where.startswith(PUBLIC_API),
        token=tokens,
        sign_in=SIGN_IN.get(told.mode, ""),
        api=api,
        azure_api_version=(told.azure_openai_api_version or azure_api_version(api)) if dated else "",
        lists_models=not at_azure,
        timeout_seconds=told.openai_chat_timeout_seconds,
        max_tokens=told.openai_chat_max_tokens,
        temperature=told.openai_chat_temperature,
        token_limit_field=told.openai_chat_token_limit_field,
        efforts=facts.efforts,
        send_temperature=facts.temperature,
        send_seed=told.openai_chat_send_seed,
        structured_output=told.openai_chat_structured_output,
    )
