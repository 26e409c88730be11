"""Copilot and Cursor's agent train: `skillopt train ... -o model.backend=LABEL` with a stand-in for the program.

What proves it is what the model received, and what the optimizer was shown of an agent's work.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import define
from served_world import Served
from skillopt_testkit.programs import stand_in
from skillopt_testkit.project import KINDS, Project
from skillopt_testkit.servers import ChatServer, Reply
from skillopt_testkit.wording import text_of
from test_agents_train import KEY, make

SHORT = ["-o", "train.num_epochs=1", "-o", "train.batch_size=2", "-o", "evaluation.eval_test=false"]
"""Two steps of two tasks, and no test at the end: each call is a process of its own."""

READERS = {"view", "read"}
"""The tools by which these programs read a file."""

LOOKED_FOR = "notes-that-are-not-there.txt"


@define
class Reading:
    """A model that reads a file first where it is offered a tool for that, and then answers as `served` does."""

    served: Served

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        messages = body["messages"]
        offered = {tool["function"]["name"] for tool in body.get("tools", ())} & READERS
        if offered and not any(message["role"] == "tool" for message in messages):
            function = {"name": offered.pop(), "arguments": json.dumps({"path": LOOKED_FOR})}
            return Reply(tool_calls=({"id": "call-1", "type": "function", "function": function},))
        system, user = (text_of(message) for message in messages[:2])
        return self.served(
            {**body, "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]}
        )


def asked(server: ChatServer, model: str) -> list[str]:
    """What a model was asked, each request as text."""
    bodies = [received.body for received in server.requests if received.body["model"] == model]
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


def assert_trained(project: Project) -> dict[str, Any]:
    """Two steps were made, a rule was learnt, and no key was kept; the summary."""
    history = project.json("run/history.json")
    assert len(history) == 2
    assert history[0]["action"] == "accept_new_best"
    assert any(rule in (project.folder / "run/best_skill.md").read_text("utf-8") for rule in KINDS.values())
    kept = b"".join(path.read_bytes() for path in (project.folder / "run").rglob("*") if path.is_file())
    assert KEY.encode() not in kept
    summary: dict[str, Any] = project.json("run/summary.json")
    return summary


def copilot(server: ChatServer) -> dict[str, str]:
    """The variables by which both backends find their endpoint, as the program itself calls them."""
    return {"COPILOT_PROVIDER_BASE_URL": server.url, "COPILOT_PROVIDER_API_KEY": KEY}


def test_copilot_trains_two_steps_in_every_role(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "programs", "copilot")
    project = make(tmp_path / "project", copilot_exec_path=str(program))
    with ChatServer(Reading(Served.of(project))) as server:
        project.run(
            "train", "mine.yaml", "--out", "run", "-o", "model.backend=copilot", *SHORT, env=copilot(server)
        ).ok()
        requests = [received.body for received in server.requests]
    assert not [body for body in requests if "tools" in body], "no tool of Copilot reaches the model"
    tokens = assert_trained(project)["token_summary"]
    assert tokens["_total"]["calls"] == len(requests)
    assert tokens["_total"]["prompt_tokens"] == 10 * len(requests)
    efforts = {body["model"]: body.get("reasoning_effort") for body in requests}
    assert efforts == {"optimizer": "medium", "target": None}


def test_copilot_trains_two_steps_as_an_agent(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "programs", "copilot")
    project = make(tmp_path / "project", copilot_exec_path=str(program))
    with ChatServer(Reading(Served.of(project))) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, **copilot(server)}
        project.run("train", "mine.yaml", "--out", "run", "-o", "model.backend=copilot_exec", *SHORT, env=given).ok()
        shown, target = asked(server, "optimizer"), asked(server, "target")
    tokens = assert_trained(project)["token_summary"]
    assert any(LOOKED_FOR in text for text in shown), "the optimizer sees what an agent did"
    assert all("Answer in few words" in text for text in target), "the skill stands in every request"
    assert tokens["_target"]["prompt_tokens"] == 10 * len(target), "of every request of every job"
    assert tokens["_target"]["calls"] == len(target) / 2


def test_cursor_trains_two_steps_and_its_use_is_said_to_be_unknown(tmp_path: Path) -> None:
    """O-C3."""
    program = stand_in(tmp_path / "programs", "cursor")
    project = make(
        tmp_path / "project", cursor_exec_path=str(program), cursor_exec_pass_variables=["STAND_IN_ENDPOINT"]
    )
    with ChatServer(Reading(Served.of(project))) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY}
        given |= {"STAND_IN_ENDPOINT": server.url, "CURSOR_API_KEY": KEY}
        project.run("train", "mine.yaml", "--out", "run", "-o", "model.backend=cursor", *SHORT, env=given).ok()
        shown, target = asked(server, "optimizer"), asked(server, "target")
    tokens = assert_trained(project)["token_summary"]
    assert any(LOOKED_FOR in text for text in shown), "the optimizer sees what an agent did"
    assert all("Answer in few words" in text for text in target), "the skill stands in every request"
    assert tokens["_target"]["prompt_tokens"] is None
    assert tokens["_target"]["unknown_calls"] == tokens["_target"]["calls"] == len(target) / 2
    assert tokens["_optimizer"]["prompt_tokens"] > 0


def test_a_budget_of_what_cursor_does_not_tell_needs_an_assumption(tmp_path: Path) -> None:
    program = stand_in(tmp_path / "programs", "cursor")
    project = make(tmp_path / "project", cursor_exec_path=str(program))
    with ChatServer(["ok"]) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "CURSOR_API_KEY": KEY}
        overrides = ["-o", "model.backend=cursor_exec", "-o", "budget.tokens=100000"]
        refused = project.run("train", "mine.yaml", *overrides, env=given)
        refused.refused("budget.assume_per_call")
        assert server.requests == []


def test_a_program_that_cannot_work_ends_the_run_before_the_first_task(tmp_path: Path) -> None:
    """O-X1, O-X2: told at once, and no score of 0."""
    project = make(tmp_path / "project", copilot_exec_path=str(tmp_path / "nowhere"))
    with ChatServer(["ok"]) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, **copilot(server)}
        for label, words in (
            ("copilot_chat", "npm install -g @github/copilot"),
            ("copilot_exec", "model.copilot_exec_path"),
        ):
            project.run("train", "mine.yaml", "-o", f"model.backend={label}", env=given).refused("was not found", words)
        old = stand_in(tmp_path / "programs", "cursor", "old")
        given |= {"CURSOR_API_KEY": KEY, "CURSOR_EXEC_PATH": str(old)}
        project.run("train", "mine.yaml", "-o", "model.backend=cursor", env=given).refused("does not have --sandbox")
        assert server.requests == []
