"""Pairing, and what is too little for it."""

import pytest
from skillopt_analysis.paired import paired_bootstrap


def test_pairing_takes_difficulty_out_of_a_difference():
    first = {f"t{number}": float(number % 2) / 2 for number in range(40)}
    second = {task: value + 0.1 for task, value in first.items()} | {"only here": 1.0}
    interval = paired_bootstrap(first, second)
    assert interval.count == 40
    assert interval.low == pytest.approx(0.1) == pytest.approx(interval.high)


def test_no_interval_from_fewer_than_two_pairs():
    assert paired_bootstrap({"a": 1.0}, {"a": 0.0}) is None
    assert paired_bootstrap({"a": 1.0, "b": 1.0}, {"a": 0.0, "c": 1.0}) is None
