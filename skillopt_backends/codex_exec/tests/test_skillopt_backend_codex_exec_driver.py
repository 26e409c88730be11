"""Settings, command line, and what is read of Codex's output, in the shapes that version 0.171.0 has printed."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from pathlib import Path

import pytest
from skillopt_backend_codex_exec.backend import CODEX, make_backend
from skillopt_backend_codex_exec.command import NEEDED, agent_arguments, chat_arguments
from skillopt_backend_codex_exec.reading import read_turn
from skillopt_backend_codex_exec.session import read_usage
from skillopt_backend_codex_exec.settings import CodexExecSettings
from skillopt_kernel.errors import (
    CallTimeout,
    ConfigError,
    ContextTooLong,
    PassingError,
    PermanentError,
    RejectedRequest,
)
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import AgentJob, ChatRequest, Message
from skillopt_kernel.records import ToolCall, Turn, Usage
from skillopt_kernel.store.redaction import Redactor
from skillopt_lib_agent.process import Finished
from skillopt_testkit.configuration import problems
from skillopt_testkit.conformance.http_chat import SECRET
from skillopt_testkit.programs import stand_in
from skillopt_testkit.servers import ChatServer, Reply

WORK = Path("work")
STARTED = (
    {"type": "thread.started", "thread_id": "01a2"},
    {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}},
    {"type": "turn.started"},
)
USED = {"input_tokens": 200, "cached_input_tokens": 20, "cache_write_input_tokens": 0, "output_tokens": 40,
        "reasoning_output_tokens": 10}  # fmt: skip
COMPLETED = {"type": "turn.completed", "usage": USED}


def item(kind: str, **told) -> dict:
    return {"type": "item.completed", "item": {"id": "item_1", "type": kind, **told}}


def failed(message: str) -> tuple[dict, ...]:
    return {"type": "error", "message": message}, {"type": "turn.failed", "error": {"message": message}}


def read(tmp_path, *events: dict, code: int = 0, stderr: str = "", record: list[dict] | None = None):
    out = tmp_path / "stdout"
    out.write_text("".join(json.dumps(event) + "\n" for event in (*STARTED, *events)), "utf-8")
    if record is not None:
        folder = tmp_path / "home/sessions/2026/11/30"
        folder.mkdir(parents=True)
        lines = [json.dumps({"type": "response_item", "payload": each}) for each in record]
        (folder / "rollout-2026.jsonl").write_text("\n".join([*lines, '{"type": "torn']), "utf-8")
    return read_turn(Finished(code, out, stderr, 1.0), tmp_path / "home", CODEX, Redactor())


def value_of(arguments: list[str], name: str) -> list[str]:
    """The values of `--config name=...`."""
    return [word.partition("=")[2] for word in arguments if word.startswith(f"{name}=")]


# The command line ------------------------------------------------------------------------------------------


def test_defaults_are_safe():
    made = agent_arguments(CodexExecSettings(), "", WORK, edits=True)
    assert made[made.index("--sandbox") + 1] == "workspace-write"
    assert value_of(made, "sandbox_workspace_write.network_access") == ["false"]
    assert value_of(made, "approval_policy") == ["never"]
    assert value_of(made, "web_search") == ["disabled"]
    assert value_of(made, "shell_environment_policy.inherit") == ["core"]
    assert {"--ignore-user-config", "--ignore-rules", "--skip-git-repo-check", "--json"} <= set(made)
    assert not {"--model", "--profile", "model_reasoning_effort"} & set(made) and made[-1] == "-"


def test_a_job_that_may_not_write_gets_a_sandbox_that_does_not_let_it():
    made = agent_arguments(CodexExecSettings(), "m", WORK, edits=False)
    assert made[made.index("--sandbox") + 1] == "read-only"
    everything = agent_arguments(CodexExecSettings(sandbox="danger-full-access"), "m", WORK, edits=False)
    assert everything[everything.index("--sandbox") + 1] == "danger-full-access"


def test_neither_key_nor_text_is_on_the_command_line():
    settings = CodexExecSettings(base_url="http://127.0.0.1:1/v1/", api_key="sk-secret-0123456789")
    made = agent_arguments(settings, "m", WORK, edits=True)
    assert "sk-secret" not in " ".join(made)
    assert value_of(made, "model_providers.skillopt.base_url") == ["http://127.0.0.1:1/v1"]
    assert value_of(made, "model_providers.skillopt.env_key") == ["SKILLOPT_CODEX_KEY"]


def test_as_a_chat_model_it_gets_no_tools_and_an_image_does_not_take_the_prompt():
    made = chat_arguments(
        CodexExecSettings(), "m", WORK, system=Path("s.md"), schema=Path("x.json"), images=[Path("a.png")], effort="max"
    )
    disabled = {made[place + 1] for place, word in enumerate(made) if word == "--disable"}
    assert {"shell_tool", "unified_exec", "view_image", "multi_agent"} <= disabled
    assert made[made.index("--sandbox") + 1] == "read-only"
    assert made[made.index("--image") + 2].startswith("--"), "the flag takes all that follows"
    assert value_of(made, "model_instructions_file") == ["s.md"]
    assert value_of(made, "model_reasoning_effort") == ["xhigh"], "Codex has no higher one"
    assert made[-1] == "-"


def test_every_flag_that_is_used_is_asked_for():
    """O-X1: what the probe looks for is what the command line uses."""
    settings = CodexExecSettings(profile="mine", base_url="http://127.0.0.1:1/v1")
    agent = agent_arguments(settings, "m", WORK, edits=True, images=[Path("a.png")])
    chat = chat_arguments(
        settings, "m", WORK, system=Path("s"), schema=Path("x"), images=[Path("a.png")], effort="high"
    )
    used = {word for word in (*agent, *chat) if word.startswith("--")}
    assert used == set(NEEDED)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("codex_exec_sandbox: everything", ("workspace-write", "model.codex_exec_sandbox")),
        ("codex_exec_network_access: 1", ("true or false",)),
        ("codex_exec_base_url: localhost", ("must be an address like",)),
        ("codex_exec_profile: ../mine", ("must be a profile's name",)),
        ("codex_exec_pass_variables: [COPILOT_ALLOW_ALL]", ("COPILOT_ALLOW_ALL",)),
        ("codex_exec_timeout_seconds: 0", ("greater than 0",)),
        ("codex_exec_sandbx: read-only", ("codex_exec_sandbox",)),
    ],
)
def test_what_is_written_wrongly_is_told_with_its_line(tmp_path, line, words):
    text = f"model:\n  optimizer_backend: codex_exec\n  target_backend: codex_exec\n  {line}\n"
    found = problems(tmp_path, text)
    assert len(found) == 1 and found[0].startswith("mine.yaml:4"), found
    for word in words:
        assert word in found[0], found


# What is read ----------------------------------------------------------------------------------------------


def test_usage_is_of_all_requests_of_a_turn():
    assert read_usage(USED) == Usage(1, 200, 40, cached_tokens=20, reasoning_tokens=10)


def test_usage_that_is_not_told_is_unknown_and_not_zero():
    """O-C3."""
    assert read_usage(None) == Usage(1, unknown_calls=1)
    assert read_usage({"input_tokens": "many", "output_tokens": True}) == Usage(1, unknown_calls=1)


def test_the_turns_come_from_the_session_s_record(tmp_path):
    """The events leave out commands that end at once; the record has all that the model was sent."""
    about = "Chunk ID: b775fd\nWall time: 0.0121 seconds\nProcess exited with code 1\nOriginal token count: 2\n"
    output = f"{about}Output:\nhello\n"
    record = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are an agent."}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Do it."}]},
        {"type": "reasoning", "summary": [], "encrypted_content": "x"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "false"}', "call_id": "call_1"},
        {"type": "function_call_output", "call_id": "call_1", "output": output},
        {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin Patch", "call_id": "call_2"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Wall time: 1 seconds\nOutput:\nDone"},
        {"type": "web_search_call", "id": "ws_1", "action": {"query": "x"}, "status": "completed"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "<answer>42</answer>"}]},
    ]
    told = read(tmp_path, item("agent_message", text="<answer>42</answer>"), COMPLETED, record=record)
    assert told.answer == "<answer>42</answer>"
    assert told.turns == (
        Turn("assistant", "I look."),
        Turn("assistant", "", (ToolCall("call_1", "exec_command", '{"cmd": "false"}'),)),
        Turn("tool", "hello\n[exit code 1]", tool_call_id="call_1"),
        Turn("assistant", "", (ToolCall("call_2", "apply_patch", "*** Begin Patch"),)),
        Turn("tool", "Done", tool_call_id="call_2"),
        Turn("assistant", "", (ToolCall("ws_1", "web_search_call", '{"query": "x"}'),)),
        Turn("tool", "completed", tool_call_id="ws_1"),
        Turn("assistant", "<answer>42</answer>"),
    )


def test_without_a_record_the_turns_come_from_the_events(tmp_path):
    command = {"command": "/bin/bash -lc 'rm x'", "aggregated_output": "", "exit_code": None, "status": "declined"}
    told = read(
        tmp_path,
        {"type": "item.started", "item": {"id": "item_1", "type": "command_execution", **command}},
        item("command_execution", **command),
        item("file_change", changes=[{"path": "a.txt", "kind": "add"}], status="completed"),
        item("mcp_tool_call", server="s", tool="t", arguments={"a": 1}, result="r", status="completed"),
        item("todo_list", items=[]),
        item("agent_message", text="Done."),
        COMPLETED,
    )
    assert [turn.tool_calls[0].name for turn in told.turns if turn.tool_calls] == ["shell", "apply_patch", "s.t"]
    assert told.turns[1].content.startswith("[denied]")
    assert told.answer == "Done."


def test_an_empty_message_is_an_empty_answer(tmp_path):
    assert read(tmp_path, item("agent_message", text=""), COMPLETED).answer == ""


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            '{"error": {"message": "fake failure 400", "type": "invalid_request_error", "code": "x_400"}}',
            RejectedRequest,
        ),
        ('{"error": {"message": "no such thing", "code": "model_not_found"}}', PermanentError),
        ("unexpected status 401 Unauthorized: fake failure 401, url: http://127.0.0.1/v1/responses", PermanentError),
        ("unexpected status 404 Not Found: fake failure 404, url: http://127.0.0.1/v1/responses", PermanentError),
        ("exceeded retry limit, last status: 429 Too Many Requests", PassingError),
        ("We’re currently experiencing high demand, which may cause temporary errors.", PassingError),
        ("unexpected status 503 Service Unavailable: fake failure 503", PassingError),
        ("stream disconnected before completion: error sending request", PassingError),
        ("Codex ran out of room in the model's context window. Start a new thread.", ContextTooLong),
        ("Missing environment variable: `KEY`.", PermanentError),
    ],
)
def test_a_turn_that_failed_is_never_an_answer(tmp_path, message, kind):
    said = item("agent_message", text="I was about to answer.")
    with pytest.raises(kind) as caught:
        read(tmp_path, said, *failed(message), code=1)
    assert str(caught.value).startswith("Codex ")


def test_an_exit_code_without_a_turn_is_told_in_the_program_s_words(tmp_path):
    with pytest.raises(RejectedRequest, match="wire_api"):
        read(tmp_path, code=1, stderr='Error loading config.toml: `wire_api = "chat"` is no longer supported.')


def test_a_turn_that_ends_without_its_end_passes(tmp_path):
    with pytest.raises(PassingError, match="end before its turn does") as caught:
        read(tmp_path, item("agent_message", text="<answer>42</answer>"))
    assert caught.value.charged


def test_a_turn_without_a_call_of_the_model_is_an_error_and_no_score(tmp_path):
    """O-X2: runs finished with 0 calls and scores of zero."""
    with pytest.raises(PassingError, match="without a call of its model"):
        read(tmp_path, {"type": "turn.completed", "usage": dict.fromkeys(USED, 0)})


# Signing in ------------------------------------------------------------------------------------------------


@pytest.fixture
def operator(tmp_path, monkeypatch) -> Path:
    """An operator's folder of Codex."""
    folder = tmp_path / "operator"
    folder.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(folder))
    return folder


