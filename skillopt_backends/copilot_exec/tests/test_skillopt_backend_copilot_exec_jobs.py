"""What a job of `copilot_exec` may do: no more than it needs, and everything only where somebody said so."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from skillopt_backend_copilot_exec.backend import CopilotExecBackend, make_backend
from skillopt_backend_copilot_exec.settings import CopilotExecSettings
from skillopt_kernel.errors import ConfigError, PermanentError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import AgentJob
from skillopt_testkit import ChatServer, Reply
from skillopt_testkit.programs import stand_in

SKILL = "---\nname: sums\n---\n\n# Sums\n\n- Add from left to right.\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stand_in(tmp_path_factory.mktemp("programs"), "copilot")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(["42"]) as server:
        yield server


@pytest.fixture
def backend(program: Path, server: ChatServer) -> Callable[..., CopilotExecBackend]:
    def make(common: Any = None, **settings: Any) -> CopilotExecBackend:
        told = {"copilot_exec_path": str(program), "copilot_provider_base_url": server.url, **settings}
        context = DriverContext(logging.getLogger("skillopt.test"), model=told.pop("model", "any"), common=common)
        return make_backend(CopilotExecSettings(**told), context)

    return make


def called(name: str, **arguments: Any) -> Mapping[str, Any]:
    return {"id": f"call-{name}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def offered(server: ChatServer) -> set[str]:
    return {tool["function"]["name"] for tool in server.requests[0].body["tools"]}


def outputs(result: Any) -> list[str]:
    return [turn.content for turn in result.trajectory if turn.role == "tool"]


def test_a_job_that_changes_nothing_may_only_read_its_folder(backend, server) -> None:
    """O-X4: what the task needs, and nothing else."""
    replies = [Reply(tool_calls=(called("view", path="task.txt"), called("view", path="/etc/hosts"))), "42"]
    server.script = lambda body: replies[min(1, sum(message["role"] == "tool" for message in body["messages"]))]
    result = backend().open_agent("target").run(AgentJob("Do it.", SKILL, {"task.txt": b"6 times 7"}))
    assert offered(server) == {"view", "grep", "glob"}
    seen, denied = outputs(result)
    assert seen == "6 times 7"
    assert denied.startswith("[denied] ")
    assert result.message == "42"


def test_a_tool_that_was_not_offered_is_not_there(backend, server) -> None:
    replies = [Reply(tool_calls=(called("bash", command="echo ran > ran"),)), "42"]
    server.script = lambda body: replies[min(1, sum(message["role"] == "tool" for message in body["messages"]))]
    result = backend().open_agent("target").run(AgentJob("Do it.", SKILL, collect=("*",)))
    assert not result.files
    assert "does not exist" in outputs(result)[0]


@pytest.mark.parametrize(("edits", "all_tools"), [(True, True), (False, False)])
def test_everything_is_allowed_only_to_jobs_that_write_and_only_where_it_was_said(
    backend, server, edits: bool, all_tools: bool
) -> None:
    job = AgentJob("Do it.", SKILL, edits=edits)
    backend(copilot_exec_allow_all_tools=True).open_agent("target").run(job)
    assert ("task" in offered(server)) is all_tools


def test_the_skill_stands_in_the_instructions_and_not_among_the_files(backend, server) -> None:
    replies = [Reply(tool_calls=(called("view", path="."),)), "42"]
    server.script = lambda body: replies[min(1, sum(message["role"] == "tool" for message in body["messages"]))]
    result = backend().open_agent("target").run(AgentJob("Do it.", SKILL, {"task.txt": b""}, collect=("**/*",)))
    system = server.requests[0].body["messages"][0]["content"]
    assert "- Add from left to right." in system and "name: sums" not in system
    assert outputs(result) == ["task.txt"]
    assert set(result.files) == {"task.txt"}


def test_effort_is_sent_where_it_is_set(backend, server) -> None:
    for settings in ({}, {"copilot_exec_reasoning_effort": "low"}):
        backend(**settings).open_agent("target").run(AgentJob("Do it.", SKILL))
    assert [received.body.get("reasoning_effort") for received in server.requests] == [None, "low"]


def test_a_program_that_is_not_signed_in_is_no_answer(backend) -> None:
    with pytest.raises(PermanentError, match="COPILOT_GITHUB_TOKEN"):
        backend(copilot_provider_base_url="").open_agent("target").run(AgentJob("Do it.", SKILL))


def test_isolation_that_is_required_and_missing_is_told_before_the_first_job(backend, monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")  # no bubblewrap is found
    made = backend(SimpleNamespace(require_isolation=True))
    assert "execution.require_isolation" in " ".join(
        words for severity, words in made.check("target") if severity == "error"
    )
    with pytest.raises(PermanentError, match="require_isolation"):
        made.open_agent("target").run(AgentJob("Do it.", SKILL))
    assert not backend().open_agent("target").run(AgentJob("Do it.", SKILL)).isolated


def test_it_plays_the_target_as_an_agent_only(backend) -> None:
    with pytest.raises(ConfigError, match="copilot_chat"):
        backend().open_chat("optimizer")


@pytest.mark.parametrize(
    "wrong", [{"copilot_exec_timeout": 0.0}, {"copilot_exec_pass_variables": ("COPILOT_ALLOW_ALL",)}]
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    """O-X4: the switch that allows everything is not handed on, whoever names it."""
    with pytest.raises(ValueError, match=r"must"):
        CopilotExecSettings(**wrong)
