"""The e-process against its promise, by simulation."""

import math
from random import Random

import pytest
from skillopt_analysis import evidence


def test_six_wins_of_one_task_are_not_enough_and_seven_are_at_twenty():
    process = evidence.EProcess([1.0] * 6)
    assert process.value == pytest.approx(17.4, abs=0.05)
    assert not process.reached(0.05)
    process.update(1.0)
    assert process.reached(0.05)
    assert process.count == 7


def test_a_draw_changes_nothing_and_a_loss_costs():
    process = evidence.EProcess()
    assert process.value == 1.0
    assert process.update(0.0) == 1.0
    assert process.update(-1.0) < 1.0
    assert process.update(1.0) < 1.0  # a win and a loss: (1 - lambda ** 2) each


@pytest.mark.parametrize("step", [0.1, 0.3, 1.0])
def test_o_g1_the_verdict_rests_on_the_pairs_that_differ_and_not_on_how_many_do_not(step):
    """Differences [m, 0, ..., 0], of which the mean equals the standard error for every m and n."""
    alone = evidence.EProcess([step])
    for size in (4, 7, 10, 33):
        draws = [0.0] * (size - 1)
        for place in range(size):
            process = evidence.EProcess([*draws[:place], step, *draws[place:]])
            assert process.value == alone.value == pytest.approx(1 + step / 2), "the mean bet is one half"
            assert not process.reached(0.05), "one pair is no proof, whatever its size"
            assert process.count == size


def test_o_g1_a_class_of_evidence_has_one_verdict():
    for wins, proof in ((6, False), (7, True)):
        verdicts = set()
        for size in (7, 10, 33):
            differences = [1.0] * wins + [0.0] * (size - wins)
            for seed in range(5):
                process = evidence.EProcess(Random(seed).sample(differences, size))
                verdicts.add((process.reached(0.05), round(process.value, 9)))
        assert len(verdicts) == 1
        assert verdicts.pop()[0] is proof


def test_what_the_rest_can_reach_bounds_every_future():
    generator = Random(2)
    process = evidence.EProcess([0.3, -1.0, 0.5])
    best = process.best_reachable(4)
    assert process.best_reachable(0) == pytest.approx(process.value)
    for _ in range(4):
        process.update(generator.uniform(-1, 1))
    assert process.value <= best
    assert evidence.EProcess([0.3, -1.0, 0.5, 1.0, 1.0]).value == pytest.approx(
        evidence.EProcess([0.3, -1.0, 0.5]).best_reachable(2)
    )


def test_the_capital_never_loses_its_sign_or_its_memory():
    assert evidence.EProcess([1.0] * 5000).value == math.inf
    assert 0.0 <= evidence.EProcess([1.0] * 5000 + [-1.0] * 5000).value < 1.0


@pytest.mark.parametrize("difference", [1.01, -1.5, math.nan])
def test_a_difference_outside_its_range_is_refused(difference):
    with pytest.raises(ValueError, match=r"lies in -1\.\.1"):
        evidence.EProcess().update(difference)


@pytest.mark.parametrize("spread", [1.0, 0.3])
def test_ville_bounds_how_often_luck_is_taken_for_a_win(spread):
    """Under the null, E reaches 1/alpha at any of 60 looks in at most a share alpha of runs."""
    generator = Random(11)
    alpha, runs, reached = 0.1, 600, 0
    for _ in range(runs):
        process = evidence.EProcess()
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
    process = evidence.EProcess(1.0 if generator.random() < 0.8 else -1.0 for _ in range(60))
    assert process.reached(0.05)


def test_no_worse_by_a_margin():
    assert evidence.margin_difference(-0.1, 0.1) == 0.0
    assert evidence.margin_difference(1.0, 0.1) == pytest.approx(1.0)
    assert evidence.EProcess(evidence.margin_difference(0.0, 0.25) for _ in range(40)).reached(0.05)
    with pytest.raises(ValueError, match="margin"):
        evidence.margin_difference(0.0, 1.0)
