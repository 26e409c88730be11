"""The real Claude Code against a loopback endpoint: `tox -e real-cli`. What counts is what the endpoint received.

The newest version and the oldest that is said to work, which is what npm installs beside Node 20.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from agent_world import LOOKED, ServedAgent, shell_call
from real_programs import installed
from served_world import Served
from skillopt_backend_claude_chat.backend import make_backend as make_chat
from skillopt_backend_claude_chat.settings import ClaudeChatSettings
from skillopt_backend_claude_code_exec.backend import make_backend as make_agent
from skillopt_backend_claude_code_exec.settings import ClaudeCodeExecSettings
from skillopt_kernel import DriverContext
from skillopt_kernel.errors import (
    CallTimeout,
    ContextTooLong,
    ModelError,
    PassingError,
    PermanentError,
    RejectedRequest,
)
from skillopt_kernel.models.requests import AgentJob, ChatRequest, ImagePart, Message, TextPart, Tool
from skillopt_lib_agent.claude.program import OLDEST
from skillopt_testkit.project import KINDS
from skillopt_testkit.servers import ChatServer, Reply
from test_agents_train import KEY, make

NEWEST = "2.1.332"
SKILL = "# Sorting\n\n- Sort by the second column, for $1 or $ARGUMENTS. 🦉\n"
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
CANARY = "canary-of-the-operator"
CONTEXT = DriverContext(logging.getLogger("skillopt.test"))
ASKED = (Message("system", "Answer in few words. ü"), Message("user", "Say ok."))
ANSWER = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100c9fe92ef"
    "0000000049454e44ae426082"
)


@pytest.fixture(scope="session", params=[NEWEST, OLDEST])
def claude(request: pytest.FixtureRequest) -> Path:
    return installed("@anthropic-ai/claude-code", request.param, "claude")


@pytest.fixture(scope="session")
def newest() -> Path:
    return installed("@anthropic-ai/claude-code", NEWEST, "claude")


@pytest.fixture(autouse=True)
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator with instructions, skills, settings and keys of their own, in home and in the working folder."""
    home = tmp_path / "operator"
    for name in (".claude/CLAUDE.md", ".claude/skills/other/SKILL.md", "CLAUDE.md", "AGENTS.md", ".claude/rules/a.md"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"---\nname: other\ndescription: {CANARY}\n---\n{CANARY}\n", "utf-8")
    hook = {"hooks": [{"type": "command", "command": f"echo {CANARY}"}]}
    told = {"env": {"FOREIGN": CANARY}, "hooks": {"UserPromptSubmit": [hook]}}
    (home / ".claude/settings.json").write_text(json.dumps(told), "utf-8")
    (home / ".mcp.json").write_text(json.dumps({"mcpServers": {CANARY: {"command": CANARY}}}), "utf-8")
    monkeypatch.setenv("HOME", str(home))
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "ANYTHING"):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.chdir(home)
    return home


@pytest.fixture
def ask(newest: Path) -> Callable[..., Any]:
    return asking(newest)


def asking(program: Path) -> Callable[..., Any]:
    """Makes one call, and gives its reply and what the endpoint received."""

    def call(*replies: Any, settings: Mapping[str, Any] | None = None, **options: Any) -> Any:
        with ChatServer(replies) as server:
            told = {"path": str(program), "base_url": server.root, "api_key": KEY, **(settings or {})}
            backend = make_chat(ClaudeChatSettings(**told), CONTEXT)
            try:
                reply = backend.open_chat("target").complete(ChatRequest(**{"messages": ASKED, **options}))
            finally:
                backend.close()
            return reply, [received.body for received in server.requests]

    return call


def agent(program: Path, server: ChatServer, **settings: Any) -> Any:
    told = ClaudeCodeExecSettings(path=str(program), base_url=server.root, **{"api_key": KEY, **settings})
    return make_agent(told, CONTEXT)


