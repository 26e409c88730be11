"""`skillopt eval`: one skill on one split, in a folder of its own, never with the scores of another skill."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skillopt_commands.evaluation import evaluate
from skillopt_testkit.project import KINDS, Project
from skillopt_testkit.servers import ChatServer, Reply


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a finished run in `run`."""
    project = Project.make(tmp_path_factory.mktemp("evaluation") / "project")
    project.run("train", "config.yaml", "--out", "run", "--quiet").ok()
    return project


@pytest.fixture
def project(trained: Project, tmp_path: Path) -> Project:
    """A copy of the trained project, for one test alone."""
    return Project(Path(shutil.copytree(trained.folder, tmp_path / "project")))


def calls(project: Project, folder: str) -> int:
    return sum(event["event"] == "model_called" for event in project.lines(f"{folder}/events.jsonl"))


def test_the_default_split_is_the_selection_split_and_the_summary_says_all_of_it(project: Project) -> None:
    done = project.run("eval", "config.yaml", "--skill", "run/best_skill.md", "--out", "scores").ok()
    summary, training = project.json("scores/eval_summary.json"), project.json("run/summary.json")
    assert summary["split"] == "selection" and summary["skill"] == "run/best_skill.md"
    assert (summary["n_items"], summary["n_scored"]) == (12, 12)
    assert (summary["hard"], summary["soft"]) == (training["best_selection_hard"], training["best_selection_soft"])
    low, high = summary["interval"]
    assert low < summary["hard"] < high
    assert set(summary["by_kind"]) == {"overall", *KINDS} and summary["by_kind"]["count"]["total"] == 3
    total = summary["token_summary"]["_total"]
    assert total["calls"] == calls(project, "scores") == 12
    assert total["total_tokens"] == total["prompt_tokens"] + total["completion_tokens"] > 0
    assert "folder" not in summary, "the folder can be moved"
    assert project.json("scores/config.json")["train"] == project.json("run/config.json")["train"]
    assert f"overall 12 12 {summary['hard']:.4f} {low:.2f} to {high:.2f}" in " ".join(done.out.split())
    assert f"Used: 12 model calls, {total['total_tokens']:,} tokens" in done.out
    assert len(project.lines("scores/selection/results.jsonl")) == 12


def test_a_run_stands_for_its_best_skill(project: Project) -> None:
    project.run("eval", "config.yaml", "--skill", "run", "--split", "valid_unseen", "--out", "scores").ok()
    assert project.json("scores/eval_summary.json")["hard"] == project.json("run/summary.json")["test_hard"]


@pytest.mark.parametrize(
    ("split", "keys", "count"),
    [
        ("all", [], 32),
        ("all", ["evaluation.sel_env_num=2", "evaluation.test_env_num=2"], 32),
        ("all", ["env.limit=5"], 15),
        ("train", ["evaluation.sel_env_num=2", "evaluation.test_env_num=2"], 12),
        ("valid_seen", ["evaluation.sel_env_num=2", "evaluation.test_env_num=3"], 2),
        ("valid_unseen", ["evaluation.sel_env_num=2", "evaluation.test_env_num=3"], 3),
        ("test", ["train.train_size=12", "env.limit=4"], 4),
    ],
)
def test_how_many_tasks_are_asked(project: Project, split: str, keys: list[str], count: int) -> None:
    overrides = ["-o", *keys] if keys else []
    project.run("eval", "config.yaml", "--skill", "skill.md", "--split", split, *overrides, "--out", "scores").ok()
    summary = project.json("scores/eval_summary.json")
    assert (summary["n_items"], summary["by_kind"]["overall"]["total"]) == (count, count)
    assert len({row["id"] for row in project.lines(f"scores/{summary['split']}/results.jsonl")}) == count


