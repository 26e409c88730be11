"""Replies that are not in the form asked for, as models give them."""

from __future__ import annotations

import json

from skillopt_kernel.models.requests import ChatReply

from skillopt_backend_simulated.draws import Draws

WAYS = ("prose", "cut", "single quotes", "fenced")


def malformed(text: str, draws: Draws) -> ChatReply:
    """The reply spoilt in one of `WAYS`. A parser may still read the fenced one: it is whole inside the fence."""
    way = draws.pick(WAYS, "way")
    if way == "prose":
        return ChatReply("Sorry, I can only share some general thoughts: reading the passages closely would help.")
    if way == "cut":
        return ChatReply(text[: len(text) // 2], finish="length")
    if way == "single quotes":
        return ChatReply(_as_python(text))
    return ChatReply(f"Here is what I found.\n\n```json\n{text}\n```\n\nI hope this helps!")


def _as_python(text: str) -> str:
    """JSON as Python prints it, with single quotes; other text without its tags."""
    try:
        return repr(json.loads(text))
    except ValueError:
        return text.replace("<answer>", "").replace("</answer>", "")