def commands(*wanted: str, answer: str = "Done.") -> Any:
    """A model that has these commands run, one after the other, and then answers."""

    def script(body: Mapping[str, Any]) -> Reply:
        results = sum(message["role"] == "tool" for message in body["messages"])
        if results < len(wanted):
            call = shell_call(body, wanted[results])
            assert call is not None
            return Reply(tool_calls=({**call, "id": f"toolu_{results}"},), usage=USAGE)
        return Reply(answer, usage=USAGE)

    return script


def form(given: Mapping[str, Any], finish: str | None = None) -> Reply:
    function = {"name": "StructuredOutput", "arguments": json.dumps(given)}
    call = {"id": "toolu_1", "type": "function", "function": function}
    return Reply(tool_calls=(call,), finish_reason=finish, usage=USAGE)


def foreign(bodies: Any) -> bool:
    """Whether something of the operator's, or the key, is in requests."""
    text = json.dumps(bodies, ensure_ascii=False)
    return CANARY in text or KEY in text


# As an agent -----------------------------------------------------------------------------------------------


def test_a_rollout_with_tool_calls(claude: Path) -> None:
    script = commands("sort -t, -k2 given.csv > sorted.csv; env", "cat sorted.csv; exit 3", answer="It is sorted. ü")
    with ChatServer(script) as server:
        backend = agent(claude, server)
        job = AgentJob("Sort 🦉 given.csv.", SKILL, {"given.csv": b"b,1\na,2\n"}, ("*.csv",), edits=True)
        result = backend.open_agent("target").run(job)
        backend.close()
        requests = [received.body for received in server.requests]
        keys = {received.headers["x-api-key"] for received in server.requests}
    assert result.message == "It is sorted. ü"
    assert result.files == {"given.csv": b"b,1\na,2\n", "sorted.csv": b"b,1\na,2\n"}
    assert [turn.role for turn in result.trajectory] == ["assistant", "tool", "assistant", "tool", "assistant"]
    printed, failed = result.trajectory[1].content, result.trajectory[3].content
    assert "b,1\na,2" in failed and "Exit code 3" in failed
    assert (result.usage.calls, result.usage.prompt_tokens, result.usage.completion_tokens) == (1, 33, 21)
    assert len(requests) == 3 and keys == {KEY}
    text = json.dumps(requests[0], ensure_ascii=False)
    assert {tool["name"] for tool in requests[0]["tools"]} == {"Read", "Glob", "Grep", "Edit", "Write", "Bash"}
    assert "Sort by the second column, for $1 or $ARGUMENTS. 🦉" in text and "Sort 🦉 given.csv." in text
    assert not foreign(requests)
    assert "PATH=" in printed and CANARY not in printed and KEY not in printed
    assert requests[0]["output_config"]["effort"] == "medium"