def test_a_folder_with_the_scores_of_another_skill_is_not_used(project: Project) -> None:
    words = ("eval", "config.yaml", "--skill", "skill.md", "--out", "scores")
    project.run(*words).ok()
    before = (project.folder / "scores/eval_summary.json").read_bytes()
    project.write("skill.md", (project.folder / "run/best_skill.md").read_text())
    project.run(*words).refused("the evaluation in scores", "start_skill", "--fresh")
    assert (project.folder / "scores/eval_summary.json").read_bytes() == before
    project.run(*words, "--fresh").ok()
    better, best = project.json("scores-2/eval_summary.json"), project.json("run/summary.json")
    assert better["hard"] == best["best_selection_hard"] != json.loads(before)["hard"]
    assert calls(project, "scores-2") == 12


def test_scores_that_another_skill_left_unfinished_are_not_counted(project: Project) -> None:
    """Outcomes are kept by what the target was shown: a journal of another skill's answers none of the questions."""
    project.run("eval", "config.yaml", "--skill", "skill.md", "--out", "old").ok()
    project.run("eval", "config.yaml", "--skill", "run", "--out", "new").ok()
    new = project.json("new/eval_summary.json")
    (project.folder / "new/eval_summary.json").unlink()
    shutil.copy(project.folder / "old/outcomes.jsonl", project.folder / "new/outcomes.jsonl")
    project.run("eval", "config.yaml", "--skill", "run", "--out", "new").ok()
    assert project.json("new/eval_summary.json")["hard"] == new["hard"]
    hashes = [row["skill_hash"] for row in project.lines("new/outcomes.jsonl")]
    assert len(hashes) == 24 and set(hashes[12:]) == {new["skill_hash"]} != set(hashes[:12])


def test_training_and_evaluation_do_not_share_a_folder(project: Project) -> None:
    summary = (project.folder / "run/summary.json").read_bytes()
    start = ("--skill", "skill.md")  # the very text that the run started from
    project.run("eval", "config.yaml", *start, "--out", "run").refused("run holds a training run; an evaluation has a")
    assert (project.folder / "run/summary.json").read_bytes() == summary
    project.run("eval", "config.yaml", *start, "--out", "scores").ok()
    project.run("train", "config.yaml", "--out", "scores").refused("scores holds an evaluation; a training run has a")


def test_the_folder_that_a_file_names_is_the_training_runs(project: Project) -> None:
    project.write("own.yaml", "_base_: config.yaml\nenv: {out_root: run}\n")
    project.run("eval", "own.yaml", "--skill", "skill.md").ok()
    (folder,) = (project.folder / "outputs").iterdir()
    assert folder.name.startswith("eval-selection-own-")
    assert (project.folder / "run/summary.json").is_file()
    project.run("eval", "own.yaml", "--skill", "skill.md", "-o", "env.out_root=asked").ok()
    assert (project.folder / "asked/eval_summary.json").is_file()


def test_a_finished_evaluation_is_shown_and_not_repeated(project: Project) -> None:
    words = ("eval", "config.yaml", "--skill", "skill.md", "--out", "scores")
    project.run(*words).ok()
    summary = (project.folder / "scores/eval_summary.json").read_bytes()
    again = project.run(*words).ok()
    assert "finished already; nothing was done" in again.out and "overall 12" in " ".join(again.out.split())
    assert calls(project, "scores") == 12
    assert (project.folder / "scores/eval_summary.json").read_bytes() == summary
    (project.folder / "scores/eval_summary.json").write_text("{")
    project.run(*words).ok()
    assert project.json("scores/eval_summary.json")["hard"] == json.loads(summary)["hard"]
    assert calls(project, "scores") == 12


def test_a_killed_evaluation_goes_on_and_tells_the_use_of_both_processes(project: Project) -> None:
    words = ("eval", "config.yaml", "--skill", "skill.md", "--out", "scores")
    slow = ("-o", "model.target_simulated_latency=0.2", "env.workers=2")
    project.kill_when(lambda: len(project.lines("scores/outcomes.jsonl")) >= 4, *words, *slow)
    assert not (project.folder / "scores/eval_summary.json").exists()
    assert "unfinished, evaluation on selection" in project.run("status", "scores").ok().out
    project.run(*words).ok()
    rows = project.lines("scores/outcomes.jsonl")
    assert len(rows) == len({row["id"] for row in rows}) == 12
    summary = project.json("scores/eval_summary.json")
    assert summary["n_scored"] == 12 and summary["token_summary"]["_total"]["calls"] >= 12


