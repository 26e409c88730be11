"""Own tasks done by an agent program: a stand-in of Codex as the target, two steps."""

from __future__ import annotations

import json
from pathlib import Path

from agent_world import LOOKED, ServedAgent
from served_world import Served
from skillopt_testkit.programs import stand_in
from skillopt_testkit.project import KINDS, Project, world
from skillopt_testkit.servers import ChatServer

SURE = "{insight: 1.0, harmful: 0.0, distractors: 0.0, duplicates: 0.0, bad_anchors: 0.0, merging: 1.0, ranking: 1.0}"
FRONT = "---\nname: answering\ndescription: Answers short questions.\n---\n"


def test_an_agent_program_trains_on_own_tasks(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "programs", "codex")
    project = Project.make(tmp_path / "project", train=4, selection=4, test=2)
    project.write("world.yaml", world(SURE))
    project.write("SKILL.md", f"{FRONT}# Answering\n\n- Answer in few words.\n")
    settings = {
        "_base_": "tasks",
        "train": {"num_epochs": 2, "batch_size": 4},
        "optimizer": {"lr_scheduler": "constant", "use_slow_update": False, "use_meta_skill": False},
        "model": {"backend": "codex_exec", "optimizer_backend": "openai_chat", "codex_exec_path": str(program)},
    }
    project.write("mine.yaml", json.dumps(settings))
    models = ("-o", "model.optimizer=optimizer", "model.target=target")
    with ChatServer(ServedAgent(Served.of(project))) as server:
        given = {
            "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "agent-key-0123456789abcdef",
            "CODEX_EXEC_BASE_URL": server.url, "PATH": str(tmp_path),
        }  # fmt: skip
        project.run(
            "train", "mine.yaml", "--tasks", "data", "--skill", "SKILL.md", *models, "--out", "run", env=given
        ).ok()
        asked = [json.dumps(each.body) for each in server.requests if each.body["model"] == "target"]
    assert len(project.json("run/history.json")) == 2
    assert project.json("run/history.json")[0]["action"] == "accept_new_best"
    best = (project.folder / "run/best_skill.md").read_text("utf-8")
    assert best.startswith(FRONT)
    assert any(rule in best for rule in KINDS.values())
    assert any("Answer in few words" in text for text in asked), "the skill reached the model"
    assert any(LOOKED in text for text in asked)
    attempts = [line["attempt"] for line in project.lines("run/outcomes.jsonl")]
    assert all(attempt["state"]["version"] for attempt in attempts)
