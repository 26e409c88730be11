"""Student's interval against the published table, and by simulation."""

import math
from random import Random

import pytest
from skillopt_commands.student import student_interval


def test_students_interval_against_the_published_table():
    # Two values a, b: mean +- t sqrt((a - b)^2 / 4). The quantiles 0.975 and 0.995 as any table of t has them.
    for confidence, quantile in ((0.95, 12.7062), (0.99, 63.6567)):
        interval = student_interval([0.0, 2.0], confidence=confidence)
        assert (interval.estimate, interval.count) == (1.0, 2)
        assert interval.high - 1 == pytest.approx(quantile, rel=1e-5) == pytest.approx(1 - interval.low)
    for count, quantile in (
        (3, 4.3027),
        (4, 3.1824),
        (5, 2.7764),
        (6, 2.5706),
        (10, 2.2622),
        (31, 2.0423),
        (101, 1.984),
    ):
        values = [float(number) for number in range(count)]
        error = math.sqrt(sum((value - (count - 1) / 2) ** 2 for value in values) / (count - 1) / count)
        interval = student_interval(values)
        assert (interval.high - interval.estimate) / error == pytest.approx(quantile, abs=5e-5)


def test_students_interval_needs_two_values_and_covers_as_it_says():
    assert student_interval([]) is None
    assert student_interval([0.5]) is None
    assert student_interval([0.5, 0.5]).low == 0.5
    with pytest.raises(ValueError, match="confidence"):
        student_interval([0.1, 0.2], confidence=1.0)
    generator = Random(5)
    found = [student_interval([generator.gauss(0.7, 0.1) for _ in range(4)]) for _ in range(2000)]
    covered = sum(interval.low <= 0.7 <= interval.high for interval in found) / len(found)
    assert 0.935 < covered < 0.965