def test_tasks_without_a_score_are_told_and_asked_again(project: Project) -> None:
    slow = True

    def answer(request: Mapping[str, Any]) -> Reply:
        return Reply("<answer>none</answer>", delay=3.0 if slow and "at line 13?" in str(request) else 0.0)

    with ChatServer(answer) as server:
        keys = ("model.target_backend=openai_compatible", f"openai_compatible_base_url={server.url}")
        words = ("eval", "config.yaml", "--skill", "skill.md", "--out", "scores", "-o", *keys, "env.exec_timeout=1.5")
        first = project.run(*words)
        assert first.code == 3, first.err
        # On a busy machine another call may have been too slow as well.
        missing = 12 - project.json("scores/eval_summary.json")["n_scored"]
        assert 1 <= missing < 12
        assert f"Note: {missing} of 12 tasks have no score and are in no mean; run the same command again" in first.out
        slow = False
        asked = len(server.requests)
        project.run(*words, "env.exec_timeout=60").ok()
        assert len(server.requests) == asked + missing
    assert project.json("scores/eval_summary.json")["n_scored"] == 12


def test_evaluations_are_listed_as_what_they_are(project: Project) -> None:
    project.run("eval", "config.yaml", "--skill", "run", "--split", "test", "--out", "runs/scores").ok()
    listed = project.run("runs", "runs").ok().out.splitlines()[-1].split()
    hard = f"{project.json('runs/scores/eval_summary.json')['hard']:.4f}"
    assert listed[:7] == ["scores", "finished", "eval", "of", "test", "-", hard]
    told = project.run("status", "runs/scores").ok().out
    assert told.startswith("config: finished, evaluation on test") and f"  {hard}  " in told
    assert json.loads(project.run("status", "runs/scores", "--json").ok().out)["evaluates"] == "test"
    assert json.loads(project.run("status", "run", "--json").ok().out)["evaluates"] == ""


def test_json_lines_end_with_the_evaluation(project: Project) -> None:
    done = project.run("eval", "config.yaml", "--skill", "run", "--out", "scores", "--json").ok()
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert lines[0]["event"] == "run_started" and lines[0]["evaluates"] == "selection"
    assert lines[-1]["evaluation"] == project.json("scores/eval_summary.json") | {"folder": "scores"}


def test_from_python(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.folder)
    first = evaluate("config.yaml", "run", "val", ["evaluation.sel_env_num=3"], out="scores")
    assert (first.n_items, first.split, first.already_finished) == (3, "selection", False)
    assert evaluate("config.yaml", "run", "val", ["evaluation.sel_env_num=3"], out="scores").already_finished


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--skill", "none.md"], "--skill: the skill none.md cannot be read"),
        (["--skill", "data"], "data is a folder, but not a run directory"),
        (["--skill", "skill.md", "--split", "bogus"], "there is no split 'bogus'; the known names are train"),
        ([], "Missing option '--skill'"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(project: Project, words: list[str], told: str) -> None:
    project.run("eval", "config.yaml", *words).refused(told)
    assert not (project.folder / "outputs").exists()


def test_a_pinned_number_of_training_tasks_does_not_forbid_a_limit(project: Project) -> None:
    keys = ["-o", "train.train_size=12", "train.num_epochs=1"]
    project.run("train", "config.yaml", *keys, "env.limit=6", "--out", "few").ok()
    assert project.json("few/summary.json")["splits"] == {"train": 6, "selection": 6, "test": 6}
    project.run("train", "config.yaml", *keys, "train.train_size=11", "env.limit=12").refused("train.train_size is 11")
