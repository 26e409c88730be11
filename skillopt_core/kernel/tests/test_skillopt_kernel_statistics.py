"""Intervals against published figures and by simulation; the e-process against its promise."""

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


def test_six_wins_of_one_task_are_not_enough_and_seven_are_at_twenty():
    process = statistics.EProcess([1.0] * 6)
    assert process.value == pytest.approx(17.4, abs=0.05)
    assert not process.reached(0.05)
    process.update(1.0)
    assert process.reached(0.05)
    assert process.count == 7


def test_a_draw_changes_nothing_and_a_loss_costs():
    process = statistics.EProcess()
    assert process.value == 1.0
    assert process.update(0.0) == 1.0
    assert process.update(-1.0) < 1.0
    assert process.update(1.0) < 1.0  # a win and a loss: (1 - lambda ** 2) each


@pytest.mark.parametrize("step", [0.1, 0.3, 1.0])
def test_o_g1_the_verdict_rests_on_the_pairs_that_differ_and_not_on_how_many_do_not(step):
    """Differences [m, 0, ..., 0], of which the mean equals the standard error for every m and n."""
    alone = statistics.EProcess([step])
    for size in (4, 7, 10, 33):
        draws = [0.0] * (size - 1)
        for place in range(size):
            process = statistics.EProcess([*draws[:place], step, *draws[place:]])
            assert process.value == alone.value == pytest.approx(1 + step / 2), "the mean bet is one half"
            assert not process.reached(0.05), "one pair is no proof, whatever its size"
            assert process.count == size


def test_o_g1_a_class_of_evidence_has_one_verdict():
    for wins, proof in ((6, False), (7, True)):
        verdicts = set()
        for size in (7, 10, 33):
            differences = [1.0] * wins + [0.0] * (size - wins)
            for seed in range(5):
                process = statistics.EProcess(Random(seed).sample(differences, size))
                verdicts.add((process.reached(0.05), round(process.value, 9)))
        assert len(verdicts) == 1
        assert verdicts.pop()[0] is proof


def test_what_the_rest_can_reach_bounds_every_future():
    generator = Random(2)
    process = statistics.EProcess([0.3, -1.0, 0.5])
    best = process.best_reachable(4)
    assert process.best_reachable(0) == pytest.approx(process.value)
    for _ in range(4):
        process.update(generator.uniform(-1, 1))
    assert process.value <= best
    assert statistics.EProcess([0.3, -1.0, 0.5, 1.0, 1.0]).value == pytest.approx(
        statistics.EProcess([0.3, -1.0, 0.5]).best_reachable(2)
    )


def test_the_capital_never_loses_its_sign_or_its_memory():
    assert statistics.EProcess([1.0] * 5000).value == math.inf
    assert 0.0 <= statistics.EProcess([1.0] * 5000 + [-1.0] * 5000).value < 1.0


@pytest.mark.parametrize("difference", [1.01, -1.5, math.nan])
def test_a_difference_outside_its_range_is_refused(difference):
    with pytest.raises(ValueError, match=r"lies in -1\.\.1"):
        statistics.EProcess().update(difference)


@pytest.mark.parametrize("spread", [1.0, 0.3])
def test_ville_bounds_how_often_luck_is_taken_for_a_win(spread):
    """Under the null, E reaches 1/alpha at any of 60 looks in at most a share alpha of runs."""
    generator = Random(11)
    alpha, runs, reached = 0.1, 600, 0
    for _ in range(runs):
        process = statistics.EProcess()
        for _ in range(60):
            process.update(spread * (1 if generator.random() < 0.5 else -1))
            if process.reached(alpha):
                reached += 1
                break
    deviation = math.sqrt(alpha * (1 - alpha) / runs)
    assert reached / runs <= alpha + 2 * deviation
    assert spread < 1 or reached > 0  # it does look: a bound that never fires would pass trivially


def test_a_real_win_is_found():
    generator = Random(4)
    process = statistics.EProcess(1.0 if generator.random() < 0.8 else -1.0 for _ in range(60))
    assert process.reached(0.05)


def test_no_worse_by_a_margin():
    assert statistics.margin_difference(-0.1, 0.1) == 0.0
    assert statistics.margin_difference(1.0, 0.1) == pytest.approx(1.0)
    assert statistics.EProcess(statistics.margin_difference(0.0, 0.25) for _ in range(40)).reached(0.05)
    with pytest.raises(ValueError, match="margin"):
        statistics.margin_difference(0.0, 1.0)


def test_a_mean_of_zeros_and_ones_has_wilsons_interval_and_any_other_the_bootstraps() -> None:
    assert statistics.score_interval([1.0, 0.0, 1.0]) == statistics.wilson_interval(2, 3)
    assert statistics.score_interval([0.5, 0.0, 1.0], seed=3) == statistics.bootstrap_interval([0.5, 0.0, 1.0], seed=3)
    assert statistics.score_interval([]) is None and statistics.score_interval([0.5]) is None
