"""A training again from the ledger of a run: the same files, whatever the run did and however often it was killed."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import probe_plugins
import pytest
from killed_runs import Place, decided, differences, run_until
from skillopt_commands.evaluation import evaluate
from skillopt_kernel import train
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.models.ledger import Ledger
from skillopt_testkit.project import Project
from small_worlds import two_rules_a_kind
from workshop import jobs_done, make_workshop

SETTINGS: dict[str, Any] = {
    "train": {"num_epochs": 2, "batch_size": 2, "accumulation": 2, "seed": 1},
    "gradient": {"minibatch_size": 1, "merge_batch_size": 2},
    "optimizer": {
        "learning_rate": 2, "min_learning_rate": 1, "lr_scheduler": "linear",
        "use_slow_update": True, "slow_update_samples": 8, "use_meta_skill": True,
    },
}  # fmt: skip
EVERYTHING: dict[str, Any] = {
    "_base_": ["config.yaml", "features/everything"],
    "train": {"num_epochs": 2, "batch_size": 4, "seed": 3},
    "gradient": {"minibatch_size": 2, "merge_batch_size": 2},
    "optimizer": {"learning_rate": 2, "min_learning_rate": 1, "slow_update_samples": 8},
    "model": {"simulated_lapses": 0.5},
}
"""With several samples of each task, slow update, meta skill, skill-aware notes, and what else there is."""

WORLD = two_rules_a_kind(
    "{insight: 1.0, harmful: 0.0, distractors: 0.6, over_budget: 0.3}",
    "faults: {malformed_replies: 0.1, empty_replies: 0.05, refusals: 0.03}",
)

TIMES = ("seconds", "timing", "wall_time_s", "total_wall_time_s", "folder", "time")
"""All that a replay may tell otherwise; `folder` is the summary's own."""

NOT_COMPARED = ("events.jsonl", "outcomes.jsonl", "calls.sqlite*", "report.md", "*.lock*")


def made(folder: Path, settings: Mapping[str, Any]) -> Path:
    project = Project.make(folder, train=8, selection=10, test=4)
    project.write("world.yaml", WORLD)
    return project.write("mine.yaml", json.dumps({"_base_": "config.yaml", **settings}))


def without_times(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: without_times(item) for name, item in value.items() if name not in TIMES}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def content(path: Path) -> Any:
    if path.suffix not in (".json", ".jsonl"):
        return path.read_bytes()
    text = path.read_text("utf-8")
    lines = [text] if path.suffix == ".json" else text.splitlines()
    return [without_times(json.loads(line)) for line in lines]


def every_file(root: Path) -> dict[str, Any]:
    found = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    return {
        name: content(path)
        for name, path in found.items()
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in NOT_COMPARED)
    }


def told(root: Path) -> dict[str, Any]:
    ledger = Ledger(root / "calls.sqlite", read_only=True)
    (total,) = ledger.sums()
    ledger.close()
    return total


def outcomes(root: Path) -> list[Any]:
    rows = [json.loads(line) for line in (root / "outcomes.jsonl").read_text("utf-8").splitlines()]
    return sorted((without_times(row) for row in rows), key=lambda row: json.dumps(row, sort_keys=True))


