"""Several seeds of one configuration, from the command line and from Python."""

import json
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from skillopt_commands.series import train_seeds
from skillopt_kernel import SkillOptError
from skillopt_kernel.errors import PermanentError, StoppedEarly
from skillopt_kernel.hookspecs import hookimpl
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

SMALL = ("-o", "train.num_epochs=1")


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project.make(tmp_path_factory.mktemp("unbroken"))
    project.run("train", "config.yaml", "--seeds", "3", "--out", "series", *SMALL).ok()
    return project


def started(project: Project, run: str) -> int:
    """How often a run was begun or gone on with."""
    return sum(event["event"] == "run_started" for event in project.lines(f"{run}/events.jsonl"))


def test_each_seed_has_its_run_and_the_table_says_what_they_say_together(unbroken: Project) -> None:
    done = unbroken.run("train", "config.yaml", "--seeds", "3", "--out", "series", *SMALL).ok()
    found = unbroken.json("series/seeds.json")
    assert (found["status"], found["seeds"]) == ("finished", [1, 2, 3])
    summaries = [unbroken.json(f"series/seed-{seed:04d}/summary.json") for seed in (1, 2, 3)]
    assert [summary["config"]["train"]["seed"] for summary in summaries] == [1, 2, 3]
    tests = [summary["test_hard"] for summary in summaries]
    assert [run["test_hard"] for run in found["runs"]] == tests
    assert found["test_hard"]["mean"] == pytest.approx(sum(tests) / 3)
    assert found["test_hard"]["n"] == 3 and len(found["test_hard"]["interval"]) == 2
    best = max(summaries, key=lambda summary: summary["best_gate_score"])
    assert found["best_by_selection"] == best["config"]["train"]["seed"]
    assert "Student's t interval over seeds, n=3" in done.out
    assert f"seed {found['best_by_selection']}, {Path('series') / 'seed-'}" in done.out
    assert "every run has the same tasks in the same splits: env.split_dir decides them, not train.seed." in done.out
    rows = [line for line in done.out.splitlines() if re.match(r"\s*\d \(finished before\)", line)]
    assert len(rows) == 3, "what was not repeated is named"
    assert [started(unbroken, f"series/seed-{seed:04d}") for seed in (1, 2, 3)] == [1, 1, 1]
    assert all((unbroken.folder / f"series/seed-{seed:04d}/report.md").is_file() for seed in (1, 2, 3))


def test_seeds_change_the_training_and_not_the_data(unbroken: Project) -> None:
    prints = [unbroken.json(f"series/seed-{seed:04d}/fingerprint.json") for seed in (1, 2, 3)]
    assert len({one["data"] for one in prints}) == 1
    batches = [
        [row["id"] for row in unbroken.lines(f"series/seed-{seed:04d}/steps/step_0001/rollout/results.jsonl")]
        for seed in (1, 2, 3)
    ]
    assert len({tuple(batch) for batch in batches}) == 3


def test_a_run_of_a_series_is_the_run_of_that_seed(unbroken: Project) -> None:
    unbroken.run("train", "config.yaml", "--out", "alone", "-q", *SMALL, "-o", "train.seed=2").ok()
    alone, of_series = (unbroken.folder / name / "best_skill.md" for name in ("alone", "series/seed-0002"))
    assert alone.read_bytes() == of_series.read_bytes()


