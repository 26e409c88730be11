"""The real Codex against a loopback endpoint: `tox -e real-cli`. What counts is what the endpoint received."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from agent_world import LOOKED, ServedAgent, shell_call, text_of
from real_programs import installed
from served_world import Served
from skillopt_backend_codex_exec.backend import CodexExecBackend, make_backend
from skillopt_backend_codex_exec.settings import CodexExecSettings
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
from skillopt_testkit.project import KINDS
from skillopt_testkit.servers import ChatServer, Reply
from test_agents_train import KEY, make

VERSION = "0.171.0"
SKILL = "# Sorting\n\n- Sort by the second column. 🦉\n"
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
CANARY = "canary-of-the-operator"


@pytest.fixture(scope="session")
def codex() -> Path:
    return installed("@openai/codex", VERSION, "codex")


@pytest.fixture(autouse=True)
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An operator with a configuration, instructions, skills, rules and keys of their own."""
    home = tmp_path / "operator"
    for name in (".codex/AGENTS.md", ".agents/skills/other/SKILL.md", ".codex/skills/other/SKILL.md", "AGENTS.md"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"---\nname: other\ndescription: {CANARY}\n---\n{CANARY}\n", "utf-8")
    (home / ".codex/config.toml").write_text(f'developer_instructions = "{CANARY}"\nmodel = "{CANARY}"\n', "utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CODEX_HOME", str(home / ".codex"))
    for name in ("OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "ANYTHING"):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.chdir(home)
    return home


def backend(codex: Path, url: str, **settings: Any) -> CodexExecBackend:
    made = CodexExecSettings(path=str(codex), base_url=url, api_key=KEY, **settings)
    return make_backend(made, DriverContext(logging.getLogger("test"), model="some-model"))


def commands(*wanted: str, answer: str = "Done.") -> Any:
    """A model that has these commands run, one after the other, and then answers."""

    def script(body: Mapping[str, Any]) -> Reply:
        results = sum(message["role"] == "tool" for message in body["messages"])
        if results < len(wanted):
            call = shell_call(body, wanted[results])
            assert call is not None
            return Reply(tool_calls=({**call, "id": f"call-{results}"},), usage=USAGE)
        return Reply(answer, usage=USAGE)

    return script


@pytest.fixture(scope="session")
def sandbox(codex: Path) -> Iterator[None]:
    """Skips what needs Codex's own sandbox where the machine does not allow one."""
    with ChatServer(commands("echo it-runs")) as server:
        made = backend(codex, server.url)
        result = made.open_agent("target").run(AgentJob("Run.", ""))
        made.close()
    if not any(turn.content.startswith("it-runs") for turn in result.trajectory):
        pytest.skip(f"Codex's sandbox does not work here: {result.trajectory}")
    yield


def test_a_rollout_with_tool_calls(codex: Path, sandbox: None) -> None:
    script = commands("sort -t, -k2 given.csv > sorted.csv; env", "cat sorted.csv; exit 3", answer="It is sorted. ü")
    with ChatServer(script) as server:
        made = backend(codex, server.url)
        job = AgentJob("Sort 🦉 given.csv.", SKILL, {"given.csv": b"b,1\na,2\n"}, ("*.csv",), edits=True)
        result = made.open_agent("target").run(job)
        requests = [received.body for received in server.requests]
        keys = {received.headers["authorization"] for received in server.requests}
    assert result.message == "It is sorted. ü"
    assert result.files == {"given.csv": b"b,1\na,2\n", "sorted.csv": b"b,1\na,2\n"}
    assert [turn.role for turn in result.trajectory] == ["assistant", "tool", "assistant", "tool", "assistant"]
    assert result.trajectory[3].content.startswith("b,1\na,2\n") and "[exit code 3]" in result.trajectory[3].content
    assert (result.usage.calls, result.usage.prompt_tokens, result.usage.completion_tokens) == (1, 33, 21)
    assert keys == {f"Bearer {KEY}"}
    texts = [json.dumps(body, ensure_ascii=False) for body in requests]
    assert {tool["name"] for tool in requests[0]["tools"]} == {"exec_command", "write_stdin", "view_image"}
    assert "Sort by the second column. 🦉" in texts[0] and "Sort 🦉 given.csv." in texts[0]
    assert not any(CANARY in text or KEY in text for text in texts), "nothing of the operator's is sent"
    printed = result.trajectory[1].content
    assert "PATH=" in printed and CANARY not in printed and KEY not in printed
    assert requests[0]["model"] == "some-model"


def test_what_a_job_may_write_and_reach(codex: Path, sandbox: None, operator: Path) -> None:
    with ChatServer(commands("echo x > made.txt; echo y > /usr/made.txt; cat made.txt")) as server:
        agent = backend(codex, server.url).open_agent("target")
        writing = agent.run(AgentJob("Write.", "", {}, ("*.txt",), edits=True))
        reading = agent.run(AgentJob("Write.", "", {}, ("*.txt",), edits=False))
    assert writing.files == {"made.txt": b"x\n"}
    assert reading.files == {}, "a job that may not write does not"
    assert not Path("/usr/made.txt").exists()
    reach = "exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected; cat {file}"
    with ChatServer() as server:
        port = server.root.rpartition(":")[2]
        server.script = commands(f"bash -c '{reach.format(port=port, file=operator / 'AGENTS.md')}'")
        closed = backend(codex, server.url).open_agent("target").run(AgentJob("Look.", "", edits=True))
        server.script = commands(f"bash -c '{reach.format(port=port, file='/dev/null')}'")
        opened = (
            backend(codex, server.url, network_access=True).open_agent("target").run(AgentJob("Look.", "", edits=True))
        )
    assert "connected" not in closed.trajectory[1].content
    assert "connected" in opened.trajectory[1].content
    assert (CANARY in closed.trajectory[1].content) == (not closed.isolated), "isolation is what keeps files from it"


def test_as_a_chat_model_it_has_no_tools_and_no_instructions_of_its_own(codex: Path) -> None:
    pixel = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c49444154789c63f8cfc0000003010100"
        "c9fe92ef0000000049454e44ae426082"
    )
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    messages = (Message("system", "You judge. ü"), Message("user", (TextPart("Say a."), ImagePart(pixel, "image/png"))))
    with ChatServer([Reply('{"a": 1}', usage=USAGE)]) as server:
        chat = backend(codex, server.url).open_chat("optimizer")
        reply = chat.complete(ChatRequest(messages, schema=schema, effort="high"))
        (received,) = [each.body for each in server.requests]
    assert (reply.text, reply.finish, reply.usage.prompt_tokens) == ('{"a": 1}', "stop", 11)
    assert received["tools"] == []
    assert received["reasoning"]["effort"] == "high"
    assert received["text"]["format"]["schema"] == schema
    told = [(item["role"], text_of(item).strip()) for item in received["input"]]
    assert told[0] == ("developer", "You judge. ü")
    assert [role for role, _ in told] == ["developer", "user"], told
    assert "Say a." in told[1][1]
    assert "data:image/png;base64," in json.dumps(received["input"][1])