@pytest.mark.parametrize("settings", [SETTINGS, EVERYTHING], ids=["patch", "everything"])
def test_every_file_is_the_same_tokens_included(tmp_path: Path, settings: dict[str, Any]) -> None:
    """With one worker, so that an early stop left nothing to chance."""
    one_by_one = {**settings, "env": {"workers": 1}, "gradient": settings["gradient"] | {"analyst_workers": 1}}
    config = made(tmp_path, one_by_one)
    train(config, out=tmp_path / "run")
    (tmp_path / "world.yaml").write_text("")  # no backend is made: of this it could not be
    before = (tmp_path / "run/calls.sqlite").read_bytes()
    train(config, out=tmp_path / "again", replay=tmp_path / "run")
    run, again = every_file(tmp_path / "run"), every_file(tmp_path / "again")
    assert [name for name in sorted({*run, *again}) if run.get(name) != again.get(name)] == []
    assert outcomes(tmp_path / "run") == outcomes(tmp_path / "again")
    assert (tmp_path / "run/calls.sqlite").read_bytes() == before, "it is only read"
    recorded, replayed = told(tmp_path / "run"), told(tmp_path / "again")
    assert replayed["replayed_calls"] == replayed["calls"] == recorded["calls"]
    assert replayed["failed_calls"] == recorded["failed_calls"] and recorded["replayed_calls"] == 0
    (summary,) = again["summary.json"]
    assert summary["total_accepts"] > 0 and sum(summary["model_failures"].values()) > 0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four workers that was killed three times; beside it `unbroken` and the configuration `mine.yaml`."""
    folder = tmp_path_factory.mktemp("recorded")
    config = made(folder, SETTINGS)
    run_until(config, folder / "unbroken")
    for place in (
        Place("steps/step_0001/batch_1/rollout/predictions/*/conversation.json", "before", 2),
        Place("aggregate", "before", 1),
        Place("slow_update/epoch_02/rollout_*/predictions/*/conversation.json", "before", 2),
    ):
        run_until(config, folder / "run", place)
    run_until(config, folder / "run")
    return folder


def test_a_run_that_was_killed_and_resumed_is_replayed_as_the_unbroken_one(recorded: Path) -> None:
    expected = decided(recorded / "unbroken")
    for run in ("unbroken", "run"):
        train(recorded / "mine.yaml", out=recorded / f"again-{run}", replay=recorded / run)
        assert not differences(recorded / f"again-{run}", expected)
        asked = {(row["skill_hash"], row["id"], row["sample"]) for row in outcomes(recorded / run)}
        again = {(row["skill_hash"], row["id"], row["sample"]) for row in outcomes(recorded / f"again-{run}")}
        assert again <= asked, "an early stop may have begun more"


def test_a_replay_can_be_killed_and_resumed_and_replayed(recorded: Path) -> None:
    config, out = recorded / "mine.yaml", recorded / "killed"
    for place in (
        Place("steps/step_0001/selection_eval/predictions/*/conversation.json", "before", 3),
        Place("slow_update", "before"),
    ):
        run_until(config, out, place, replay=recorded / "run")
    run_until(config, out, replay=recorded / "run")
    assert not differences(out, decided(recorded / "unbroken"))
    assert told(out)["replayed_calls"] == told(out)["calls"]
    train(config, out=recorded / "third", replay=out)
    assert not differences(recorded / "third", decided(recorded / "unbroken"))


def test_a_replay_may_go_on_with_the_models(recorded: Path) -> None:
    """Its directory is a run like any other: without `replay` it goes on, and asks."""
    config, out = recorded / "mine.yaml", recorded / "goes-on"
    run_until(config, out, Place("slow_update", "before"), replay=recorded / "run")
    train(config, out=out)
    assert not differences(out, decided(recorded / "unbroken"))
    assert 0 < told(out)["replayed_calls"] < told(out)["calls"]


def test_a_finished_replay_is_found_again_beside_the_run(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(recorded)
    first = train("mine.yaml", replay="run")
    assert Path(first.folder).name.startswith("replay-mine-")
    assert train("mine.yaml", ["env.out_root=run"], replay="run").already_finished


def test_missing_outcomes_and_what_was_rejected_are_replayed_as_they_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe_plugins.install(tmp_path / "plugins", monkeypatch)
    model = {"backend": "recorded", "recorded_world": str(tmp_path / "world.yaml"), "recorded_folder": str(tmp_path)}
    config = made(tmp_path, {**SETTINGS, "model": model | {"recorded_rejected": "line 5?"}})
    train(config, out=tmp_path / "run")
    (tmp_path / "requests.jsonl").unlink()
    train(config, out=tmp_path / "again", replay=tmp_path / "run")
    assert not (tmp_path / "requests.jsonl").exists(), "nothing was asked"
    expected = decided(tmp_path / "run")
    assert not differences(tmp_path / "again", expected)
    assert expected["summary.json"]["missing_outcomes"] > 0
    missing = [row["missing"]["reason"] for row in outcomes(tmp_path / "again") if "missing" in row]
    assert set(missing) == {"rejected"}


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_an_agents_run_is_replayed_with_its_files(tmp_path: Path, executor: str) -> None:
    project = make_workshop(tmp_path, execution={"executor": executor}, train={"num_epochs": 1, "batch_size": 4})
    one = ("-o", "env.workers=1")  # more of them may begin a task that the early stop then leaves out
    project.run("train", "config.yaml", "--out", "run", *one).ok()
    before = len(jobs_done(project))
    project.run("train", "config.yaml", "--out", "again", "--replay", "run", *one).ok()
    assert before == len(jobs_done(project))
    run, again = every_file(tmp_path / "run"), every_file(tmp_path / "again")
    assert [name for name in sorted({*run, *again}) if run.get(name) != again.get(name)] == []
    assert any(name.endswith("/trace.txt") for name in again)
    shown = project.run("calls", "again").ok().out
    assert "replayed" in shown and "what they used was spent there" in shown


def test_answers_of_a_training_are_scored_once_more(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(recorded)
    summary = json.loads((recorded / "run/summary.json").read_text("utf-8"))
    made = evaluate("mine.yaml", "run", "test", replay="run")
    assert (made.hard, made.n_scored) == (summary["test_hard"], 4)
    assert Path(made.folder).name.startswith("replay-eval-test-mine-")
    assert told(Path(made.folder))["replayed_calls"] == told(Path(made.folder))["calls"] == 4
    with pytest.raises(SkillOptError, match="run never made this call"):
        evaluate("mine.yaml", "run", "train", replay="run")
