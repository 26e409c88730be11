"""Agent programs train: `skillopt train ... -o model.backend=LABEL` with a stand-in for the program, two steps.

What proves it is what the model received, and what the optimizer was shown of an agent's work.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_world import LOOKED, ServedAgent
from served_world import Served
from skillopt_testkit.programs import stand_in
from skillopt_testkit.project import KINDS, Project, world
from skillopt_testkit.servers import ChatServer

SURE = "{insight: 1.0, harmful: 0.0, distractors: 0.0, duplicates: 0.0, bad_anchors: 0.0, merging: 1.0, ranking: 1.0}"
KEY = "agent-key-0123456789abcdef"


def make(folder: Path, **model: Any) -> Project:
    """A small world and a configuration in which nothing names a backend."""
    project = Project.make(folder, train=4, selection=4, test=2)
    project.write("world.yaml", world(SURE))
    settings = {
        "_base_": "package:skillopt_kernel/default.yaml",
        "train": {"num_epochs": 2, "batch_size": 4},
        "optimizer": {"lr_scheduler": "constant", "use_slow_update": False, "use_meta_skill": False},
        "env": {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data", "skill_init": "skill.md"},
        "model": {"optimizer": "optimizer", "target": "target", **model},
    }
    project.write("mine.yaml", json.dumps(settings))
    return project


@pytest.mark.parametrize("optimizer", ["openai_chat", "codex_exec"])
def test_codex_trains_two_steps(tmp_path: Path, optimizer: str) -> None:
    program = stand_in(tmp_path / "programs", "codex")
    project = make(tmp_path / "project", codex_exec_path=str(program))
    with ChatServer(ServedAgent(Served.of(project))) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "CODEX_EXEC_BASE_URL": server.url}
        if optimizer == "openai_chat":
            given["PATH"] = str(tmp_path)  # where there is no bubblewrap
        overrides = ["-o", "model.backend=codex_exec", "-o", f"model.optimizer_backend={optimizer}"]
        project.run("train", "mine.yaml", "--out", "run", *overrides, env=given).ok()
        asked = {name: [each.body for each in server.requests if each.body["model"] == name]
                 for name in ("target", "optimizer")}  # fmt: skip
    history, summary = project.json("run/history.json"), project.json("run/summary.json")
    assert len(history) == 2
    assert history[0]["action"] == "accept_new_best"
    assert any(rule in (project.folder / "run/best_skill.md").read_text("utf-8") for rule in KINDS.values())
    shown = [json.dumps(body, ensure_ascii=False) for body in asked["optimizer"]]
    assert any(LOOKED in text for text in shown), "the optimizer sees what an agent's commands printed"
    assert any("Answer in few words" in json.dumps(body) for body in asked["target"]), "the skill reached the model"
    tokens = summary["token_summary"]
    assert tokens["_target"]["prompt_tokens"] == 10 * len(asked["target"]), "of every request of every job"
    assert tokens["_target"]["calls"] < len(asked["target"])
    attempts = [line["attempt"] for line in project.lines("run/outcomes.jsonl")]
    notes = [note for note in summary["notes"] if "isolated" in note]
    open_ones = sum(attempt["isolated"] is False for attempt in attempts)
    assert bool(notes) == bool(open_ones) and all(str(open_ones) in note for note in notes)
    assert optimizer == "codex_exec" or open_ones == len(attempts)
    kept = b"".join(path.read_bytes() for path in (project.folder / "run").rglob("*") if path.is_file())
    assert KEY.encode() not in kept


@pytest.mark.parametrize(
    ("fault", "changes", "words"),
    [
        ("missing", {}, ("was not found. Install it (`npm install -g @openai/codex`)", "model.codex_exec_path")),
        ("old", {}, ("does not have --ignore-user-config", "npm install -g @openai/codex@latest")),
        ("", {"CODEX_EXEC_BASE_URL": "", "HOME": "nowhere"}, ("Codex is not signed in", "codex login")),
    ],
)
def test_a_program_that_cannot_work_ends_the_run_before_the_first_task(
    tmp_path: Path, fault: str, changes: dict[str, str], words: tuple[str, ...]
) -> None:
    program = stand_in(tmp_path / "programs", "codex", fault if fault == "old" else "")
    if fault == "missing":
        program.unlink()
    project = make(tmp_path / "project", codex_exec_path=str(program))
    with ChatServer(["ok"]) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "CODEX_EXEC_BASE_URL": server.url}
        if changes:
            given["CODEX_API_KEY"] = given["OPENAI_API_KEY"] = ""
            given["OPTIMIZER_OPENAI_API_KEY"] = KEY
        given |= changes | {"CODEX_HOME": ""}
        refused = project.run("train", "mine.yaml", "-o", "model.backend=codex_exec", env=given)
        refused.refused(*words)
        assert server.requests == []


def test_a_requirement_of_isolation_refuses_where_there_is_none(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "programs", "codex")
    project = make(tmp_path / "project", codex_exec_path=str(program))
    given = {"CODEX_EXEC_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": KEY, "PATH": str(tmp_path)}
    overrides = ["-o", "model.backend=codex_exec", "-o", "execution.require_isolation=true"]
    project.run("train", "mine.yaml", *overrides, env=given).refused(
        "execution.require_isolation is true", "bubblewrap"
    )
