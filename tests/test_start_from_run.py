"""`env.skill_init` with a run: its best skill is the start, its provenance is recorded, anything else is refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.errors import ConfigError, RunDirectoryError
from skillopt_kernel.skill import skill_hash
from skillopt_testkit.project import Project

import skillopt_core

NESTED = "_base_: ../config.yaml\nenv: {skill_init: first}\n"
SHORT = ("train.num_epochs=1", "evaluation.eval_test=false")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with a finished run in `first`."""
    project = Project.make(tmp_path_factory.mktemp("start"), train=6, selection=6, test=2)
    train(project, "first")
    return project


@pytest.fixture
def project(earlier: Project, tmp_path: Path) -> Project:
    shutil.copytree(earlier.folder, tmp_path / "here")
    return Project(tmp_path / "here")


def train(project: Project, out: str, start: str = "", *overrides: str) -> Any:
    given = (f"env.skill_init={start}",) if start else ()
    config = project.folder / "config.yaml"
    return skillopt_core.train(config, (*SHORT, *given, *overrides), out=project.folder / out)


def best(project: Project, run: str) -> str:
    return (project.folder / run / "best_skill.md").read_text("utf-8")


def test_training_starts_from_the_best_skill_of_the_run_and_says_so(project: Project) -> None:
    first = project.json("first/summary.json")
    assert first["best_step"] == 1 and best(project, "first") != (project.folder / "skill.md").read_text()
    project.write("nested/mine.yaml", "_base_: ../config.yaml\nenv: {skill_init: ../first}\n")
    done = project.run("train", "nested/mine.yaml", "--out", "second", "-o", *SHORT).ok()
    assert "start      the best skill of the run first (step 1)" in done.out
    assert (project.folder / "second/skills/skill_v0000.md").read_text("utf-8") == best(project, "first")
    told = {
        "from": "run", "path": "../first", "run": "first", "step": 1, "origin": "step_0001",
        "hash": skill_hash(best(project, "first")),
    }  # fmt: skip
    assert project.json("second/summary.json")["start_skill"] == told
    assert next(iter(project.lines("second/events.jsonl")))["start_skill"] == told
    assert project.json("second/config.json")["env"]["skill_init"].endswith("/first")
    assert project.json("second/summary.json")["baseline_selection_hard"] == first["best_selection_hard"]


def test_a_folder_is_looked_for_beside_the_file_and_then_in_the_working_directory(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("nested/mine.yaml", NESTED)
    monkeypatch.chdir(project.folder)
    summary = skillopt_core.train("nested/mine.yaml", SHORT, out="second")
    assert summary.start_skill["run"] == "first"
    with pytest.raises(ConfigError, match=r"'none' is not at .*nested/none nor at .*here/none"):
        skillopt_core.train(project.write("nested/mine.yaml", NESTED.replace("first", "none")), SHORT, out="third")


def test_where_the_start_comes_from_is_told_of_the_others_too(project: Project) -> None:
    assert project.json("first/summary.json")["start_skill"] == {
        "from": "file", "path": "skill.md", "hash": skill_hash("# Answering\n\n- Answer in few words.\n"),
    }  # fmt: skip
    assert train(project, "own", "null").start_skill["from"] == "environment"


def test_the_text_decides_and_not_where_it_lies(project: Project) -> None:
    path = project.folder
    train(project, "second", str(path / "first"))
    (path / "first").rename(path / "moved")
    assert train(project, "second", str(path / "moved")).already_finished
    shutil.copy(path / "moved/best_skill.md", path / "copy.md")
    assert train(project, "second", str(path / "copy.md")).already_finished
    with pytest.raises(RunDirectoryError, match=r"start_skill \(.+\): was"):
        train(project, "second", str(path / "skill.md"))


def cut(project: Project) -> None:
    (project.folder / "first/summary.json").unlink()


def without_best(project: Project) -> None:
    (project.folder / "first/best_skill.md").unlink()


def edited(project: Project) -> None:
    (project.folder / "first/best_skill.md").write_text("# Mine\n", "utf-8")


def no_json(project: Project) -> None:
    (project.folder / "first/runtime_state.json").write_text("{", "utf-8")


def without_state(project: Project) -> None:
    (project.folder / "first/runtime_state.json").unlink()


def without_skill(project: Project) -> None:
    shutil.rmtree(project.folder / "first/skills")


def no_run(project: Project) -> None:
    (project.folder / "first/fingerprint.json").unlink()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (cut, ("first has not come to its end (step 1 of 1)", "run its command again")),
        (without_best, ("is damaged: cannot read", "best_skill.md")),
        (edited, ("best_skill.md is not the skill that the run ended with (skills/skill_v0001.md)", "changed since")),
        (no_json, ("is damaged", "runtime_state.json", "not valid JSON")),
        (without_state, ("is damaged", "holds no saved state")),
        (without_skill, ("is damaged: cannot read", "skill_v0001.md")),
        (no_run, ("is a folder, but not a run directory", "Markdown file")),
    ],
)
def test_what_is_no_finished_run_is_refused_in_a_sentence(project: Project, spoil: Any, words: tuple[str, ...]) -> None:
    spoil(project)
    project.write("mine.yaml", "_base_: config.yaml\nenv:\n  skill_init: first\n")
    project.run("train", "mine.yaml", "--out", "second").refused("mine.yaml:3:15: env.skill_init: ", *words)
    assert not (project.folder / "second").exists()


def test_a_run_that_is_under_way_is_refused(project: Project) -> None:
    from skillopt_kernel.store.lock import RunLock

    with (
        RunLock(project.folder / "first"),
        pytest.raises(ConfigError, match=r"first is still under way \(step 1\); wait for it"),
    ):
        train(project, "second", str(project.folder / "first"))
