"""What a configuration or the environment may say of the backend."""

from __future__ import annotations

from attrs import field, frozen
from skillopt_kernel.config.fields import above
from skillopt_lib_chat.options import TokenLimitField
from skillopt_lib_chat.settings import seconds, web_address
from skillopt_lib_chat.settings import temperature as check_temperature


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

    base_url: str = field(default="https://api.openai.com/v1", validator=web_address, metadata={"free": True})
    api_key: str = field(default="", repr=False, metadata={"secret": True})
    model: str = "gpt-4o-mini"
    timeout_seconds: float = field(default=300.0, validator=seconds, metadata={"free": True})
    max_tokens: int | None = field(default=None, validator=above(0))
    temperature: float | None = field(default=None, validator=check_temperature)
    token_limit_field: TokenLimitField = "max_tokens"
    structured_output: bool = False
    send_seed: bool = False
    send_effort: bool = False
