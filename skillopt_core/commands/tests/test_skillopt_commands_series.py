"""Several seeds: which are meant, and what their runs say together. Whole series are in `tests/test_seeds.py`."""

import json
from types import SimpleNamespace

import pytest
from skillopt_commands.series import SeedRun, read_seeds, summarise_seeds
from skillopt_kernel.errors import SkillOptError

CONFIG = SimpleNamespace(env=SimpleNamespace(split_mode="ratio", split_seed=7))


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (3, (42, 43, 44)), ("3", (42, 43, 44)), (" 1 ", (42,)), ("1,5,9", (1, 5, 9)), ("9, 1", (9, 1)),
        ("7,", (7,)), ("0,-2", (0, -2)), ([5], (5,)), ((8, 3), (8, 3)),
    ],
)  # fmt: skip
def test_a_number_counts_from_the_configured_seed_and_a_list_names_them(given, meant):
    assert read_seeds(given, 42) == meant


@pytest.mark.parametrize(
    "given", [0, "0", -1, "-3", "", "x", "1.5", "1,,2", ",", "1,x", "1e3", "²", [], [1.5], [True], True, "1;2"]
)
def test_what_names_no_seeds_is_refused_in_a_sentence(given):
    with pytest.raises(SkillOptError, match=r"^--seeds is .*: give the number of runs, 1 or more, as in 3"):
        read_seeds(given, 42)


def test_a_seed_named_twice_is_refused():
    with pytest.raises(SkillOptError, match="names 1, 5 more than once"):
        read_seeds("5,1,1,2,5", 42)


def run_of(tmp_path, seed, selection, test, *, gain=None, data="d", status="finished"):
    folder = tmp_path / f"seed-{seed:04d}"
    folder.mkdir()
    (folder / "fingerprint.json").write_text(json.dumps({"data": data}))
    return SeedRun(
        seed=seed, folder=folder.name, status=status, best_step=1, best_gate_score=selection,
        best_selection_hard=selection, baseline_test_hard=0.1, test_hard=test, final_test_hard=test,
        test_delta_hard=gain, finished_before=False,
    )  # fmt: skip


def test_the_run_to_take_is_chosen_by_selection_and_never_by_test(tmp_path):
    runs = [run_of(tmp_path, 1, 0.6, 0.99), run_of(tmp_path, 2, 0.8, 0.2), run_of(tmp_path, 3, 0.8, 0.9)]
    summary = summarise_seeds(tmp_path, [1, 2, 3], runs, CONFIG)
    assert summary.best_by_selection == 2
    assert any(note.startswith("seeds 2, 3 have the same best selection score") for note in summary.notes)
    assert summarise_seeds(tmp_path, [1], runs[:1], CONFIG).best_by_selection == 1


def test_means_are_over_the_runs_that_have_a_score_and_intervals_over_what_is_possible(tmp_path):
    runs = [
        run_of(tmp_path, 1, 0.5, 0.2, gain=0.0),
        run_of(tmp_path, 2, 0.5, 1.0, gain=0.8),
        run_of(tmp_path, 3, 0.5, None),
    ]
    summary = summarise_seeds(tmp_path, [1, 2, 3], runs, CONFIG)
    assert summary.test_hard.mean == pytest.approx(0.6)
    assert (summary.test_hard.interval, summary.test_hard.n) == ((0.0, 1.0), 2)
    assert (summary.test_delta_hard.interval, summary.test_delta_hard.n) == ((-1.0, 1.0), 2)
    assert "no test score, so in no mean: seed 3." in summary.notes
    assert (
        "every run has the same tasks in the same splits: env.split_seed (7) decides them, not train.seed."
        in summary.notes
    )


def test_one_run_has_a_mean_and_no_interval(tmp_path):
    summary = summarise_seeds(tmp_path, [1], [run_of(tmp_path, 1, None, 0.5)], CONFIG)
    assert (summary.test_hard.mean, summary.test_hard.interval, summary.test_hard.n) == (0.5, None, 1)
    assert summary.best_by_selection is None and summary.test_delta_hard is None
    assert any(note.startswith("one run has no interval") for note in summary.notes)


def test_what_is_not_whole_says_so(tmp_path):
    runs = [run_of(tmp_path, 1, 0.5, 0.5), run_of(tmp_path, 2, 0.5, None, status="incomplete", data="other")]
    summary = summarise_seeds(tmp_path, [1, 2, 3], runs, CONFIG)
    assert summary.status == "unfinished"
    assert any(note.startswith("the test of seed 2 is incomplete") for note in summary.notes)
    assert "not run yet: 1 of 3 seeds." in summary.notes
    assert any("do not have the same tasks" in note for note in summary.notes)
    assert summarise_seeds(tmp_path, [1, 2], runs, CONFIG).status == "unfinished"