def test_as_a_chat_model_it_asks_for_tools(codex: Path) -> None:
    answer = json.dumps({"content": "", "tool_calls": [{"name": "look", "arguments": '{"at": "sky"}'}]})
    look = Tool("look", "Look at something.", {"type": "object", "properties": {"at": {"type": "string"}}})
    with ChatServer([answer]) as server:
        chat = backend(codex, server.url).open_chat("optimizer")
        reply = chat.complete(ChatRequest((Message("user", "Look."),), tools=(look,), tool_choice="required"))
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("look", '{"at": "sky"}')]
    assert reply.finish == "tool_calls"


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply("invalid", status=400), RejectedRequest),
        (Reply(f"no such key: {KEY}", status=401), PermanentError),
        (Reply("not yours", status=403), PermanentError),
        (Reply("no such model", status=404), PermanentError),
        (Reply("slow down", status=429, headers={"Retry-After": "3"}), PassingError),
        (Reply("broken", status=500), PassingError),
        (Reply("broken", status=503), PassingError),
        (Reply(drop=True), PassingError),
        (Reply(body=b"<html>gateway</html>"), PassingError),
        (
            Reply(
                status=400, body=b'{"error": {"message": "Your input is too long.", "code": "context_length_exceeded"}}'
            ),
            ContextTooLong,
        ),
    ],
)
def test_an_error_is_never_an_answer(codex: Path, reply: Reply, kind: type[ModelError]) -> None:
    with ChatServer([reply]) as server:
        made = backend(codex, server.url)
        with pytest.raises(kind) as caught:
            made.open_agent("target").run(AgentJob("Do it.", SKILL))
        assert KEY not in str(caught.value)
        assert len(server.requests) == 1, "a backend does not retry: the kernel does"


def test_an_endpoint_that_hangs_is_given_up_and_nothing_is_left(codex: Path) -> None:
    over = threading.Event()

    def hang(_: Any) -> Reply:
        over.wait(120)
        return Reply("late")

    with ChatServer(hang) as server:
        made = backend(codex, server.url)
        made.check("target")  # it is probed before the time begins
        try:
            with pytest.raises(CallTimeout):
                made.open_agent("target").run(AgentJob("Do it.", SKILL, deadline=time.monotonic() + 3))
        finally:
            over.set()
    left = []
    for entry in Path("/proc").iterdir() if Path("/proc").exists() else ():
        try:
            words = (entry / "environ").read_bytes() if entry.name.isdecimal() else b""
        except OSError:
            continue
        if b"skillopt-agent-job-" in words and f"{os.getpid()}" != entry.name:
            left.append((entry / "cmdline").read_bytes())
    assert not [words for words in left if str(codex).encode() in words and server.url.encode() in words]


def test_two_steps_of_a_training(codex: Path, sandbox: None, tmp_path: Path) -> None:
    """Codex in every role."""
    project = make(tmp_path / "project", codex_exec_path=str(codex))
    with ChatServer(ServedAgent(Served.of(project))) as server:
        given = {"CODEX_EXEC_BASE_URL": server.url, "CODEX_EXEC_API_KEY": KEY}
        overrides = ["-o", "model.backend=codex_exec", "-o", "model.optimizer_backend=codex_exec"]
        project.run("train", "mine.yaml", "--out", "run", *overrides, env=given, timeout=240).ok()
        shown = [json.dumps(each.body) for each in server.requests if each.body["model"] == "optimizer"]
    assert project.json("run/history.json")[0]["action"] == "accept_new_best"
    assert any(rule in (project.folder / "run/best_skill.md").read_text("utf-8") for rule in KINDS.values())
    assert any(LOOKED in text for text in shown)
