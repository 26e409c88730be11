"""What Claude Code is told, permitted and given for a job, and what its work becomes."""

from __future__ import annotations

import json
import logging
import sys
from uuid import uuid4

import pytest
from skillopt_backend_claude_code_exec.backend import make_backend
from skillopt_backend_claude_code_exec.settings import ClaudeCodeExecSettings
from skillopt_kernel.config.schema import ExecutionSettings
from skillopt_kernel.errors import ConfigError, PassingError, PermanentError, RefusedError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import AgentJob
from skillopt_testkit import ChatServer, Reply
from skillopt_testkit.programs import stand_in

KEY = "sk-ant-0123456789abcdef"
SKILL = "---\ndescription: How to sort.\n---\n# Sorting\n\n- Sort by the second column.\n"
RECORD = "import json, os, sys\njson.dump({'argv': sys.argv[1:], 'env': dict(os.environ)}, open('called.json', 'w'))\n"


def call(name, **given):
    function = {"name": name, "arguments": json.dumps(given)}
    return Reply(tool_calls=({"id": f"toolu_{uuid4().hex}", "type": "function", "function": function},))


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return stand_in(tmp_path_factory.mktemp("programs"), "claude")


def made(program, server, *, isolation=False, **settings):
    told = {"path": str(program), "base_url": server.root, "api_key": KEY, **settings}
    context = DriverContext(logging.getLogger("skillopt.test"), common=ExecutionSettings(require_isolation=isolation))
    return make_backend(ClaudeCodeExecSettings(**told), context)


@pytest.fixture(scope="module")
def shared(program):
    """An endpoint and a backend for the jobs that need no settings: the program is asked once what it can do."""
    with ChatServer() as server:
        backend = made(program, server)
        yield server, backend
        backend.close()


@pytest.fixture
def run(program, shared):
    """Runs one job, and gives its result and what the endpoint received."""
    server, backend = shared

    def job(*replies, prompt="Sort it.", skill=SKILL, settings=None, **options):
        server.script = ChatServer(replies or ["Done."]).script
        server.requests.clear()
        used = backend if settings is None else made(program, server, **settings)
        return used.open_agent("target").run(AgentJob(prompt, skill, **options)), list(server.requests)

    return job


@pytest.fixture
def recorded(tmp_path):
    """Runs one job with a program that notes how it was called, and gives that."""
    program = stand_in(tmp_path / "programs", "claude")
    first, rest = program.read_text("utf-8").split("\n", 1)
    noting = f"import sys\nif '--print' in sys.argv:\n    {RECORD.replace(chr(10), chr(10) + '    ')}\n"
    program.write_text(f"{first}\n{noting}\n{rest}", "utf-8")

    def job(*replies, settings=None, **options):
        with ChatServer(replies or ["Done."]) as server:
            backend = made(program, server, **(settings or {}))
            result = backend.open_agent("target").run(AgentJob("Sort it.", SKILL, collect=("called.json",), **options))
            backend.close()
        return json.loads(result.files["called.json"])

    return job


def value(called, flag):
    return called["argv"][called["argv"].index(flag) + 1]


# What it is told -------------------------------------------------------------------------------------------


def test_the_skill_is_called_by_its_name_and_reaches_the_model_whole(run):
    _, (received,) = run()
    texts = [part["text"] for part in received.body["messages"][0]["content"]]
    assert any("<command-name>/trained-skill</command-name>" in text for text in texts)
    assert "# Sorting\n\n- Sort by the second column." in texts[-1]
    assert any("Sort it." in text for text in texts)
    assert "description: How to sort." not in texts[-1], "its front matter is for who looks for a skill"


def test_the_skill_lies_where_the_program_looks_for_skills_of_a_project(run):
    skill = ".claude/skills/trained-skill/SKILL.md"
    result, _ = run(call("Read", file_path=skill), "Done.", collect=("**/*",))
    assert 'description: "How to sort."' in result.trajectory[1].content
    assert result.files == {}, "the skill is none of the job's files"


@pytest.mark.parametrize("text", ["It costs $1 or $25.", "$ARGUMENTS and $ARGUMENTS[0]", "a $b, ${HOME}, $HOME"])
def test_dollars_in_a_skill_stay_as_they_are(run, text):
    _, (received,) = run(skill=f"# Prices\n\n- {text}\n")
    assert f"- {text}\n" in received.body["messages"][0]["content"][-1]["text"]


def test_without_a_skill_a_prompt_is_no_command_either(run):
    _, (received,) = run(prompt="/help me", skill=" \n")
    assert "/help me" in received.body["messages"][0]["content"][-1]["text"]


