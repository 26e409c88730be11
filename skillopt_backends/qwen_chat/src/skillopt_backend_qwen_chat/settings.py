"""What a configuration or the environment may say of the backend."""

from __future__ import annotations

from typing import Any, Literal

import attrs
from attrs import field, frozen
from skillopt_kernel.config.fields import above
from skillopt_lib_chat.settings import seconds, temperature_or_off, web_address

Thinking = Literal["server_default", "enabled", "disabled"]

_SPELLINGS: dict[Thinking, str] = {
    "server_default": "server_default default unset auto none null",
    "enabled": "enabled true yes on 1",
    "disabled": "disabled false no off 0",
}


def thinking_of(value: bool | str) -> Thinking:
    """The policy that a value means, however it is spelt; blank is the server's default. Raises `ValueError`."""
    plain = str(value).strip().lower()
    for policy, spellings in _SPELLINGS.items():
        if not plain or plain in spellings.split():
            return policy
    raise ValueError(f"expected one of {', '.join(_SPELLINGS)}, got {value!r}")


def _thinking(_: Any, attribute: attrs.Attribute[Any], value: bool | str) -> None:
    thinking_of(value)


@frozen
class QwenChatSettings:
    """Settings of the backend.

    base_url         where the server is, up to and with its version: `/chat/completions` is added
    api_key          the server's key; empty for servers that ask for none
    model            the model's name, where `model.target` and its like name none
    temperature      the sampling temperature; off: the server's own
    timeout_seconds  seconds that one call may take, whatever its deadline allows
    max_tokens       the most tokens that a reply may have; null: what each call asks for
    thinking_mode    enabled or disabled (vLLM, SGLang and their like take them), or server_default: nothing is sent
    enable_thinking  the older switch: true is thinking_mode enabled, false is server_default
    use_max_completion_tokens  whether the server calls the limit of a reply max_completion_tokens
    structured_output  whether the server takes a JSON schema in `response_format`
    send_seed        whether the server takes a `seed`
    """

    base_url: str = field(default="http://localhost:8000/v1", validator=web_address, metadata={"free": True})
    api_key: str = field(default="", repr=False, metadata={"secret": True})
    model: str = "Qwen/Qwen3.5-4B"
    temperature: float | str = field(default=0.7, validator=temperature_or_off)
    timeout_seconds: float = field(default=300.0, validator=seconds, metadata={"free": True})
    max_tokens: int | None = field(default=None, validator=above(0))
    thinking_mode: bool | str = field(default="", validator=_thinking)
    enable_thinking: bool | None = None
    use_max_completion_tokens: bool = False
    structured_output: bool = False
    send_seed: bool = False

    def __attrs_post_init__(self) -> None:
        if self.enable_thinking is None or not self._named:
            return
        agreeing = ("enabled",) if self.enable_thinking else ("disabled", "server_default")
        if self.thinking not in agreeing:
            raise ValueError(
                f"qwen_chat_thinking_mode is {self.thinking} and qwen_chat_enable_thinking "
                f"{str(self.enable_thinking).lower()}, which contradict each other; delete qwen_chat_enable_thinking"
            )

    @property
    def thinking(self) -> Thinking:
        """The policy in force."""
        return "enabled" if self.enable_thinking and not self._named else thinking_of(self.thinking_mode)

    @property
    def _named(self) -> bool:
        return str(self.thinking_mode).strip() != ""
