"""The real Copilot CLI against a loopback endpoint: `tox -e real-cli`. What counts is what the endpoint received."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from agent_world import ServedAgent
from real_programs import installed
from served_world import Served
from skillopt_backend_copilot_chat.backend import CopilotChatBackend
from skillopt_backend_copilot_chat.backend import make_backend as make_chat
from skillopt_backend_copilot_chat.settings import CopilotChatSettings
from skillopt_backend_copilot_exec.backend import CopilotExecBackend
from skillopt_backend_copilot_exec.backend import make_backend as make_exec
from skillopt_backend_copilot_exec.settings import CopilotExecSettings
from skillopt_kernel import DriverContext
from skillopt_kernel.errors import (
    CallTimeout,
    ContextTooLong,
    ModelError,
    PassingError,
    PermanentError,
    RejectedRequest,
)
from skillopt_kernel.models.requests import AgentJob, ChatRequest, ImagePart, Message, TextPart
from skillopt_lib_copilot.program import OLDEST
from skillopt_testkit.project import KINDS
from skillopt_testkit.servers import ChatServer, Reply
from test_agents_train import KEY, make
from test_copilot_and_cursor_train import SHORT, copilot

VERSION = OLDEST
CANARY = "canary-of-the-operator"
SKILL = "# Sorting\n\n- Sort by the second column. 🦉 größer\n"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf500f00038601805a34"
    "7d6b0000000049454e44ae426082"
)
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18, "prompt_tokens_details": {"cached_tokens": 5}}
ASKED = (Message("system", "Answer in few words. 🦉"), Message("user", "Say ok. größer"))


@pytest.fixture(scope="session")
def program() -> Path:
    return installed("@github/copilot", VERSION, "copilot")


@pytest.fixture(autouse=True)
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator with instructions, skills, settings and keys of their own, who works in a folder with more of them.

    The cache stays where it was: there lies what the program has unpacked.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    home = tmp_path / "operator"
    for name in (
        ".copilot/copilot-instructions.md", ".copilot/skills/other/SKILL.md", ".agents/skills/other/SKILL.md",
        ".github/copilot-instructions.md", "AGENTS.md", "CLAUDE.md",
    ):  # fmt: skip
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"---\nname: other\ndescription: {CANARY}\n---\n{CANARY}\n", "utf-8")
    (home / ".copilot/config.json").write_text("{}", "utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "ANYTHING", "COPILOT_ALLOW_ALL", "COPILOT_MODEL"):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.chdir(home)
    return home


def settings(program: Path, server: ChatServer) -> dict[str, Any]:
    endpoint = {"copilot_provider_base_url": server.url, "copilot_provider_api_key": KEY}
    return {"copilot_exec_path": str(program), **endpoint}


def chat(program: Path, server: ChatServer, **more: Any) -> CopilotChatBackend:
    made = CopilotChatSettings(**{**settings(program, server), **more})
    return make_chat(made, DriverContext(logging.getLogger("test"), model="some-model"))


def agent(program: Path, server: ChatServer, **more: Any) -> CopilotExecBackend:
    made = CopilotExecSettings(**{**settings(program, server), **more})
    return make_exec(made, DriverContext(logging.getLogger("test"), model="some-model"))


def calling(*wanted: tuple[str, Mapping[str, Any]], answer: str = "Done.") -> Any:
    """A model that calls these tools, one after the other, and then answers."""

    def script(body: Mapping[str, Any]) -> Reply:
        results = sum(message["role"] == "tool" for message in body["messages"])
        if results < len(wanted):
            name, arguments = wanted[results]
            function = {"name": name, "arguments": json.dumps(arguments)}
            return Reply(tool_calls=({"id": f"call-{results}", "type": "function", "function": function},), usage=USAGE)
        return Reply(answer, usage=USAGE)

    return script


def shell(command: str) -> tuple[str, Mapping[str, Any]]:
    return "bash", {"command": command, "description": "as asked", "mode": "sync"}


def received(server: ChatServer) -> str:
    """All that the endpoint was sent, as text."""
    return json.dumps([[each.body, dict(each.headers)] for each in server.requests], ensure_ascii=False)


def test_the_probe_finds_what_is_needed(program: Path) -> None:
    with ChatServer(["ok"]) as server:
        findings = agent(program, server).check("target")
        assert not [sentence for severity, sentence in findings if severity == "error"]
        assert f"Copilot {VERSION}" in findings[0][1]
        assert server.requests == [], "a check spends nothing"


def test_a_chat_offers_no_tool_and_tells_nothing_of_the_operator(program: Path) -> None:
    with ChatServer([Reply("It is fine. 🦉", usage=USAGE)]) as server:
        made = chat(program, server)
        assert made.check("target")[0][0] == "ok"
        content = (TextPart(ASKED[1].text), ImagePart(PIXEL, "image/png"))
        request = ChatRequest((ASKED[0], Message("user", content)), effort="high", max_tokens=77)
        reply = made.open_chat("optimizer").complete(request)
        made.close()
    assert (reply.text, reply.finish) == ("It is fine. 🦉", "stop")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cached_tokens) == (11, 7, 5)
    (only,) = server.requests
    assert not only.body.get("tools")
    assert (only.body["model"], only.body["reasoning_effort"], only.body["max_tokens"]) == ("some-model", "high", 77)
    assert only.headers["authorization"] == f"Bearer {KEY}"
    system, user = (message["content"] for message in only.body["messages"])
    assert ASKED[0].text in system
    assert any(ASKED[1].text in part.get("text", "") for part in user)
    assert any(part.get("image_url", {}).get("url", "").startswith("data:image/png;base64,") for part in user)
    assert CANARY not in received(server)


def test_a_long_conversation_goes_by_stdin_and_arrives_whole(program: Path) -> None:
    """O-W2."""
    skill, question = "- größer 🦉\n" * 4_000, "größer 🦉 " * 6_000
    with ChatServer(["ok"]) as server:
        chat(program, server).open_chat("target").complete(
            ChatRequest((Message("system", skill), Message("user", question)))
        )
    system, user = (message["content"] for message in server.requests[0].body["messages"])
    assert skill.strip() in system
    assert question.strip() in user


@pytest.mark.parametrize(
    ("reply", "finish"),
    [
        (Reply("cut off", finish_reason="length"), "length"),
        (Reply("", finish_reason="content_filter"), "filtered"),
        (Reply(""), "empty"),
    ],
)
def test_how_a_reply_ended(program: Path, reply: Reply, finish: str) -> None:
    with ChatServer([reply]) as server:
        assert chat(program, server).open_chat("optimizer").complete(ChatRequest(ASKED)).finish == finish


TOO_LONG = json.dumps({"error": {"message": "too many", "code": "context_length_exceeded"}}).encode()


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply("invalid", status=400), RejectedRequest),
        (Reply("no such key", status=401), PermanentError),
        (Reply("no such model", status=404), PermanentError),
        (Reply(status=400, body=TOO_LONG), ContextTooLong),
        (Reply("too large", status=413), ContextTooLong),
        (Reply("slow down", status=429, headers={"Retry-After": "0"}), PassingError),
        (Reply(drop=True), PassingError),
    ],
)
def test_an_error_is_typed_and_no_answer(program: Path, reply: Reply, kind: type[ModelError]) -> None:
    """The program asks again by itself, for 15 s after a server error: of these the cheapest stands for all."""
    with ChatServer([reply]) as server, pytest.raises(kind) as caught:
        chat(program, server).open_chat("target").complete(ChatRequest(ASKED))
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)


def test_a_wait_that_the_endpoint_asks_for_is_kept(program: Path) -> None:
    with ChatServer([Reply("slow down", status=429, headers={"Retry-After": "1"}), "ok"]) as server:
        assert chat(program, server).open_chat("target").complete(ChatRequest(ASKED)).text == "ok"
        assert len(server.requests) == 2


def test_what_is_too_long_for_the_program_itself_is_told_so(program: Path) -> None:
    many = "- größer 🦉\n" * 40_000
    asked = ChatRequest((Message("system", many), Message("user", "Say ok.")))
    with ChatServer(["ok"]) as server:
        for request in (asked, ChatRequest((Message("user", many),))):
            with pytest.raises(ContextTooLong):
                chat(program, server).open_chat("target").complete(request)
        assert server.requests == []
        wide = chat(program, server, copilot_provider_max_prompt_tokens=1_000_000)
        assert wide.open_chat("target").complete(asked).text == "ok"


def test_without_a_sign_in_the_program_says_what_to_do(program: Path) -> None:
    with ChatServer(["ok"]) as server, pytest.raises(PermanentError, match="COPILOT_GITHUB_TOKEN"):
        chat(program, server, copilot_provider_base_url="").open_chat("target").complete(ChatRequest(ASKED))


def test_an_agent_works_with_the_tools_that_it_needs(program: Path) -> None:
    """O-X3, O-X4: its commands see neither key nor variable of the operator's."""
    steps = (
        ("view", {"path": "given.csv"}),
        shell("sort given.csv > sorted.csv; cat sorted.csv; env"),
        ("create", {"path": "note.csv", "file_text": "größer,1\n"}),
        ("view", {"path": str(Path("/etc/hostname"))}),
    )
    with ChatServer(calling(*steps, answer="It is sorted.")) as server:
        made = agent(program, server)
        job = AgentJob("Sort given.csv. 🦉", SKILL, {"given.csv": b"b,1\na,2\n"}, ("*.csv",), edits=True)
        result = made.open_agent("target").run(job)
        made.close()
    first = server.requests[0].body
    offered = {tool["function"]["name"] for tool in first["tools"]}
    assert offered == {"view", "grep", "glob", "bash", "create", "edit"}
    assert "Sort by the second column. 🦉 größer" in first["messages"][0]["content"]
    assert "Sort given.csv. 🦉" in first["messages"][1]["content"]
    assert CANARY not in received(server)
    assert result.message == "It is sorted."
    assert result.files["sorted.csv"] == b"a,2\nb,1\n" and result.files["note.csv"] == "größer,1\n".encode()
    viewed, printed, created, denied = (turn.content for turn in result.trajectory if turn.role == "tool")
    assert "b,1" in viewed
    assert "a,2\nb,1" in printed and "PATH=" in printed and KEY not in printed
    assert "note.csv" in created
    assert denied.startswith("[denied] ")
    assert [turn.role for turn in result.trajectory] == ["assistant", "tool"] * 4 + ["assistant"]
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (55, 35), "of all five requests"