def test_a_longer_series_goes_on_with_a_shorter_one_in_the_default_folder(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    project.run("train", "config.yaml", "--seeds", "1", "-q", *SMALL).ok()
    done = project.run("train", "config.yaml", "--seeds", "2", "--json", *SMALL).ok()
    (series,) = (tmp_path / "outputs").iterdir()
    assert re.fullmatch(r"config-seeds-[0-9a-f]{8}", series.name)
    assert sorted(path.name for path in series.iterdir()) == ["seed-0001", "seed-0002", "seeds.json"]
    assert started(project, f"outputs/{series.name}/seed-0001") == 1
    *events, last = [json.loads(line) for line in done.out.splitlines()]
    assert {event["run"] for event in events} == {"seed-0002"}
    assert [run["seed"] for run in last["seeds"]["runs"]] == [1, 2]
    listed = project.run("runs", "outputs").ok().out
    assert f"{series.name}/seed-0001" in listed and f"{series.name}/seed-0002" in listed
    project.run("train", "config.yaml", "--seeds", "5,", "--fresh", "-q", *SMALL).ok()
    assert (tmp_path / "outputs" / f"{series.name}-2" / "seed-0005" / "summary.json").is_file()


@pytest.mark.parametrize("with_signal", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_series_goes_on_where_it_stopped(unbroken: Project, tmp_path: Path, with_signal: int) -> None:
    project = Project.make(tmp_path)
    command = ("train", "config.yaml", "--seeds", "3", "--out", "series", *SMALL)
    journal = tmp_path / "series" / "seed-0002" / "outcomes.jsonl"
    slow = ("-o", "model.simulated_latency=0.05")  # free to change on a resume
    ended = project.kill_when(
        lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 8, *command, *slow, with_signal=with_signal
    )
    if with_signal == signal.SIGINT:
        assert ended.code == 130, ended.err
        assert "Seed 2 is not finished. Finished and kept in series: 1 of 3 seeds." in ended.err
        assert "Run the same command again to go on." in ended.err and "Traceback" not in ended.err
    assert [run["seed"] for run in project.json("series/seeds.json")["runs"]] == [1]
    assert project.json("series/seeds.json")["status"] == "unfinished"
    assert not (tmp_path / "series" / "seed-0003").exists()
    project.run(*command).ok()
    assert project.json("series/seeds.json") == unbroken.json("series/seeds.json")
    assert [started(project, f"series/seed-{seed:04d}") for seed in (1, 2, 3)] == [1, 2, 1]


SERIES = ("train", "config.yaml", "--out", "series", "-q", "--seeds")


AWAY = """
import json
from pathlib import Path
from skillopt_kernel import PLUGIN_API, EnvironmentFailure, Manifest
from skillopt_env_searchqa.environment import SearchQAEnvironment

away = Manifest(kind="env", name="away", api=PLUGIN_API, summary="its scorer is away while the file `away` is there",
                factory="acme_away:Away", settings="skillopt_env_searchqa.settings:SearchQASettings")


class Away(SearchQAEnvironment):
    def score(self, task, attempt, judge):
        held_out = {item["id"] for item in json.loads(Path("data/test/items.json").read_text("utf-8"))}
        if Path("away").exists() and task.id in held_out:
            raise EnvironmentFailure("the scorer is away")
        return super().score(task, attempt, judge)
"""


def test_an_endpoint_that_fails_for_good_ends_the_series_and_what_is_done_is_kept(tmp_path: Path) -> None:
    open_for = [True]

    def answer(body: Any) -> Reply:
        return Reply("<answer>x</answer>") if open_for[0] else Reply("no such key", status=401)

    Project.make(tmp_path, train=4, selection=2, test=2).folder.joinpath("config.yaml").rename(tmp_path / "base.yaml")
    project = Project(tmp_path, {"OPENAI_COMPATIBLE_API_KEY": "key"})
    with ChatServer(answer) as server:
        model = {
            "target_backend": "openai_compatible", "target": "m", "target_openai_compatible_base_url": server.url,
        }  # fmt: skip
        project.write("config.yaml", json.dumps({"_base_": "base.yaml", "model": model}))
        project.run(*SERIES, "1").ok()
        open_for[0] = False
        ended = project.run(*SERIES, "3")
    ended.refused("was rejected", "Seed 2 is not finished. Finished and kept in series: 1 of 3 seeds.")
    assert not (tmp_path / "series" / "seed-0003").exists()
    assert [run["seed"] for run in project.json("series/seeds.json")["runs"]] == [1]


def test_a_run_whose_test_has_no_score_ends_the_series_and_is_tested_again(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    metadata = "installed/acme_away-1.0.dist-info"
    project.write("installed/acme_away.py", AWAY)
    project.write(f"{metadata}/METADATA", "Metadata-Version: 2.1\nName: acme-away\nVersion: 1.0\n")
    project.write(f"{metadata}/entry_points.txt", "[skillopt.envs]\naway = acme_away:away\n")
    project = Project(tmp_path, {"PYTHONPATH": os.pathsep.join([str(tmp_path / "installed"), *sys.path])})
    command = (*SERIES, "3", *SMALL, "-o", "env.name=away")
    project.run(*SERIES, "1", *SMALL, "-o", "env.name=away").ok()
    project.write("away", "")
    ended = project.run(*command)
    assert ended.code == 3, ended.err
    assert "the test of seed 2 is incomplete: run the same command again" in ended.out
    assert "not run yet: 1 of 3 seeds." in ended.out
    assert project.json("series/seeds.json")["status"] == "unfinished"
    assert not (tmp_path / "series" / "seed-0003").exists()
    (tmp_path / "away").unlink()
    project.run(*command).ok()
    assert project.json("series/seeds.json")["status"] == "finished"
    assert [started(project, f"series/seed-{seed:04d}") for seed in (1, 2, 3)] == [1, 2, 1]


@pytest.mark.parametrize("seeds", ["0", "-2", "1.5", "one", "1,,2", "3,3"])
def test_impossible_seeds_are_refused_before_anything_is_written(tmp_path: Path, seeds: str) -> None:
    project = Project.make(tmp_path)
    project.run("train", "config.yaml", "--seeds", seeds).refused("--seeds")
    assert not (tmp_path / "outputs").exists()


def test_folders_that_are_no_series_are_refused(unbroken: Project) -> None:
    command = ("train", "config.yaml", "--seeds", "2", *SMALL, "--out")
    unbroken.run(*command, "series/seed-0001").refused("holds a single run, not a series of seeds", "--fresh")
    unbroken.run(*command, "data").refused("is not empty and no series of seeds", "--out")
    unbroken.run(*command, "skill.md").refused("is a file, not a folder")
    unbroken.run(*command, "series", "-o", "train.batch_size=3").refused("train.batch_size: was 6, now 3", "Seed 1")
    unbroken.run("train", "config.yaml", "--out", "series").refused("not a run directory")


def test_without_test_tasks_there_is_no_mean_and_the_reason_is_told(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    done = project.run("train", "config.yaml", "--seeds", "2", "-q", *SMALL, "-o", "evaluation.eval_test=false").ok()
    assert "unknown, no run has a test score" in done.out
    assert "no test score, so in no mean: seed 1, 2." in done.out


def test_from_python_a_series_gives_its_numbers_and_a_failed_run_keeps_its_type(
    unbroken: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(unbroken.folder)
    summary = train_seeds("config.yaml", [3, 1], ["train.num_epochs=1"], out="series")
    assert [run.seed for run in summary.runs] == [3, 1]
    assert all(run.finished_before for run in summary.runs)
    assert summary.test_hard is not None and summary.test_hard.n == 2

    class Stop:
        @hookimpl
        def skillopt_run_finished(self, event: Any) -> None:
            stop.set()

        @hookimpl
        def skillopt_configure(self, run: Any) -> None:
            if run.seed == 9:
                raise PermanentError("the key is not valid")

    stop = threading.Event()
    with pytest.raises(StoppedEarly) as stopped:
        train_seeds("config.yaml", 2, ["train.num_epochs=1"], out=tmp_path / "s", plugins=[("stop", Stop())], stop=stop)
    assert ": 1 of 2 seeds." in stopped.value.__notes__[0]
    stop.clear()
    with pytest.raises(SkillOptError, match="the key is not valid") as failed:
        train_seeds("config.yaml", "1,9", ["train.num_epochs=1"], out=tmp_path / "s", plugins=[("stop", Stop())])
    assert "Seed 9 is not finished." in failed.value.__notes__[0]
