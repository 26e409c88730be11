"""What a plan is made of: ranges, and the calls of one stage at one place of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from attrs import frozen


@frozen
class Range:
    """The least, the expected and the most of something. 0 <= least <= expected <= most."""

    least: float
    expected: float
    most: float

    @classmethod
    def exactly(cls, value: float) -> Range:
        return cls(value, value, value)

    def __add__(self, other: Range) -> Range:
        return Range(self.least + other.least, self.expected + other.expected, self.most + other.most)

    def __mul__(self, factor: float) -> Range:
        return self.each(lambda value: value * factor)

    def times(self, other: Range) -> Range:
        """So many of each, where both numbers are ranges."""
        return Range(self.least * other.least, self.expected * other.expected, self.most * other.most)

    def each(self, function: Callable[[float], float]) -> Range:
        """The function, which must not fall, of each of the three."""
        return Range(function(self.least), function(self.expected), function(self.most))

    @classmethod
    def sum(cls, ranges: Iterable[Range]) -> Range:
        """The sum; of nothing it is nothing."""
        return sum(ranges, cls.exactly(0))


@frozen(kw_only=True)
class Part:
    """The calls of one stage at one place of the run; role and stage are named as in the ledger.

    split    whose tasks the target is asked; of other roles "train"
    step     the number of the step, from 1; `None` at an epoch's end, for the baseline and for the final test
    final    belongs to the final test
    at_once  how many of the calls are made at the same time
    """

    role: str
    stage: str
    calls: Range
    at_once: int = 1
    split: str = "train"
    step: int | None = None
    final: bool = False

    def rounds(self) -> Range:
        """How often the time of one call passes: a round is not shorter for being half empty."""
        return self.calls.each(lambda calls: calls / self.at_once if calls > self.at_once else min(calls, 1.0))


@frozen(kw_only=True)
class Amount:
    """What one part, stage or run asks and uses. usd is `None` where no price is known; seconds are wall time."""

    calls: Range
    prompt_tokens: Range
    completion_tokens: Range
    usd: Range | None
    seconds: Range

    @property
    def tokens(self) -> Range:
        return self.prompt_tokens + self.completion_tokens

    @classmethod
    def sum(cls, amounts: Sequence[Amount]) -> Amount:
        """The sum; its dollars are unknown as soon as those of any calls are."""
        dollars = [one.usd for one in amounts if one.calls.most]
        return cls(
            calls=Range.sum(one.calls for one in amounts),
            prompt_tokens=Range.sum(one.prompt_tokens for one in amounts),
            completion_tokens=Range.sum(one.completion_tokens for one in amounts),
            usd=None if None in dollars else Range.sum(one for one in dollars if one is not None),
            seconds=Range.sum(one.seconds for one in amounts),
        )
