"""How long a skill may be: the limit, what the optimizer is told of it, and the warning about long skills.

Tokens are estimated, one for four bytes of what the target is shown, so that every backend counts alike.
"""

from __future__ import annotations

from skillopt_kernel.models.pricing import estimate_tokens
from skillopt_kernel.records import GateDecision
from skillopt_kernel.skill import shown

LONG = 2_000
"""Tokens above which a skill is warned of: it is paid for at every use."""


def tokens_of(skill: str) -> int:
    """The estimate for what the target is shown of a skill, guidance and notes included."""
    return estimate_tokens(shown(skill))


def room_left(skill: str, limit: int) -> str:
    """What the optimizer is told before it adds to `skill`; "" where there is no limit (0)."""
    if not limit:
        return ""
    tokens = tokens_of(skill)
    return (
        f"The skill may have about {limit:,} tokens, one for four bytes. It has {tokens:,}, so there is room "
        f"for {max(0, limit - tokens):,} more. A longer skill is refused untried: replace or shorten what is there."
    )


def refused_for_length(candidate: str, current: str, limit: int) -> GateDecision | None:
    """The rejection of a candidate that is longer than the limit, before anything is spent on it."""
    tokens = tokens_of(candidate)
    if not limit or tokens <= limit:
        return None
    sentence = f"the candidate has about {tokens:,} tokens, more than the {limit:,} of optimizer.max_skill_tokens"
    return GateDecision("reject", current, reason=sentence)


def long_skill(skill: str) -> str:
    """The warning about a long skill; "" for one that is not."""
    tokens = tokens_of(skill)
    if tokens <= LONG:
        return ""
    return (
        f"the skill has about {tokens:,} tokens, which every use of it costs (optimizer.max_skill_tokens sets a limit)"
    )
