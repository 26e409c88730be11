"""The e-process that says whether a win is more than luck. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

BETS = tuple(step / 20 for step in range(1, 20))
"""0.05, 0.10, ..., 0.95: the share of its capital that each bettor of an `EProcess` stakes on "better"."""


class EProcess:
    """Evidence against "no task got better", as capital that could not be expected to grow if that were so.

    E = mean over k of prod over pairs (1 + lambda_k d), with lambda_k in `BETS` and d = candidate minus current
    of one pair of fresh samples, in -1..1. Where every d has mean at most 0 given the past, each product is a
    non-negative supermartingale, so is their mean, and P(E ever >= 1/alpha) <= alpha (Ville 1939), however often
    one looks. A draw (d = 0) multiplies by one: E rests on the pairs that differ, never on how many did not. See
    Ramdas, Grünwald, Vovk and Shafer, "Game-theoretic statistics and safe anytime-valid inference", Statistical
    Science (2023); for paired comparison of agents PACE, arXiv 2606.08106.
    """

    def __init__(self, differences: Iterable[float] = ()) -> None:
        self._logs = [0.0] * len(BETS)
        self.count = 0
        for difference in differences:
            self.update(difference)

    def update(self, difference: float) -> float:
        """Take in one pair's difference and return the new value. Raises `ValueError` outside -1..1."""
        if not -1.0 <= difference <= 1.0:
            raise ValueError(f"a difference of scores lies in -1..1, not {difference!r}")
        self._logs = [log + math.log1p(bet * difference) for log, bet in zip(self._logs, BETS, strict=True)]
        self.count += 1
        return self.value

    @property
    def value(self) -> float:
        """E now; 1.0 before the first pair, `inf` beyond the largest float."""
        return _mean_of_exponentials(self._logs)

    def reached(self, alpha: float) -> bool:
        """Whether E is at least 1/alpha: the null is refused at level `alpha`."""
        if not 0 < alpha < 1:
            raise ValueError(f"alpha must lie between 0 and 1, not {alpha!r}")
        return self.value >= 1 / alpha

    def best_reachable(self, remaining: int) -> float:
        """E after `remaining` further pairs if every one of them were a full win (d = 1)."""
        return _mean_of_exponentials(
            [log + remaining * math.log1p(bet) for log, bet in zip(self._logs, BETS, strict=True)]
        )


def margin_difference(difference: float, margin: float) -> float:
    """`(d + margin) / (1 + margin)`: in an `EProcess` it tests the null "mean difference <= -margin"."""
    if not 0 < margin < 1:
        raise ValueError(f"the margin must lie between 0 and 1, not {margin!r}")
    return (difference + margin) / (1 + margin)


def _mean_of_exponentials(logs: Sequence[float]) -> float:
    """The mean of exp(log) over `logs`, scaled so that only a mean beyond the largest float is `inf`."""
    largest = max(logs)
    scaled = math.fsum(math.exp(log - largest) for log in logs) / len(logs)
    try:
        return scaled * math.exp(largest)
    except OverflowError:
        return math.inf
