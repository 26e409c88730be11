"""What one chat model is told once: where it is, how it is asked, and how its settings are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from attrs import field, frozen

NO_KEY = "dummy"
"""Sent in place of a key, since local servers ask for none and the client insists on one."""


@frozen
class ChatOptions:
    """Options of one model in one role.

    api_key            the credential; empty: `NO_KEY` is sent
    prefix             what the settings are called in `model`, e.g. "openai_compatible_", for error messages
    timeout_seconds    for one call, whatever its deadline allows
    max_tokens         the most that a reply may have; `None`: what the call says
    token_limit_field  "max_tokens" or "max_completion_tokens", as the endpoint wants it
    send_effort        whether the endpoint knows `reasoning_effort`
    send_seed          whether it knows `seed`
    structured_output  whether it knows `response_format` with a JSON schema
    extra_body         further fields of every request
    """

    model: str
    base_url: str
    role: str
    prefix: str
    api_key: str = field(default="", repr=False)
    timeout_seconds: float = 300.0
    max_tokens: int | None = None
    temperature: float | None = None
    token_limit_field: str = "max_tokens"
    send_effort: bool = False
    send_seed: bool = False
    structured_output: bool = False
    extra_body: Mapping[str, Any] = field(factory=dict)

    @property
    def address(self) -> str:
        """The base URL without a login that it may hold, for messages and as the endpoint's name."""
        return plain_address(self.base_url)

    def setting(self, name: str) -> str:
        """How a user names a setting, in the configuration and in the environment."""
        key = f"{self.prefix}{name}"
        return f"`model.{key}` or the environment variable {key.upper()} (or, for this role alone, " + (
            f"`model.{self.role}_{key}` or {self.role.upper()}_{key.upper()})"
        )


def plain_address(url: str) -> str:
    """A URL without login, query, final slash or the `/chat/completions` that people copy from documentation."""
    parts = urlsplit(url.strip())
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], path, "", ""))
