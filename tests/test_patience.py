"""`train.patience`: a run ends in order after so many epochs in a row without a new best skill, and stays ended."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.errors import RunDirectoryError, StoppedEarly
from skillopt_testkit.project import KINDS, Project, world

import skillopt_core
from skillopt_core import Edit, Proposal, SlowUpdate, hookimpl

RULES = list(KINDS.values())


class Lab:
    """Proposes one rule in each of `steps`' epochs, writes guidance at the ends of `guided`, and advice always."""

    def __init__(self, *epochs: int, guided: tuple[int, ...] = ()) -> None:
        self.epochs, self.guided = epochs, guided

    @hookimpl
    def skillopt_reflect(self, step: Any) -> tuple[Proposal, ...]:
        if step.epoch not in self.epochs:
            return ()
        rule = RULES[self.epochs.index(step.epoch)]
        return (Proposal("lesson", "failure", items=(Edit("append", f"- {rule}"),)),)

    @hookimpl
    def skillopt_slow_update(self, epoch: Any) -> SlowUpdate:
        return SlowUpdate(f"- {RULES[-1]}" if epoch.number in self.guided else None)

    @hookimpl
    def skillopt_meta_skill(self, epoch: Any) -> str:
        return f"Advice of epoch {epoch.number}."


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project.make(tmp_path)
    project.write(
        "world.yaml", world().replace("right_without: 0.1, right_with: 0.95", "right_without: 0, right_with: 1")
    )
    return project


def train(project: Project, lab: object, *overrides: str, out: str = "run", **options: Any) -> Any:
    base = (
        "train.num_epochs=6",
        "train.batch_size=12",
        "optimizer.use_slow_update=true",
        "optimizer.use_meta_skill=true",
    )
    plugins = [("lab", lab), *options.pop("plugins", ())]
    config = project.folder / "config.yaml"
    return skillopt_core.train(config, (*base, *overrides), out=project.folder / out, plugins=plugins, **options)


def without_best(project: Project, run: str = "run") -> list[int]:
    return [record["epochs_without_best"] for record in project.json(f"{run}/summary.json")["epoch_stats"]]


def test_the_run_ends_in_order_after_so_many_epochs_in_a_row(project: Project) -> None:
    summary = train(project, Lab(1, 3), "train.patience=2")
    assert without_best(project) == [0, 1, 0, 1, 2]
    assert (summary.status, summary.total_steps, summary.best_step) == ("finished", 5, 3)
    assert summary.test_n == summary.final_test_n == 8 and summary.test_hard > summary.baseline_test_hard
    sentence = summary.ended_early
    assert "after epoch 5 of 6" in sentence and "train.patience is 2" in sentence
    assert sentence in summary.notes
    events = project.lines("run/events.jsonl")
    ends = [event["ended_early"] for event in events if event["event"] == "epoch_finished"]
    assert ends == ["", "", "", "", sentence]
    assert events[-1]["event"] == "run_finished" and events[-1]["ended_early"] == sentence


def test_without_patience_every_epoch_is_taken(project: Project) -> None:
    summary = train(project, Lab(1))
    assert (without_best(project), summary.ended_early) == ([0, 1, 2, 3, 4, 5], "")
    assert not [note for note in summary.notes if "patience" in note]


def test_a_last_epoch_that_uses_patience_up_ended_nothing_early(project: Project) -> None:
    assert train(project, Lab(), "train.num_epochs=2", "train.patience=2").ended_early == ""


def test_guidance_that_is_the_new_best_counts(project: Project) -> None:
    summary = train(project, Lab(1, guided=(2,)), "train.patience=1")
    assert without_best(project) == [0, 0, 1]
    assert summary.best_origin == "slow_update_epoch_02"


def test_the_last_epoch_writes_no_meta_skill_whatever_made_it_the_last(project: Project) -> None:
    train(project, Lab(1), "train.patience=2")
    assert without_best(project) == [0, 1, 2]
    assert [path.name for path in sorted((project.folder / "run/meta_skill").iterdir())] == ["epoch_01", "epoch_02"]


class StopAt:
    """Stops the run when a stage of this name begins, as Ctrl-C does."""

    def __init__(self, stage: str) -> None:
        self.stage, self.asked = stage, threading.Event()

    @hookimpl
    def skillopt_stage_started(self, event: Any) -> None:
        if event.stage == self.stage:
            self.asked.set()


def test_a_run_that_ended_so_is_not_continued(project: Project) -> None:
    constant = ("train.patience=2", "model.simulated_latency=0.05")
    expected = train(project, Lab(1), *constant, out="unbroken")
    stop = StopAt("test")
    with pytest.raises(StoppedEarly):
        train(project, Lab(1), *constant, plugins=[("stop", stop)], stop=stop.asked)
    assert not (project.folder / "run/summary.json").exists()
    summary = train(project, Lab(1), *constant)
    for name in ("total_steps", "ended_early", "best_step", "best_selection_hard", "test_hard"):
        assert getattr(summary, name) == getattr(expected, name), name
    epochs = [[{**epoch, "timing": None} for epoch in one.epoch_stats] for one in (summary, expected)]
    assert epochs[0] == epochs[1]
    assert train(project, Lab(1), *constant).already_finished
    more = train(project, Lab(1), *constant, "train.num_epochs=9")
    assert not more.already_finished and more.total_steps == 3 and "after epoch 3 of 9" in more.ended_early
    with pytest.raises(RunDirectoryError, match=r"train\.patience: was 2, now 3"):
        train(project, Lab(1), *constant, "train.patience=3")


def test_the_console_says_at_once_and_at_the_end_why(project: Project) -> None:
    project.write("lab.py", "def reflect():\n    return ()\n")
    hooks = ("hooks.override={reflect: lab:reflect}", "hooks.path=[.]")
    done = project.run("train", "config.yaml", "--out", "run", "-o", "train.patience=1", "-o", hooks[0], "-o", hooks[1])
    lines = done.ok().out.splitlines()
    sentence = (
        "raining ended after epoch 1 of 2: train.patience is 1, and so many epochs in a row brought no new best skill."
    )
    assert [line[: -len(sentence)] for line in lines if line.endswith(sentence)] == ["T", "Note: t"]
