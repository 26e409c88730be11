"""Student's t interval, for the few scores of runs with several seeds. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence

from skillopt_kernel.statistics import Interval, check_confidence


def student_interval(values: Sequence[float], *, confidence: float = 0.95) -> Interval | None:
    """Student's t interval of the mean of a few independent values, such as the scores of runs with several seeds.

    mean +- t s / sqrt(n) with n - 1 degrees of freedom (Student, "The probable error of a mean", Biometrika 6, 1908).
    It supposes that the values scatter about normally; of so few the bootstrap would draw too narrow an interval.
    `None` for fewer than two values, of which no spread can be seen.
    """
    check_confidence(confidence)
    count = len(values)
    if count < 2:
        return None
    mean = math.fsum(values) / count
    error = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1) / count)
    half = _student_quantile(confidence, count - 1) * error
    return Interval(mean, mean - half, mean + half, count)


def _student_quantile(confidence: float, degrees: int) -> float:
    """The t with P(|T| <= t) = `confidence`, by bisection of the angle atan(t / sqrt(degrees))."""
    low, high = 0.0, math.pi / 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_within(middle, degrees) < confidence else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def _student_within(angle: float, degrees: int) -> float:
    """P(|T| <= sqrt(degrees) tan(angle)): Abramowitz and Stegun, 26.7.3 (odd degrees) and 26.7.4 (even)."""
    odd = degrees % 2
    cosine, term, total = math.cos(angle), 1.0, 0.0
    for power in range(odd, degrees - 1, 2):
        total += term * cosine**power
        term *= (power + 1) / (power + 2)
    return 2 / math.pi * (angle + math.sin(angle) * total) if odd else math.sin(angle) * total