def test_nothing_that_lies_about_is_read(run, tmp_path, monkeypatch):
    for folder in (tmp_path, tmp_path / ".claude"):
        folder.mkdir(exist_ok=True)
        (folder / "CLAUDE.md").write_text("OPERATORS-RULE", "utf-8")
    (tmp_path / "secret.txt").write_text("SECRET-OF-A-FILE", "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    _, (received,) = run(prompt=f"Read @{tmp_path}/secret.txt please.", files={"CLAUDE.md": b"OPERATORS-RULE"})
    sent = json.dumps(received.body)
    assert "OPERATORS-RULE" not in sent and "SECRET-OF-A-FILE" not in sent


# What it may do --------------------------------------------------------------------------------------------


def test_a_job_that_reads_has_tools_for_that_only(run):
    result, (received, *_) = run(call("Bash", command="touch made"), call("Read", file_path="given"), "Done.",
                                 files={"given": b"seven"}, collect=("*",))  # fmt: skip
    assert {tool["name"] for tool in received.body["tools"]} == {"Read", "Glob", "Grep"}
    assert "No such tool" in result.trajectory[1].content
    assert "seven" in result.trajectory[3].content
    assert result.files == {"given": b"seven"}


def test_what_lies_outside_is_neither_read_nor_written(run, tmp_path):
    outside = tmp_path / "gold.txt"
    outside.write_text("GOLD", "utf-8")
    result, _ = run(
        call("Read", file_path=str(outside)),
        call("Write", file_path=str(outside), content="spoilt"),
        call("Write", file_path="inside.txt", content="x"),
        "Done.",
        edits=True,
        collect=("*.txt",),
    )
    outputs = [turn.content for turn in result.trajectory if turn.role == "tool"]
    assert [output.startswith("[denied] ") for output in outputs] == [True, True, False]
    assert outside.read_text("utf-8") == "GOLD" and "GOLD" not in str(outputs)
    assert result.files == {"inside.txt": b"x"}


def test_tools_can_be_named(run):
    result, (received, *_) = run(call("Bash", command="echo hello"), "Done.", settings={"tools": ("Read", "Bash")})
    assert {tool["name"] for tool in received.body["tools"]} == {"Read", "Bash"}
    assert result.trajectory[1].content == "hello\n"


def test_nothing_is_bypassed_or_asked_for(recorded):
    """O-X4: what the job needs is permitted, and everything else is denied."""
    writing, reading = recorded(edits=True), recorded()
    assert value(writing, "--allowedTools") == "Edit(./**),Write(./**),Bash"
    assert "--allowedTools" not in reading["argv"]
    for called in (writing, reading):
        assert value(called, "--permission-mode") == "dontAsk"
        assert not [word for word in called["argv"] if "bypass" in word.lower() or "dangerously" in word]
        assert "--setting-sources=project" in called["argv"] and "--strict-mcp-config" in called["argv"]


def test_no_command_can_print_the_key(run, recorded):
    """O-X3: it is handed over by a pipe, and so in no variable, not of the program itself either."""
    look = "env; cat /proc/$PPID/environ 2>/dev/null | tr '\\0' '\\n'"
    result, (received, *_) = run(call("Bash", command=look), "Done.", edits=True)
    printed = result.trajectory[1].content
    assert received.headers["x-api-key"] == KEY
    assert "PATH=" in printed and KEY not in printed
    assert KEY not in json.dumps(recorded())
    _, (received,) = run(settings={"api_key": "", "oauth_token": "oauth-0123456789"})
    assert received.headers["authorization"] == "Bearer oauth-0123456789"


def test_variables_are_an_allow_list(recorded, monkeypatch):
    monkeypatch.setenv("FOREIGN", "leak")
    monkeypatch.setenv("IS_SANDBOX", "1")
    monkeypatch.setenv("AWS_REGION", "eu-1")
    called = recorded(settings={"pass_variables": ("AWS_REGION",)})
    assert not {"FOREIGN", "IS_SANDBOX"} & set(called["env"])
    assert called["env"]["AWS_REGION"] == "eu-1"
    assert called["env"]["CLAUDE_CODE_MAX_RETRIES"] == "0"


@pytest.mark.skipif(sys.platform != "linux", reason="there is a wall on Linux only")
def test_isolation_is_told_and_can_be_required(program, run, monkeypatch):
    result, _ = run()
    monkeypatch.setenv("PATH", "/nowhere")
    with ChatServer(["Done."]) as server:
        assert made(program, server).open_agent("target").run(AgentJob("Sort.", SKILL)).isolated is False
        with pytest.raises(PermanentError, match=r"execution\.require_isolation"):
            made(program, server, isolation=True).open_agent("target").run(AgentJob("Sort.", SKILL))
    assert isinstance(result.isolated, bool)


# Its settings ----------------------------------------------------------------------------------------------


def test_thinking_and_limits(recorded):
    called = recorded(settings={"effort": "xhigh", "max_thinking_tokens": 1000, "max_tokens": 9}, max_turns=4)
    assert (value(called, "--effort"), value(called, "--max-turns")) == ("xhigh", "4")
    assert called["env"]["MAX_THINKING_TOKENS"] == "1000"
    assert called["env"]["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "9"
    called = recorded(settings={"effort": "off", "max_thinking_tokens": 0})
    assert "--effort" not in called["argv"] and "--max-turns" not in called["argv"]
    assert not {"MAX_THINKING_TOKENS", "CLAUDE_CODE_MAX_OUTPUT_TOKENS"} & set(called["env"])
    assert recorded(settings={"effort": "none"})["env"]["MAX_THINKING_TOKENS"] == "0"


def test_a_profile_lies_under_what_keeps_jobs_comparable(run, tmp_path):
    """What the program is given as settings is looked at by a job of the agent itself."""
    profile = tmp_path / "profile.json"
    mine = {
        "env": {"CLAUDE_CODE_USE_BEDROCK": "1"},
        "disableSkillShellExecution": False,
        "enabledPlugins": {"a@b": True},
    }
    profile.write_text(json.dumps(mine), "utf-8")
    reading = call("Bash", command='cat "$HOME/job-settings.json"')
    result, _ = run(reading, "Done.", settings={"profile": profile}, edits=True)
    given = json.loads(result.trajectory[1].content)
    assert given["env"] == {"CLAUDE_CODE_USE_BEDROCK": "1"}
    assert given["disableSkillShellExecution"] is True
    assert given["enabledPlugins"]["a@b"] is True


@pytest.mark.parametrize(("text", "words"), [("{", "cannot be read as JSON"), ("[1]", "holds no JSON object")])
def test_a_profile_that_is_none(run, tmp_path, text, words):
    profile = tmp_path / "profile.json"
    profile.write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=words):
        run(settings={"profile": profile})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"effort": "much"}, "must be one of"),
        ({"tools": ("Bash(rm *)",)}, "must name tools"),
        ({"max_thinking_tokens": -1}, "must be at least 0"),
        ({"use_sdk": "perhaps"}, "must be auto, sdk or cli"),
        ({"pass_variables": ("IS_SANDBOX",)}, "must not hand on IS_SANDBOX"),
    ],
)
def test_values_that_cannot_be_used(settings, words):
    with pytest.raises(ValueError, match=words):
        ClaudeCodeExecSettings(**settings)