def test_what_a_job_may_read_and_write(newest: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("GOLD", "utf-8")
    calls = [
        ("Read", {"file_path": str(outside)}),
        ("Grep", {"pattern": "GOLD", "path": str(tmp_path)}),
        ("Write", {"file_path": str(outside), "content": "spoilt"}),
        ("Write", {"file_path": "inside.txt", "content": "x"}),
        ("Read", {"file_path": "given.txt"}),
    ]

    def script(body: Mapping[str, Any]) -> Reply:
        results = sum(message["role"] == "tool" for message in body["messages"])
        if results == len(calls):
            return Reply("Done.")
        name, given = calls[results]
        function = {"name": name, "arguments": json.dumps(given)}
        return Reply(tool_calls=({"id": f"toolu_{results}", "type": "function", "function": function},))

    with ChatServer(script) as server:
        backend = agent(newest, server)
        job = AgentJob("Look.", SKILL, {"given.txt": b"seven"}, ("*.txt",))
        reading, writing = (backend.open_agent("target").run(each) for each in (job, edited(job)))
        backend.close()
        offered = [{tool["name"] for tool in received.body["tools"]} for received in server.requests]
    outputs = [[turn.content for turn in result.trajectory if turn.role == "tool"] for result in (reading, writing)]
    for told in outputs:
        assert told[0].startswith("[denied] ") and told[1].startswith("[denied] ")
        assert "seven" in told[4] and "GOLD" not in str(told[:2])
    assert outputs[1][2].startswith("[denied] ")
    assert outside.read_text("utf-8") == "GOLD"
    assert offered[0] == {"Read", "Glob", "Grep"}
    assert reading.files == {"given.txt": b"seven"}
    assert writing.files == {"given.txt": b"seven", "inside.txt": b"x"}


def edited(job: AgentJob) -> AgentJob:
    return AgentJob(job.prompt, job.skill, job.files, job.collect, edits=True)


def test_turns_and_pieces(newest: Path) -> None:
    def result(*replies: Any, **options: Any) -> Any:
        with ChatServer(replies) as server:
            backend = agent(newest, server)
            try:
                return backend.open_agent("target").run(AgentJob("Do it.", SKILL, edits=True, **options))
            finally:
                backend.close()

    looking = Reply(tool_calls=({"id": "toolu_1", "type": "function",
                                 "function": {"name": "Bash", "arguments": '{"command": "ls"}'}},))  # fmt: skip
    assert result(looking, "Done.", max_turns=1).message == ""
    assert result(Reply("Half", finish_reason="length"), " and half.").message == "Half and half."
    assert result("").message == ""


@pytest.mark.parametrize("way", ["oauth_token", "auth_token"])
def test_other_ways_to_sign_in(newest: Path, way: str) -> None:
    with ChatServer(commands("env")) as server:
        backend = agent(newest, server, api_key="", **{way: KEY})
        result = backend.open_agent("target").run(AgentJob("Look.", SKILL, edits=True))
        backend.close()
        assert {received.headers["authorization"] for received in server.requests} == {f"Bearer {KEY}"}
    assert (KEY in result.trajectory[1].content) == (way == "auth_token"), "a bearer token is a variable"


# As a chat model -------------------------------------------------------------------------------------------


def test_nothing_is_sent_but_the_call(claude: Path) -> None:
    reply, (body,) = asking(claude)(Reply("fine", usage=USAGE), max_tokens=4000, effort="low")
    assert (reply.text, reply.finish, reply.usage.prompt_tokens) == ("fine", "stop", 11)
    assert body["system"][-1]["text"] == "Answer in few words. ü"
    said = [part["text"] for part in body["messages"][0]["content"]]
    assert said[-1] == "Say ok."
    assert all("Today's date is" in text for text in said[:-1]), "the older version tells the date"
    assert (body["tools"], body["max_tokens"], body["output_config"]["effort"]) == ([], 4000, "low")
    assert not foreign(body)


def test_with_a_subscription_nothing_of_the_operator_is_sent(ask: Callable[..., Any], operator: Path) -> None:
    messages = (Message("user", f"/help with @{operator}/CLAUDE.md please"),)
    _, (body,) = ask("fine", messages=messages, settings={"api_key": "", "oauth_token": KEY})
    assert body["messages"][0]["content"][-1]["text"].strip() == messages[0].text
    assert body["tools"] == []
    assert not foreign(body)


def test_forms_and_tools(ask: Callable[..., Any]) -> None:
    reply, _ = ask(form({"answer": "ok"}), schema=ANSWER)
    assert json.loads(reply.text) == {"answer": "ok"}
    look = Tool("look", "Look at something.", {"type": "object", "properties": {"at": {"type": "string"}}})
    asked = {"content": "", "tool_calls": [{"name": "look", "arguments": '{"at": "sky"}'}]}
    reply, requests = ask(form({"wrong": 1}), form(asked), tools=(look,), tool_choice="required")
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("look", '{"at": "sky"}')]
    assert (reply.finish, reply.usage.prompt_tokens, len(requests)) == ("tool_calls", 22, 2)
    reply, _ = ask(form({"answer": "o"}, "length"), schema=ANSWER)
    assert reply.finish == "length"


