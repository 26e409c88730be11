"""What a configuration or the environment may say of the backend."""

from __future__ import annotations

from typing import Any

import attrs
from attrs import field, frozen
from skillopt_kernel.config.fields import above
from skillopt_lib_chat.options import base_address
from skillopt_lib_chat.settings import optional_web_address, seconds, temperature_or_off

REGIONS = {"global_en": "https://api.minimax.io/v1", "cn_zh": "https://api.minimaxi.com/v1"}
"""Region -> where its API is."""


def _plain(region: str) -> str:
    return region.strip().lower().replace("-", "_")


def _region(_: Any, attribute: attrs.Attribute[Any], value: str) -> None:
    if value.strip() and _plain(value) not in REGIONS:
        raise ValueError(f"expected one of {', '.join(REGIONS)}, got {value!r}")


@frozen
class MiniMaxChatSettings:
    """Settings of the backend.

    region           global_en or cn_zh: which of the two platforms the key is from
    base_url         where the API is; empty: as the region says
    api_key          the platform's key
    model            the model's name, where `model.target` and its like name none
    temperature      the sampling temperature; off: the API's own
    timeout_seconds  seconds that one call may take, whatever its deadline allows
    max_tokens       the most tokens that a reply may have; null: what each call asks for
    enable_thinking  whether the model thinks before it answers; the models MiniMax-M2 and M2.x always do
    """

    region: str = field(default="global_en", validator=_region, metadata={"free": True})
    base_url: str = field(default="", validator=optional_web_address, metadata={"free": True})
    api_key: str = field(default="", repr=False, metadata={"secret": True})
    model: str = "MiniMax-M3"
    temperature: float | str = field(default=0.7, validator=temperature_or_off)
    timeout_seconds: float = field(default=300.0, validator=seconds, metadata={"free": True})
    max_tokens: int | None = field(default=None, validator=above(0))
    enable_thinking: bool = False

    @property
    def address(self) -> str:
        """The base URL: the one that is set, else the region's."""
        return base_address(self.base_url) or REGIONS[_plain(self.region) or "global_en"]
