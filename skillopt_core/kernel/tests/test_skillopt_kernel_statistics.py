"""Intervals against published figures and by simulation."""

import math
from random import Random

import pytest
from skillopt_kernel import statistics


def test_wilson_against_published_figures():
    # Newcombe, "Two-sided confidence intervals for the single proportion" (1998), table I, method 3.
    for successes, count, low, high in [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)]:
        interval = statistics.wilson_interval(successes, count)
        assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)
    assert statistics.wilson_interval(29, 29).high == 1.0
    assert statistics.wilson_interval(0, 0) is None


@pytest.mark.parametrize("call", [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0), (1, 2, 0.0)])
def test_impossible_proportions_are_refused(call):
    with pytest.raises(ValueError, match=r"impossible|confidence"):
        statistics.wilson_interval(*call)


def test_the_bootstrap_is_seeded_and_near_the_normal_interval():
    generator = Random(1)
    values = [generator.random() for _ in range(200)]
    interval = statistics.bootstrap_interval(values, seed=3)
    assert interval == statistics.bootstrap_interval(values, seed=3)
    assert interval != statistics.bootstrap_interval(values, seed=4)
    half = 1.96 * math.sqrt(1 / 12 / 200)
    assert interval.low == pytest.approx(interval.estimate - half, abs=0.01)
    assert interval.high == pytest.approx(interval.estimate + half, abs=0.01)


def test_no_interval_from_fewer_than_two_tasks():
    assert statistics.bootstrap_interval([]) is None
    assert statistics.bootstrap_interval([0.5]) is None


def test_a_mean_of_zeros_and_ones_has_wilsons_interval_and_any_other_the_bootstraps() -> None:
    assert statistics.score_interval([1.0, 0.0, 1.0]) == statistics.wilson_interval(2, 3)
    assert statistics.score_interval([0.5, 0.0, 1.0], seed=3) == statistics.bootstrap_interval([0.5, 0.0, 1.0], seed=3)
    assert statistics.score_interval([]) is None and statistics.score_interval([0.5]) is None
