"""Draws are hashes of names: the same for everybody who asks."""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor

from skillopt_backend_simulated.draws import Draws, Ordinals

DRAWS = Draws((7,))


def test_same_names_same_number() -> None:
    assert DRAWS.under("a").unit("b") == Draws((7, "a")).unit("b") == DRAWS.unit("a", "b")
    assert len({DRAWS.unit("a"), DRAWS.unit("b"), Draws((8,)).unit("a"), DRAWS.unit("a", 1)}) == 4


def test_names_do_not_run_together() -> None:
    assert DRAWS.unit("ab", "c") != DRAWS.unit("a", "bc")


def test_numbers_are_uniform() -> None:
    numbers = sorted(DRAWS.unit(index) for index in range(4000))
    assert numbers[0] >= 0.0 and numbers[-1] < 1.0
    assert max(abs(number - index / 4000) for index, number in enumerate(numbers)) < 0.03


def test_certain_and_impossible() -> None:
    assert all(DRAWS.happens(1.0, index) for index in range(500))
    assert not any(DRAWS.happens(0.0, index) for index in range(500))


def test_pick_reaches_every_choice() -> None:
    assert {DRAWS.pick("abc", index) for index in range(100)} == set("abc")


def test_lognormal_has_the_mean_asked_for() -> None:
    numbers = [DRAWS.lognormal(2.0, 0.5, index) for index in range(5000)]
    assert abs(statistics.fmean(numbers) - 2.0) < 0.06
    assert min(numbers) > 0.0
    assert DRAWS.lognormal(0.0, 0.5, "none") == 0.0
    assert DRAWS.lognormal(2.0, 0.0, "no spread") == 2.0


def test_ordinals_count_each_key_once() -> None:
    ordinals = Ordinals()
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: ordinals.next("a"), range(400)))
    assert sorted(numbers) == list(range(400))
    assert ordinals.next("b") == 0