@pytest.mark.parametrize("after", [" and more", Reply(" and more", finish_reason="length")])
def test_a_reply_that_was_cut_off_is_never_taken_for_whole(claude: Path, after: Any) -> None:
    reply, _ = asking(claude)(Reply("The beginning", finish_reason="length"), after)
    assert (reply.text, reply.finish) == ("The beginning", "length")


def test_an_image_goes_along(newest: Path) -> None:
    messages = (Message("user", (TextPart("What is it?"), ImagePart(PIXEL, "image/png"))),)
    with ChatServer(["a pixel"]) as server:
        told = ClaudeChatSettings(path=str(newest), base_url=server.root, api_key=KEY)
        reply = make_chat(told, CONTEXT).open_chat("target").complete(ChatRequest(messages))
        (body,) = [received.body for received in server.requests]
    assert reply.text == "a pixel"
    kinds = [part["type"] for part in body["messages"][0]["content"]]
    assert kinds == ["text", "text", "image"]


# Errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind", "most"),
    [
        (Reply("invalid", status=400), RejectedRequest, 3),
        (Reply("Your credit balance is too low to use the API.", status=400), PermanentError, 1),
        (Reply("prompt is too long: 208310 tokens > 200000 maximum", status=400), ContextTooLong, 1),
        (Reply(f"no such key: {KEY}", status=401), PermanentError, 1),
        (Reply("not yours", status=403), PermanentError, 1),
        (Reply("no such model", status=404), PermanentError, 2),
        (Reply("slow down", status=429, headers={"Retry-After": "3"}), PassingError, 1),
        (Reply("broken", status=500), PassingError, 1),
        (Reply("busy", status=529), PassingError, 1),
        (Reply(drop=True), PassingError, 1),
        (Reply(body=b"<html>gateway</html>"), PassingError, 1),
    ],
)
def test_an_error_is_never_an_answer(newest: Path, reply: Reply, kind: type[ModelError], most: int) -> None:
    """`most`: the requests that the program makes of one; at 400 and 404 it tries again with fewer features."""
    with ChatServer([reply]) as server:
        backend = agent(newest, server)
        with pytest.raises(kind) as caught:
            backend.open_agent("target").run(AgentJob("Do it.", SKILL))
        backend.close()
        assert KEY not in str(caught.value)
        assert 1 <= len(server.requests) <= most


def test_an_endpoint_that_hangs_is_given_up(newest: Path) -> None:
    over = threading.Event()

    def hang(_: Any) -> Reply:
        over.wait(120)
        return Reply("late")

    with ChatServer(hang) as server:
        backend = agent(newest, server)
        backend.check("target")  # it is probed before the time begins
        try:
            with pytest.raises(CallTimeout):
                backend.open_agent("target").run(AgentJob("Do it.", SKILL, deadline=time.monotonic() + 3))
        finally:
            over.set()
            backend.close()


# A training ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", ["claude", "claude_code_exec"])
def test_two_steps_of_a_training(newest: Path, tmp_path: Path, label: str) -> None:
    project = make(tmp_path / "project", claude_code_exec_tools=["Read", "Bash"])
    with ChatServer(ServedAgent(Served.of(project))) as server:
        given = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "AZURE_OPENAI_ENDPOINT": "",
                 "ANTHROPIC_BASE_URL": server.root, "ANTHROPIC_API_KEY": KEY,
                 "CLAUDE_CLI_BIN": str(newest), "CLAUDE_CODE_EXEC_PATH": str(newest)}  # fmt: skip
        overrides = ["-o", f"model.backend={label}"]
        project.run("train", "mine.yaml", "--out", "run", *overrides, env=given, timeout=300).ok()
        shown = [json.dumps(each.body) for each in server.requests if each.body["model"] == "optimizer"]
    assert project.json("run/history.json")[0]["action"] == "accept_new_best"
    assert any(rule in (project.folder / "run/best_skill.md").read_text("utf-8") for rule in KINDS.values())
    assert any(LOOKED in text for text in shown) == (label == "claude_code_exec")