def backend(path: Path, **settings):
    context = DriverContext(logging.getLogger("test"), model="some-model")
    return make_backend(CodexExecSettings(path=str(path), **settings), context)


def test_who_is_not_signed_in_is_told_before_the_program_is_started(tmp_path, operator):
    made = backend(stand_in(tmp_path, "codex"))
    with pytest.raises(
        PermanentError, match=r"Codex is not signed in: there is no file .*auth.json. Run `codex login`"
    ):
        made.open_agent("target").run(AgentJob("Do it.", ""))
    assert ("error", "Codex is not signed in") in [(kind, text[:22]) for kind, text in made.check("target")]
    (operator / "auth.json").write_text("{}", "utf-8")
    assert [kind for kind, _ in made.check("target")][-1] == "ok"


def test_a_profile_is_copied_and_a_missing_one_is_an_error(tmp_path, operator):
    with ChatServer(["ok"]) as server:
        made = backend(stand_in(tmp_path, "codex"), base_url=server.url, profile="mine")
        with pytest.raises(PermanentError, match=r"profile 'mine' was not found.*mine.config.toml"):
            made.open_agent("target").run(AgentJob("Do it.", ""))
        (operator / "mine.config.toml").write_text("mine = true", "utf-8")
        made.open_agent("target").run(AgentJob("Do it.", ""))
        assert server.requests[-1].body["client_metadata"]["profile"] == "mine = true"


