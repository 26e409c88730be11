"""Intervals, and the e-process that says whether a win is more than luck. Standard library only.

The task is the unit: average repeated samples of one task before anything here sees them. Confidence is a
probability such as 0.95; every resampling is seeded, so that a report can be made again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random

from attrs import frozen

BETS = tuple(step / 20 for step in range(1, 20))
"""0.05, 0.10, ..., 0.95: the share of its capital that each bettor of an `EProcess` stakes on "better"."""


@frozen
class Interval:
    """An estimate with its interval, and over how many tasks."""

    estimate: float
    low: float
    high: float
    count: int


# Intervals -----------------------------------------------------------------------------------------------


def wilson_interval(successes: int, count: int, confidence: float = 0.95) -> Interval | None:
    """The score interval of a proportion, `None` for no trials.

    Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927): the p with
    |successes/count - p| <= z sqrt(p (1 - p) / count). Raises `ValueError` for impossible counts.
    """
    check_confidence(confidence)
    if not 0 <= successes <= count:
        raise ValueError(f"{successes} successes of {count} is impossible")
    if count == 0:
        return None
    from statistics import NormalDist

    share = successes / count
    z_squared = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    centre = (share + z_squared / (2 * count)) / (1 + z_squared / count)
    spread = math.sqrt(z_squared * (share * (1 - share) + z_squared / (4 * count)) / count) / (1 + z_squared / count)
    low = 0.0 if successes == 0 else max(0.0, centre - spread)
    high = 1.0 if successes == count else min(1.0, centre + spread)
    return Interval(share, low, high, count)


def bootstrap_interval(
    values: Sequence[float], *, seed: int = 0, confidence: float = 0.95, resamples: int = 2000
) -> Interval | None:
    """The percentile bootstrap interval of a mean: `values` holds one number a task.

    Efron and Tibshirani, "An Introduction to the Bootstrap" (1993), chapter 13. `None` for fewer than two
    tasks, of which no spread can be seen.
    """
    check_confidence(confidence)
    count = len(values)
    if count < 2:
        return None
    generator = Random(seed)
    means = sorted(math.fsum(generator.choices(values, k=count)) / count for _ in range(resamples))
    tail = (1 - confidence) / 2
    return Interval(math.fsum(values) / count, _quantile(means, tail), _quantile(means, 1 - tail), count)


def score_interval(scores: Sequence[float], *, seed: int = 0, confidence: float = 0.95) -> Interval | None:
    """The interval of a mean score: Wilson's where every score is 0 or 1, else the percentile bootstrap.

    `None` where the one of them has none.
    """
    if all(score in (0.0, 1.0) for score in scores):
        return wilson_interval(int(sum(scores)), len(scores), confidence)
    return bootstrap_interval(scores, seed=seed, confidence=confidence)


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The quantile between the two nearest order statistics, by linear interpolation."""
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def check_confidence(confidence: float) -> None:
    """Raise `ValueError` for what is no probability between 0 and 1."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence!r}")


# The e-process -------------------------------------------------------------------------------------------


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
