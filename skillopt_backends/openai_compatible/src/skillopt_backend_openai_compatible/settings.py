"""What a configuration or the environment may say of the backend."""

from __future__ import annotations

from typing import Any, Literal
from urllib.parse import urlsplit

import attrs
from attrs import field, frozen


def _web_address(_: object, attribute: attrs.Attribute[Any], value: str) -> None:
    try:
        parts = urlsplit(value.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not close
        usable = False
    if not usable:
        raise ValueError(f"must be an address like https://host/v1 or http://127.0.0.1:8000/v1, not {value!r}")


def _positive(_: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not 0 < value < float("inf"):
        raise ValueError(f"must be greater than 0, not {value!r}")


def _temperature(_: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not 0 <= value <= 2:
        raise ValueError(f"must be from 0 to 2, not {value!r}")


@frozen
class OpenAICompatibleSettings:
    """Settings of the backend.

    base_url           where the endpoint is, up to and with its version: `/chat/completions` is added
    api_key            the endpoint's key; empty for servers that ask for none
    model              the model's name, where `model.optimizer` and its like name none
    timeout_seconds    seconds that one call may take, whatever its deadline allows
    max_tokens         the most tokens that a reply may have; null: what each call asks for
    temperature        the sampling temperature; null: the endpoint's own
    token_limit_field  how the endpoint calls the limit of a reply
    structured_output  whether the endpoint takes a JSON schema in `response_format`
    send_seed          whether the endpoint takes a `seed`, so that a target that can repeats itself
    send_effort        whether the endpoint takes `reasoning_effort`; without it `model.reasoning_effort` is not sent
    """

    base_url: str = field(default="https://api.openai.com/v1", validator=_web_address, metadata={"free": True})
    api_key: str = field(default="", repr=False, metadata={"secret": True})
    model: str = "gpt-4o-mini"
    timeout_seconds: float = field(default=300.0, validator=_positive, metadata={"free": True})
    max_tokens: int | None = field(default=None, validator=_positive)
    temperature: float | None = field(default=None, validator=_temperature)
    token_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    structured_output: bool = False
    send_seed: bool = False
    send_effort: bool = False
