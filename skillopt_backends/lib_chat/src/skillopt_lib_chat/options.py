"""What one chat model is told once: where it is, how it is asked, and how its settings are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal
from urllib.parse import urlsplit, urlunsplit

from attrs import field, frozen

NO_KEY = "dummy"
"""Sent in place of a key, since local servers ask for none and the client insists on one."""

Api = Literal["chat_completions", "responses"]
TokenLimitField = Literal["max_tokens", "max_completion_tokens"]

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
"""The reasoning efforts that there are, in order."""

_PATHS = ("/chat/completions", "/responses")


@frozen
class ChatOptions:
    """Options of one model in one role.

    api_key            the credential; empty: `NO_KEY` is sent, unless `needs_key`
    token              called before each request for a token that stands in for the key
    prefix, names      what the settings are called in `model`, for error messages: "openai_compatible_" before each
                       one's own name; `names` has those that are called otherwise
    sign_in            what to do when the token is rejected, as a sentence
    api                which protocol is spoken; of Responses the endpoint keeps nothing (`store: false`)
    azure_api_version  the model is an Azure deployment, asked with this version; empty: it is none
    lists_models       whether what `GET /models` lists are the names that may be asked for
    timeout_seconds    for one call, whatever its deadline allows
    max_tokens         the most that a reply may have; `None`: what the call says
    token_limit_field  what Chat Completions call that limit at this endpoint
    efforts            the reasoning efforts that the model takes; none: `reasoning_effort` is never sent
    send_temperature   whether it takes a `temperature`
    send_seed          whether it takes a `seed`
    structured_output  whether it takes a JSON schema for its reply
    extra_body         further fields of every request
    status_of_code     for providers that answer 200 with `base_resp.status_code` and no reply: code -> HTTP status
    """

    model: str
    base_url: str
    role: str
    prefix: str
    names: Mapping[str, str] = field(factory=dict)
    api_key: str = field(default="", repr=False)
    needs_key: bool = False
    token: Callable[[], str] | None = field(default=None, repr=False)
    sign_in: str = ""
    api: Api = "chat_completions"
    azure_api_version: str = ""
    lists_models: bool = True
    timeout_seconds: float = 300.0
    max_tokens: int | None = None
    temperature: float | None = None
    token_limit_field: TokenLimitField = "max_tokens"
    efforts: tuple[str, ...] = ()
    send_temperature: bool = True
    send_seed: bool = False
    structured_output: bool = False
    extra_body: Mapping[str, Any] = field(factory=dict)
    status_of_code: Mapping[int, int] = field(factory=dict)

    @property
    def address(self) -> str:
        """The base URL without a login that it may hold, for messages and as the endpoint's name."""
        return plain_address(self.base_url)

    def effort(self, asked: str | None) -> str | None:
        """The nearest effort that the model takes, the lesser of two as near; `None` when none is to be sent."""
        if not asked or not self.efforts:
            return None
        if asked not in EFFORTS:
            return asked
        wanted = EFFORTS.index(asked)
        return min(self.efforts, key=lambda level: (abs(EFFORTS.index(level) - wanted), EFFORTS.index(level)))

    def limit(self, asked: int | None) -> int | None:
        """The token limit of one reply: the call's own, never more than the setting; `None`: the endpoint's.

        No other limit stands between them: a reply that is cut off has the finish "length", and says so.
        """
        return min((limit for limit in (asked, self.max_tokens) if limit is not None), default=None)

    def setting(self, name: str) -> str:
        """How a user names a setting, in the configuration and in the environment."""
        key = self.names.get(name, f"{self.prefix}{name}")
        return f"`model.{key}` or the environment variable {key.upper()} (or, for this role alone, " + (
            f"`model.{self.role}_{key}` or {self.role.upper()}_{key.upper()})"
        )


def base_address(url: str) -> str:
    """A base URL as people write it, without blanks, a final slash or the path of a call that they copied with it."""
    text = url.strip().rstrip("/")
    return next((text.removesuffix(path) for path in _PATHS if text.endswith(path)), text)


def plain_address(url: str) -> str:
    """A base URL as it may be shown: without login and query, and as `base_address` has it."""
    parts = urlsplit(url.strip())
    return base_address(urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")))
