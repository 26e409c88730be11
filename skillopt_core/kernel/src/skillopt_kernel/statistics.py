"""Intervals. Standard library only.

The task is the unit: average repeated samples of one task before anything here sees them. Confidence is a
probability such as 0.95; every resampling is seeded, so that a report can be made again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from random import Random

from attrs import frozen


@frozen
class Interval:
    """An estimate with its interval, and over how many tasks."""

    estimate: float
    low: float
    high: float
    count: int


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
