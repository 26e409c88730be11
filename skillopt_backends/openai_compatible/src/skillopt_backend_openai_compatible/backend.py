"""The backend: one chat model a role, behind one endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_lib_chat.model import OpenAIChatModel
from skillopt_lib_chat.options import EFFORTS, ChatOptions, base_address, plain_address

from skillopt_backend_openai_compatible.settings import OpenAICompatibleSettings

CHAT = frozenset({"chat"})
PREFIX = "openai_compatible_"


def make_backend(settings: OpenAICompatibleSettings, context: DriverContext) -> OpenAICompatibleBackend:
    """The backend of one role. `context.model` wins over the settings' model."""
    return OpenAICompatibleBackend(settings, context.model or settings.model)


class OpenAICompatibleBackend:
    """Implements `Backend`: every role as a chat model."""

    capabilities: Mapping[str, frozenset[str]] = {"optimizer": CHAT, "target": CHAT, "judge": CHAT}

    def __init__(self, settings: OpenAICompatibleSettings, model: str) -> None:
        self._settings, self._model = settings, model
        self._opened: dict[str, OpenAIChatModel] = {}

    def open_chat(self, role: str) -> OpenAIChatModel:
        """The model in a role; asked twice, the same one. Opens no connection."""
        return self._opened.setdefault(role, OpenAIChatModel(self._options(role)))

    def open_agent(self, role: str) -> NoReturn:
        raise ConfigError(
            "the backend 'openai_compatible' is a chat model and runs no agent's job; name an agent backend in "
            f"`model.{role}_backend`."
        )

    def endpoint(self, role: str) -> str:
        return plain_address(self._settings.base_url)

    def check(self, role: str) -> list[Finding]:
        return self.open_chat(role).check()

    def close(self) -> None:
        """Close the connections of every role."""
        for model in self._opened.values():
            model.close()

    def _options(self, role: str) -> ChatOptions:
        told = self._settings
        return ChatOptions(
            model=self._model,
            base_url=base_address(told.base_url),
            role=role,
            prefix=PREFIX,
            api_key=told.api_key.strip(),
            timeout_seconds=told.timeout_seconds,
            max_tokens=told.max_tokens,
            temperature=told.temperature,
            token_limit_field=told.token_limit_field,
            structured_output=told.structured_output,
            send_seed=told.send_seed,
            efforts=EFFORTS if told.send_effort else (),
        )