def test_optimizer_and_judge_are_chat_models_and_the_target_is_an_agent(tmp_path):
    made = backend(tmp_path / "codex")
    assert made.capabilities == {"target": {"agent"}, "optimizer": {"chat"}, "judge": {"chat"}}
    for ask in (lambda: made.open_agent("optimizer"), lambda: made.open_chat("target")):
        with pytest.raises(ConfigError, match=r"model.*_backend"):
            ask()


def test_as_a_chat_model_it_answers_what_it_was_asked(tmp_path):
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    with ChatServer([Reply('{"a": "b"}')]) as server:
        chat = backend(stand_in(tmp_path, "codex"), base_url=server.url).open_chat("optimizer")
        request = ChatRequest((Message("system", "Judge."), Message("user", "Is it? 🦉")), schema=schema, effort="low")
        reply = chat.complete(request)
        body = server.requests[0].body
    assert (reply.text, reply.finish, reply.usage.prompt_tokens) == ('{"a": "b"}', "stop", 10)
    assert body["tools"] == [] and body["model"] == "some-model"
    assert body["reasoning"] == {"effort": "low"} and body["text"]["format"]["schema"] == schema
    assert [part["content"][0]["text"] for part in body["input"]] == ["Judge.", "Is it? 🦉"]


# Through the SDK -------------------------------------------------------------------------------------------


