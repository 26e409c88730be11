"""How Cursor's agent is called, what it finds in its folders, and what is made of what it prints."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from skillopt_backend_cursor_exec.backend import CursorExecBackend, make_backend
from skillopt_backend_cursor_exec.events import read_session
from skillopt_backend_cursor_exec.harness import NEEDED
from skillopt_backend_cursor_exec.settings import CursorExecSettings
from skillopt_kernel.errors import ConfigError, PassingError, PermanentError, RejectedRequest
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import AgentJob
from skillopt_kernel.records import Usage
from skillopt_lib_agent.events import Events
from skillopt_testkit.programs import stand_in, write_program

KEY = "cursor-key-0123456789abcdef"
SKILL = "---\nname: sums\n---\n\n# Sums\n\n- Add from left to right. é 🙂\n"

TELLING = """
import json, os, sys
from pathlib import Path
if "--version" in sys.argv: print("2026.01.28-fd13201"); sys.exit()
if "--help" in sys.argv: print({flags!r}); sys.exit()
def files(folder):
    paths = [path for path in sorted(Path(folder).rglob("*")) if path.is_file()]
    return {{path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in paths}}
told = {{"arguments": sys.argv[1:], "prompt": sys.stdin.buffer.read().decode("utf-8"), "folder": os.getcwd(),
         "home": files(os.environ["HOME"]), "workspace": files("."), "variables": dict(os.environ)}}
print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "result": json.dumps(told)}}))
"""
"""A program that answers with what it sees."""


def backend(path: Path | str, **settings: Any) -> CursorExecBackend:
    context = DriverContext(logging.getLogger("skillopt.test"), model=settings.pop("model", None))
    return make_backend(CursorExecSettings(**{"path": str(path), "api_key": KEY, **settings}), context)


@pytest.fixture
def surroundings(tmp_path: Path) -> Callable[..., Any]:
    program = write_program(tmp_path / "telling", "cursor-agent", TELLING.format(flags=" ".join(NEEDED)))

    def seen(job: AgentJob, **settings: Any) -> Any:
        return json.loads(backend(program, **settings).open_agent("target").run(job).message)

    return seen


def value(arguments: list[str], flag: str) -> str:
    return arguments[arguments.index(flag) + 1]


def test_a_job_that_changes_nothing_is_asked(surroundings) -> None:
    seen = surroundings(AgentJob("Wörter 🙂 " * 10_000, SKILL, {"task.txt": b"6 times 7"}))
    arguments = seen["arguments"]
    assert (value(arguments, "--mode"), value(arguments, "--sandbox")) == ("ask", "enabled")
    assert value(arguments, "--output-format") == "stream-json"
    assert value(arguments, "--workspace") == seen["folder"]
    assert value(arguments, "--model") == "composer-2.5"
    assert "--force" not in arguments and "--approve-mcps" not in arguments and "--add-dir" not in arguments
    assert seen["prompt"] == "Wörter 🙂 " * 10_000
    assert KEY not in " ".join(arguments)


def test_a_job_that_changes_files_is_forced_and_kept_in_the_sandbox(surroundings) -> None:
    arguments = surroundings(AgentJob("Do it.", SKILL, edits=True), model="gpt-5")["arguments"]
    assert "--force" in arguments and "--mode" not in arguments
    assert (value(arguments, "--sandbox"), value(arguments, "--model")) == ("enabled", "gpt-5")


def test_force_without_the_sandbox_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    """O-X4: everything allowed and nothing around it is no setting."""
    agent = backend(tmp_path / "nowhere", sandbox="disabled").open_agent("target")
    with pytest.raises(PermanentError, match="cursor_exec_sandbox"):
        agent.run(AgentJob("Do it.", SKILL, edits=True))


def test_without_the_sandbox_a_job_may_still_be_asked(surroundings) -> None:
    assert value(surroundings(AgentJob("Do it.", SKILL), sandbox="disabled")["arguments"], "--sandbox") == "disabled"


def test_the_skill_is_a_rule_that_always_applies_and_is_not_collected(surroundings, tmp_path: Path) -> None:
    seen = surroundings(AgentJob("Do it.", SKILL, {"task.txt": b"6 times 7"}))
    (rule,) = (text for name, text in seen["workspace"].items() if name.startswith(".cursor/rules/"))
    head, body = rule.removeprefix("---\n").split("---\n")
    assert "alwaysApply: true" in head
    assert body.strip() == "# Sums\n\n- Add from left to right. é 🙂"
    program = write_program(tmp_path / "again", "cursor-agent", TELLING.format(flags=" ".join(NEEDED)))
    job = AgentJob("Do it.", SKILL, {"task.txt": b"6 times 7"}, collect=("**/*",))
    assert set(backend(program).open_agent("target").run(job).files) == {"task.txt"}


def test_a_blank_skill_makes_no_rule(surroundings) -> None:
    assert not surroundings(AgentJob("Do it.", " \n"))["workspace"]


def test_the_home_holds_a_configuration_that_allows_reading_and_no_servers(surroundings, monkeypatch) -> None:
    """O-X3: of the operator's variables it gets what it signs in with, and no other credential."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    seen = surroundings(AgentJob("Do it.", SKILL))
    told = [json.loads(text) for name, text in seen["home"].items() if name.endswith("cli-config.json")]
    assert told and all(each["permissions"]["allow"] == ["Read(**)"] for each in told)
    assert all("Mcp(*:*)" in each["permissions"]["deny"] for each in told)
    assert seen["variables"]["CURSOR_API_KEY"] == KEY
    assert "OPENAI_API_KEY" not in seen["variables"]