def test_an_agent_that_is_to_change_nothing_may_only_read(program: Path) -> None:
    with ChatServer(calling(("view", {"path": "."}))) as server:
        job = AgentJob("What is there?", SKILL, {"given.csv": b""}, ("**/*",))
        result = agent(program, server).open_agent("target").run(job)
    assert {tool["function"]["name"] for tool in server.requests[0].body["tools"]} == {"view", "grep", "glob"}
    assert "given.csv" in next(turn.content for turn in result.trajectory if turn.role == "tool")
    assert set(result.files) == {"given.csv"}


def test_an_agent_is_ended_at_its_deadline(program: Path) -> None:
    over = threading.Event()

    def hold(_: object) -> Reply:
        over.wait(300)
        return Reply("late")

    with ChatServer(hold) as server:
        made = agent(program, server, copilot_exec_timeout=5.0)
        made.check("target")
        try:
            with pytest.raises(CallTimeout):
                made.open_agent("target").run(AgentJob("Wait.", SKILL))
        finally:
            over.set()
            made.close()


def test_the_real_program_trains_in_every_role(tmp_path: Path, program: Path) -> None:
    project = make(tmp_path / "project", copilot_exec_path=str(program))
    with ChatServer(ServedAgent(Served.of(project))) as server:
        overrides = ["-o", "model.backend=copilot_exec", "-o", "model.optimizer_backend=copilot_chat", *SHORT]
        project.run("train", "mine.yaml", "--out", "run", *overrides, env=copilot(server), timeout=600).ok()
        targets = [each.body for each in server.requests if each.body["model"] == "target"]
    assert len(project.json("run/history.json")) == 2
    assert any(rule in (project.folder / "run/best_skill.md").read_text("utf-8") for rule in KINDS.values())
    assert all("Answer in few words" in json.dumps(body) for body in targets), "the skill reached the model"
    assert CANARY not in received(server)
