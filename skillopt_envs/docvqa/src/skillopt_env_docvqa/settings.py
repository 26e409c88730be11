"""The keys of `env` that this environment owns."""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import attrs
from attrs import frozen
from skillopt_kernel.config.fields import at_least, option

SMALLEST_LIMIT = 10_000
"""Bytes below which no page could be read any more."""


def _no_limit_or_enough(_: Any, attribute: attrs.Attribute[int], value: int) -> None:
    if value and value < SMALLEST_LIMIT:
        raise ValueError(f"must be at least {SMALLEST_LIMIT:,} bytes, or 0 for no limit, not {value}")


@frozen
class DocVQASettings:
    """How a question and its page are put to the target.

    The limits of a page's size are those of the strictest of the common providers: 8,000 pixels a side, and 5 MiB in
    base64, which is four thirds of the bytes.
    """

    max_turns: int = option(1, "turns of an attempt; from the second on the target checks its answer", at_least(1))
    max_completion_tokens: int = option(16384, "token limit of each reply", at_least(1))
    image_detail: Literal["auto", "low", "high"] = option(
        "auto", "how closely the model looks at a page, as the OpenAI protocol names it; auto is not sent"
    )
    image_max_side: int = option(8000, "pixels of a page's longer side; 0: no limit", at_least(0))
    image_max_bytes: int = option(3_900_000, "bytes of a page's file; 0: no limit", _no_limit_or_enough)
    image_too_large: Literal["shrink", "refuse"] = option(
        "shrink", "a page beyond a limit is made smaller and the analysts are told, or the run is refused"
    )
    # A page is known by its content, wherever it lies.
    image_root: Path | None = option(None, "folder of the page images; empty: beside the data", free=True)