def ended(**told: Any) -> Mapping[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, **told}


def said(text: str) -> Mapping[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}


def tool(name: str, id_: str, result: Any, **arguments: Any) -> list[Mapping[str, Any]]:
    call = {"args": arguments}
    return [
        {"type": "tool_call", "subtype": "started", "call_id": id_, "tool_call": {name: call}},
        {"type": "tool_call", "subtype": "completed", "call_id": id_, "tool_call": {name: {**call, "result": result}}},
    ]


def test_every_call_and_its_output_is_a_turn_and_the_answer_comes_after_the_last() -> None:
    """The result event holds all that was said. Nothing is taken out: a key in an output is the kernel's to hide."""
    function = {"function": {"name": "search", "arguments": '{"query": "x"}'}}
    session = read_session(
        Events(
            (
                {"type": "system", "subtype": "init", "model": "composer-2.5", "permissionMode": "default"},
                {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "Do it."}]}},
                {"type": "thinking", "subtype": "delta", "text": "hm"},
                said("I look."),
                *tool("readToolCall", "c1", {"success": {"content": "api_key=abc", "totalChars": 11}}, path="a.txt"),
                *tool("shellToolCall", "c2", {"failure": {"stdout": "1", "stderr": "no", "exitCode": 3}}, command="x"),
                *tool("writeToolCall", "c3", {"rejected": {"reason": "not in this mode"}}, path="b.txt"),
                *tool("lsToolCall", "c4", {"error": {"errorMessage": "no such folder"}}, path="c"),
                {"type": "tool_call", "subtype": "started", "call_id": "c5", "tool_call": function},
                {"type": "tool_call", "subtype": "completed", "call_id": "c5", "tool_call": function},
                said("<answer>42</answer>"),
                ended(result="I look.<answer>42</answer>"),
            )
        )
    )
    assert session.answer == "<answer>42</answer>"
    turns = [(turn.role, turn.content, [call.name for call in turn.tool_calls]) for turn in session.trajectory]
    assert turns == [
        ("assistant", "I look.", []),
        ("assistant", "", ["read"]),
        ("tool", "api_key=abc", []),
        ("assistant", "", ["shell"]),
        ("tool", "[failure] 1\nno\n[exit code 3]", []),
        ("assistant", "", ["write"]),
        ("tool", "[denied] not in this mode", []),
        ("assistant", "", ["ls"]),
        ("tool", "[error] no such folder", []),
        ("assistant", "", ["search"]),
        ("tool", "", []),
        ("assistant", "<answer>42</answer>", []),
    ]
    assert json.loads(session.trajectory[1].tool_calls[0].arguments) == {"path": "a.txt"}