def test_the_program_that_the_sdk_brings(tmp_path, monkeypatch):
    context = DriverContext(logging.getLogger("skillopt.test"))
    with pytest.raises(ConfigError, match=r"pip install 'skillopt-backend-claude-code-exec\[sdk\]'"):
        make_backend(ClaudeCodeExecSettings(use_sdk=True), context)
    package = tmp_path / "site" / "claude_agent_sdk"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('nobody imports it')", "utf-8")
    stand_in(package / "_bundled", "claude")
    monkeypatch.syspath_prepend(tmp_path / "site")
    for settings in ({"use_sdk": "sdk"}, {"use_sdk": "auto", "path": "no-such-program"}):
        with ChatServer(["Done."]) as server:
            told = ClaudeCodeExecSettings(base_url=server.root, api_key=KEY, **settings)
            assert make_backend(told, context).open_agent("target").run(AgentJob("Sort.", SKILL)).message == "Done."
    findings = make_backend(ClaudeCodeExecSettings(use_sdk="cli", path="no-such-program"), context).check("target")
    assert findings[0][0] == "error" and "no-such-program" in findings[0][1]


def test_it_is_no_chat_model(program):
    with ChatServer() as server, pytest.raises(ConfigError, match="claude_chat"):
        made(program, server).open_chat("target")


# What its work becomes -------------------------------------------------------------------------------------


def test_turns_that_are_used_up_are_an_empty_answer(run):
    result, requests = run(call("Read", file_path="given"), "Done.", files={"given": b"x"}, max_turns=1)
    assert (result.message, len(requests)) == ("", 1)
    assert result.trajectory[-1].content == "The agent has used up its turns without an answer."


def test_an_answer_in_pieces_is_whole(run):
    result, _ = run(call("Read", file_path="given"), Reply("Half of it", finish_reason="length"), " and the rest.",
                    files={"given": b"x"})  # fmt: skip
    assert result.message == "Half of it and the rest."
    assert result.usage.prompt_tokens == 30


def test_a_refusal_is_none_of_the_agent_s_answers(run):
    with pytest.raises(RefusedError) as caught:
        run(Reply("I cannot", finish_reason="content_filter"))
    assert caught.value.usage.prompt_tokens == 10


def test_an_error_in_the_middle_is_an_error_and_what_it_took_is_told(run):
    with pytest.raises(PassingError) as caught:
        run(call("Read", file_path="given"), Reply("broken", status=500), files={"given": b"x"})
    assert caught.value.usage.prompt_tokens == 10


def test_with_nothing_to_sign_in_with_nothing_is_started(run):
    with pytest.raises(PermanentError, match=r"model\.claude_code_exec_api_key"):
        run(settings={"api_key": "", "path": "no such program"})
