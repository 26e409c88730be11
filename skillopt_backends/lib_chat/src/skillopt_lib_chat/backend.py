"""What the HTTP chat backends are beside their settings: one chat model a role, behind one endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import Finding

from skillopt_lib_chat.model import OpenAIChatModel
from skillopt_lib_chat.options import ChatOptions

CHAT = frozenset({"chat"})


class HttpChatBackend:
    """Implements `Backend`: every role as a chat model.

    options  role -> the options of its model
    """

    capabilities: Mapping[str, frozenset[str]] = {"optimizer": CHAT, "target": CHAT, "judge": CHAT}

    def __init__(self, name: str, options: Callable[[str], ChatOptions]) -> None:
        self._name, self._options = name, options
        self._opened: dict[str, OpenAIChatModel] = {}

    def open_chat(self, role: str) -> OpenAIChatModel:
        """The model in a role; asked twice, the same one. Opens no connection."""
        return self._opened.setdefault(role, OpenAIChatModel(self._options(role)))

    def open_agent(self, role: str) -> NoReturn:
        raise ConfigError(
            f"the backend {self._name!r} is a chat model and runs no agent's job; name an agent backend in "
            f"`model.{role}_backend`."
        )

    def endpoint(self, role: str) -> str:
        return self._options(role).address

    def check(self, role: str) -> list[Finding]:
        """Whether the endpoint answers, takes the key and has the model. Spends nothing."""
        return self.open_chat(role).check()

    def close(self) -> None:
        """Close the connections of every role."""
        for model in self._opened.values():
            model.close()
