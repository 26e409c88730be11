"""A replay with the network off and without a key; and what one is told that asks something else than the run did."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from http_world import KEY, answer, configure, make_project
from skillopt_kernel import train
from skillopt_kernel.errors import SkillOptError, StoppedEarly
from skillopt_kernel.hookspecs import hookimpl
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer

NO_NETWORK = """
import os, sys

def forbid(event, arguments):
    if event in ("socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        with open(os.environ["NETWORK_USED"], "a") as file:
            file.write(event)
        os._exit(99)

sys.addaudithook(forbid)
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose run in `run` is finished and whose server is gone; no key is set any more."""
    project = make_project(tmp_path_factory.mktemp("replay"), train=8, selection=6, test=2)
    with ChatServer(answer) as server, pytest.MonkeyPatch.context() as patch:
        configure(
            project, server, train={"num_epochs": 2, "batch_size": 4}, optimizer={"lr_scheduler": "constant"},
            env={"workers": 1},
        )  # fmt: skip
        patch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
        patch.chdir(project.folder)
        train("config.yaml", out="run")
    project.write("offline/sitecustomize.py", NO_NETWORK)
    yield Project(project.folder, {"OPENAI_COMPATIBLE_API_KEY": ""})


def offline(project: Project) -> dict[str, str]:
    return {"PYTHONPATH": str(project.folder / "offline"), "NETWORK_USED": str(project.folder / "network.txt")}


def test_nothing_is_connected_and_no_key_is_needed(ran: Project) -> None:
    done = ran.run("train", "config.yaml", "--replay", "run", "--out", "again", env=offline(ran)).ok()
    assert "Replayed from run: no model was asked" in done.out
    assert not (ran.folder / "network.txt").exists()
    for name in ("best_skill.md", "skills/skill_v0003.md", "steps/step_0002/merged_patch.json"):
        assert (ran.folder / "again" / name).read_bytes() == (ran.folder / "run" / name).read_bytes()
    for name in ("total_accepts", "token_summary", "baseline_selection_hard", "test_hard"):
        assert ran.json("again/summary.json")[name] == ran.json("run/summary.json")[name]


def test_the_same_process_would_have_been_seen_to_use_the_network(ran: Project) -> None:
    key = {"OPENAI_COMPATIBLE_API_KEY": KEY}
    assert ran.run("train", "config.yaml", "--out", "online", env=offline(ran) | key).code == 99
    assert "socket." in (ran.folder / "network.txt").read_text("utf-8")


Change = Callable[[Path], object]


def edited(name: str, old: str, new: str) -> Change:
    def change(folder: Path) -> object:
        path = folder / name
        text = path.read_text("utf-8")
        assert old in text
        return path.write_text(text.replace(old, new), "utf-8")

    return change


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (
            edited("skill.md", "- Be brief.", "- Be brief and kind."),
            (),
            ("run never made this call: call 1 of the target at the task", "sample 1", "The nearest one there is call",
             "stage rollout, epoch 1, step 1", "-- Be brief.", "+- Be brief and kind.", "start_skill: was"),
        ),
        (
            edited("data/train/items.json", "Which is it at line", "What is it at line"),
            (),
            ("run never made this call", "The nearest one there is call", "Which is it", "What is it", "data: was"),
        ),
        (
            lambda folder: (folder / "analyst.md").write_text("Look at it: {{schema}}", "utf-8"),
            ("prompts.analyst_failure=analyst.md",),
            ("the replay asks something else than run did: call 1 of the optimizer in step_0001/analyst/",
             "stage analyst, epoch 1, step 1", "+Look at", "lines more", "skillopt calls run --show",
             "prompts.analyst_failure: was"),
        ),
        (
            lambda _: None,
            ("model.target=another",),
            ("the replay asks something else than run did: call 1 of the target at the task",
             "-model target of openai_compatible\n+model another of openai_compatible",
             "model.target: was target, now another"),
        ),
        (
            lambda _: None,
            ("train.num_epochs=3",),
            ("never made this call, nor one like it: call 1 of", "sample 3", "train.num_epochs: was 2, now 3"),
        ),
    ],
    ids=["skill", "data", "prompt", "model", "epochs"],
)  # fmt: skip
def test_what_was_changed_is_shown(
    ran: Project,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Change,
    options: tuple[str, ...],
    words: tuple[str, ...],
) -> None:
    """A changed run is refused where it first asks something else, with the difference and what caused it."""
    project = Project(tmp_path)
    for name in ("config.yaml", "skill.md", *(f"data/{split}/items.json" for split in ("train", "val", "test"))):
        project.write(name, (ran.folder / name).read_text("utf-8"))
    (tmp_path / "run").symlink_to(ran.folder / "run")
    monkeypatch.chdir(tmp_path)
    change(tmp_path)
    with pytest.raises(SkillOptError) as caught:
        train("config.yaml", options, out="again", replay="run")
    told = str(caught.value)
    for word in words:
        assert word in told, f"{word!r} is not in:\n{told}"
    assert len(told.splitlines()) < 90 and max(map(len, told.splitlines())) < 400
    assert caught.value.exit_code == 2
    assert "run_failed" in [line["event"] for line in project.lines("again/events.jsonl")]


class Stops:
    """Stops a run in its second step."""

    @hookimpl
    def skillopt_update(self, step: Any) -> None:
        if step.number == 2:
            raise StoppedEarly("enough")


def test_a_run_that_is_not_finished_is_replayed_as_far_as_it_goes(
    ran: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ran.folder)
    with pytest.raises(StoppedEarly):
        train("config.yaml", out="part", replay="run", plugins=[("stops", Stops())])
    with pytest.raises(SkillOptError, match="part never made this call") as caught:
        train("config.yaml", out="part-again", replay="part")
    assert "The run is unfinished, at step 1: it can be replayed as far as it has come" in str(caught.value)
    assert len(ran.json("part-again/history.json")) == 1, "the step until then was taken"


def test_what_is_no_run_is_refused_and_so_is_a_series(ran: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ran.folder)
    for name, words in (("nowhere", "nowhere is not a folder"), ("data", r"data holds no calls\.sqlite")):
        with pytest.raises(SkillOptError, match=f"--replay: {words}"):
            train("config.yaml", replay=name)
    ran.run("train", "config.yaml", "--replay", "run", "--seeds", "2").refused("--seeds")
    ran.write("named.yaml", json.dumps({"_base_": "config.yaml", "model": {"backend": "replay"}}))
    with pytest.raises(SkillOptError, match="'replay' is no backend to be named in a configuration"):
        train("named.yaml")