def test_what_was_said_before_a_tool_call_is_no_answer() -> None:
    events = (said("It is 42."), *tool("readToolCall", "c1", {"success": {"content": ""}}), ended(result="It is 42."))
    assert read_session(Events(events)).answer == ""


def test_a_result_alone_is_the_answer() -> None:
    assert read_session(Events((ended(result="42"),))).answer == "42"


PRINTING = """
import sys
if "--version" in sys.argv: print("2026.01.28"); sys.exit()
if "--help" in sys.argv: print({flags!r}); sys.exit()
sys.stdout.write({out!r}); sys.stderr.write({err!r}); sys.exit({code})
"""


@pytest.mark.parametrize(
    ("out", "err", "code", "kind", "words"),
    [
        ([ended(is_error=True, subtype="success", result="Invalid API key")], "", 0, PermanentError, "CURSOR_API_KEY"),
        ([said("x"), ended(subtype="error", result="The model is overloaded")], "", 1, PassingError, "too many"),
        ([said("It is 42.")], "", 0, PassingError, "end before their result"),
        ([said("It is 42.")], "Error: connection lost\n", 1, PassingError, "connection lost"),
        ([], "error: unknown option '--trust'", 1, PermanentError, "cursor-agent update"),
        ([], "Error: Authentication required. Please run 'agent login' first", 1, PermanentError, "CURSOR_API_KEY"),
        ("T: Named models unavailable on free plans.\n", "", 0, RejectedRequest, "Named models unavailable"),
        ([ended(is_error=True, result="")], json.dumps(said(KEY)) + "\nError: oh no\n", 1, RejectedRequest, "oh no"),
    ],
)  # fmt: skip
def test_an_error_is_never_an_answer(
    tmp_path: Path, out: Any, err: str, code: int, kind: type[Exception], words: str
) -> None:
    """O-X1 and O-X2: whatever it printed before, and whatever its exit code."""
    text = out if isinstance(out, str) else "".join(json.dumps(event) + "\n" for event in out)
    source = PRINTING.format(flags=" ".join(NEEDED), out=text, err=err, code=code)
    with pytest.raises(kind) as caught:
        backend(write_program(tmp_path, "cursor-agent", source)).open_agent("target").run(AgentJob("Do it.", SKILL))
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert KEY not in str(caught.value)


def test_what_a_job_used_is_unknown_and_said_to_be(tmp_path: Path) -> None:
    """O-C3."""
    source = PRINTING.format(flags=" ".join(NEEDED), out=json.dumps(ended(result="42")) + "\n", err="", code=0)
    made = backend(write_program(tmp_path, "cursor-agent", source))
    assert made.open_agent("target").run(AgentJob("Do it.", SKILL)).usage == Usage(1, unknown_calls=1)
    assert made.tells == frozenset()


def test_what_is_wrong_is_told_before_anything_is_spent(tmp_path: Path) -> None:
    def errors(made: CursorExecBackend) -> list[str]:
        return [words for severity, words in made.check("target") if severity == "error"]

    program = stand_in(tmp_path, "cursor")
    assert errors(backend(program)) == []
    assert "CURSOR_API_KEY is not set" in errors(backend(program, api_key=""))[0]
    assert "https://cursor.com/install" in errors(backend(tmp_path / "nowhere"))[0]
    assert "--sandbox" in errors(backend(stand_in(tmp_path / "old", "cursor", "old")))[0]


def test_it_plays_the_target_as_an_agent_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="chat backend"):
        backend(tmp_path).open_chat("optimizer")
