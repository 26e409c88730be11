"""Checks that the settings classes of several chat backends share, beside those of `skillopt_kernel.config.fields`."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import attrs
from skillopt_kernel.config.fields import above, between

seconds = above(0, 86_400)
"""A check for the time of a call."""

temperature = between(0, 2)
"""A check for sampling temperatures."""


_UNSENT = ("off", "none", "null")


def temperature_or_off(settings: Any, attribute: attrs.Attribute[Any], value: float | str) -> None:
    """A check for temperatures that have a default and need not be sent: a number, or "off"."""
    if not isinstance(value, str):
        temperature(settings, attribute, value)
    elif value.strip().lower() not in _UNSENT:
        raise ValueError(f"expected a number from 0 to 2, or off for the endpoint's own, got {value!r}")


def sent_temperature(value: float | str) -> float | None:
    """Such a temperature as a number; `None`: none is sent."""
    return None if isinstance(value, str) else value


def web_address(_: Any, attribute: attrs.Attribute[Any], value: str) -> None:
    """A check for base URLs."""
    try:
        parts = urlsplit(value.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, brackets that do not close
        usable = False
    if not usable:
        raise ValueError(f"must be an address like https://host/v1 or http://127.0.0.1:8000/v1, not {value!r}")
    if parts.query or parts.fragment:  # not shown: some put a key there
        raise ValueError("must be an address like https://host/v1 alone: leave out what begins with ? or #")


def optional_web_address(settings: Any, attribute: attrs.Attribute[Any], value: str) -> None:
    """A check for base URLs that need not be set."""
    if value.strip():
        web_address(settings, attribute, value)
