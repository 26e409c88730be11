"""Claude trains: as the model of both roles, and as the agent beside a Claude or another optimizer; two steps each.

What proves it is what the endpoint received, and what the optimizer was shown of an agent's work.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_world import LOOKED, ServedAgent
from served_world import Served
from skillopt_testkit.programs import stand_in
from skillopt_testkit.project import KINDS
from skillopt_testkit.servers import ChatServer
from test_agents_train import KEY, make

MESSAGES = "/v1/messages?beta=true"


def variables(server: ChatServer, program: Path) -> dict[str, str]:
    """What an operator's environment says."""
    return {
        "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": "",
        "ANTHROPIC_BASE_URL": server.root, "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CLI_BIN": str(program), "CLAUDE_CODE_EXEC_PATH": str(program),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("label", "optimizer", "paths"),
    [
        ("claude", None, {"optimizer": MESSAGES, "target": MESSAGES}),
        ("claude_code_exec", None, {"optimizer": "/v1/chat/completions", "target": MESSAGES}),
        ("claude_code_exec", "anthropic", {"optimizer": MESSAGES, "target": MESSAGES}),
    ],
)
def test_two_steps(tmp_path: Path, label: str, optimizer: str | None, paths: dict[str, str]) -> None:
    program = stand_in(tmp_path / "programs", "claude")
    project = make(tmp_path / "project", claude_code_exec_tools=["Read", "Bash"])
    overrides = ["-o", f"model.backend={label}"]
    overrides += ["-o", f"model.optimizer_backend={optimizer}"] if optimizer else []
    with ChatServer(ServedAgent(Served.of(project))) as server:
        given = variables(server, program)
        project.run("train", "mine.yaml", "--out", "run", *overrides, env=given).ok()
        asked = {name: [each for each in server.requests if each.body["model"] == name] for name in paths}
    assert {name: {each.path for each in requests} for name, requests in asked.items()} == {
        name: {path} for name, path in paths.items()
    }
    history, summary = project.json("run/history.json"), project.json("run/summary.json")
    assert len(history) == 2
    assert history[0]["action"] == "accept_new_best"
    assert any(rule in (project.folder / "run/best_skill.md").read_text("utf-8") for rule in KINDS.values())
    assert any("Answer in few words" in json.dumps(each.body) for each in asked["target"]), (
        "the skill reached the model"
    )
    tokens = summary["token_summary"]["_target"]
    assert tokens["prompt_tokens"] == 10 * len(asked["target"]), "of every request of every call"
    if label == "claude_code_exec":
        shown = [json.dumps(each.body, ensure_ascii=False) for each in asked["optimizer"]]
        assert any(LOOKED in text for text in shown), "the optimizer sees what an agent's commands printed"
        assert tokens["calls"] < len(asked["target"])
    kept = b"".join(path.read_bytes() for path in (project.folder / "run").rglob("*") if path.is_file())
    assert KEY.encode() not in kept


@pytest.mark.parametrize("label", ["claude", "claude_code_exec"])
@pytest.mark.parametrize(
    ("fault", "changes", "words"),
    [
        ("missing", {}, ("was not found. Install it (`npm install -g @anthropic-ai/claude-code`)", "_path")),
        ("old", {}, ("does not have --setting-sources", "npm install -g @anthropic-ai/claude-code@latest")),
        ("", {"ANTHROPIC_API_KEY": ""}, ("nothing to sign in with", "claude setup-token")),
    ],
)
def test_a_program_that_cannot_work_ends_the_run_before_the_first_task(
    tmp_path: Path, label: str, fault: str, changes: dict[str, str], words: tuple[str, ...]
) -> None:
    program = stand_in(tmp_path / "programs", "claude", fault if fault == "old" else "")
    if fault == "missing":
        program.unlink()
    project = make(tmp_path / "project")
    with ChatServer(["ok"]) as server:
        given = variables(server, program) | changes
        project.run("train", "mine.yaml", "-o", f"model.backend={label}", env=given).refused(*words)
        assert server.requests == []