def commands(*wanted: str):
    """A model that has these commands run, one after the other, and then answers."""

    def script(body):
        results = sum(message["role"] == "tool" for message in body["messages"])
        if results == len(wanted):
            return Reply("Done. ü", usage={"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18})
        function = {"name": "exec_command", "arguments": json.dumps({"cmd": wanted[results]})}
        return Reply(tool_calls=({"id": f"call-{results}", "type": "function", "function": function},))

    return script


def test_through_the_sdk_a_job_is_the_same(tmp_path):
    pytest.importorskip("openai_codex_sdk")
    job = AgentJob("Do it. 🦉", "# Skill\n\n- Do it well.\n", {"in.txt": b"hello"}, ("*.txt",), edits=True)
    results, bodies = [], []
    for use_sdk in (False, True):
        with ChatServer(commands("cat in.txt > out.txt; env", "exit 3")) as server:
            made = backend(stand_in(tmp_path, "codex"), base_url=server.url, api_key=SECRET, use_sdk=use_sdk)
            results.append(made.open_agent("target").run(job))
            bodies.append([{**each.body, "client_metadata": None} for each in server.requests])
    plain, told = results
    assert (told.message, told.files, told.usage, told.isolated) == (
        plain.message, plain.files, plain.usage, plain.isolated
    )  # fmt: skip
    assert [turn.role for turn in told.trajectory] == [turn.role for turn in plain.trajectory]
    assert told.trajectory[3:] == plain.trajectory[3:]
    assert SECRET not in told.trajectory[1].content and "SKILLOPT_CODEX" not in told.trajectory[1].content
    assert bodies[1][0] == bodies[0][0], "the model is asked the same"


def test_through_the_sdk_errors_and_deadlines_are_the_same(tmp_path):
    pytest.importorskip("openai_codex_sdk")
    over = threading.Event()

    def script(body):
        if "hang" in json.dumps(body["messages"]):
            over.wait(120)
        return Reply(f"no such key: {SECRET}", status=401)

    with ChatServer(script) as server:
        made = backend(stand_in(tmp_path, "codex"), base_url=server.url, api_key=SECRET, use_sdk="sdk")
        agent = made.open_agent("target")
        try:
            with pytest.raises(PermanentError, match="is not signed in, or its key was rejected"):
                agent.run(AgentJob("Do it.", ""))
            with pytest.raises(CallTimeout):
                agent.run(AgentJob("hang", "", deadline=time.monotonic() + 3))
        finally:
            over.set()
    with pytest.raises(PermanentError, match="No such file"):
        backend(tmp_path / "nowhere", base_url="http://127.0.0.1:9", use_sdk="sdk").open_agent("target").run(
            AgentJob("", "")
        )


def test_what_a_job_used_before_it_failed_is_known(tmp_path):
    plain = commands("echo hello")

    def script(body):
        if any(message["role"] == "tool" for message in body["messages"]):
            return Reply("busy", status=503)
        return plain(body)

    with ChatServer(script) as server:
        made = backend(stand_in(tmp_path, "codex"), base_url=server.url)
        with pytest.raises(PassingError) as caught:
            made.open_agent("target").run(AgentJob("Do it.", ""))
    assert caught.value.usage == Usage(1, 10, 5, cached_tokens=0, reasoning_tokens=0)


def test_without_the_sdk_it_is_told_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openai_codex_sdk", None)
    with pytest.raises(ConfigError, match=r"pip install 'skillopt-backend-codex-exec\[sdk\]'"):
        backend(tmp_path / "codex", use_sdk="sdk")
    with pytest.raises(ValueError, match="must be auto, sdk or cli"):
        CodexExecSettings(use_sdk="perhaps")
