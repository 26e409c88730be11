"""The answer in a reply: the one parser of answer tags for all benchmarks."""

from __future__ import annotations

import re
from typing import Literal

from attrs import frozen

Reason = Literal["", "unclosed", "unclosed_line", "no_tag", "empty"]

# ASCII rules for letter case: a Turkish dotless i or a long s is never part of a tag, and no index shifts.
_TAG = re.compile(r"<\s*(?P<close>/?)\s*answer\s*>", re.IGNORECASE | re.ASCII)
_REASONING = re.compile(r"<(?P<close>/?)(?P<name>think|thinking|reasoning)>", re.IGNORECASE | re.ASCII)
_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\"</?answer>\"|'</?answer>'", re.IGNORECASE | re.ASCII | re.DOTALL)


@frozen
class AnswerText:
    """What a reply answers.

    text    the answer, trimmed
    found   whether a complete pair of tags held it
    reason  why not: "unclosed" (an opening tag without its end; what follows it is taken), "unclosed_line" (the same,
            read by a rule that takes the last line), "no_tag" (the last line that is not blank is taken), "empty"
            (nothing but reasoning or blanks); "" when it was found
    """

    text: str
    found: bool
    reason: Reason = ""


def last_answer(reply: str) -> AnswerText:
    """The answer in `reply`: what the last complete pair of answer tags holds, in any case, over any lines.

    Tags inside reasoning blocks (`<think>`) are ignored, and so are those quoted in code or quotation marks when
    there are others. Without a complete pair, what follows an opening tag; without one, the last line.
    """
    spoken = without_reasoning(reply)
    for text in (_blanked(spoken), spoken):
        answer = _last_pair(text, spoken)
        if answer is not None:
            return AnswerText(answer, True)
    for text in (_blanked(spoken), spoken):
        tags = list(_TAG.finditer(text))
        if tags and not tags[-1]["close"]:
            return AnswerText(spoken[tags[-1].end() :].strip(), False, "unclosed")
    line = last_line(spoken)
    return AnswerText(line, False, "no_tag" if line else "empty")


def whole_reply(reply: str) -> AnswerText:
    """All of `reply` but its reasoning, for benchmarks that ask for nothing but the answer."""
    text = without_reasoning(reply).strip()
    return AnswerText(text, True, "" if text else "empty")


def last_line(reply: str) -> str:
    """The last line of `reply` that is not blank, trimmed; "" without one."""
    return next((line.strip() for line in reversed(reply.splitlines()) if line.strip()), "")


def without_reasoning(reply: str) -> str:
    """`reply` without its reasoning blocks, in one pass.

    A block that begins the reply and never ends takes all of it; one that begins later and never ends is a tag
    that was only mentioned. An end without a beginning closes a block that a chat template had opened.
    """
    kept: list[str] = []
    place, block = 0, None
    for tag in _REASONING.finditer(reply):
        if block is None and not tag["close"]:
            block = tag
        elif block is None:
            if reply[tag.end() :].strip():
                kept, place = [], tag.end()
        elif tag["close"] and tag["name"].lower() == block["name"].lower():
            kept.append(reply[place : block.start()])
            place, block = tag.end(), None
    if block is not None and not reply[: block.start()].strip():
        return ""
    return "".join(kept) + reply[place:]


def _last_pair(text: str, source: str) -> str | None:
    """What the last opening tag with an end directly after it holds; read from `source`, of the same length."""
    opened: int | None = None
    answer: str | None = None
    for tag in _TAG.finditer(text):
        if not tag["close"]:
            opened = tag.end()
        elif opened is not None:
            answer = source[opened : tag.start()].strip()
            opened = None
    return answer


def _blanked(text: str) -> str:
    """`text` with everything quoted replaced by spaces, so that places stay the same."""
    return _QUOTED.sub(lambda match: " " * len(match[0]), text)
