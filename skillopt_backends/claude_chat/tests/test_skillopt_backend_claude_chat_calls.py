"""What the endpoint receives of a call through Claude Code, and what a reply becomes."""

from __future__ import annotations

import base64
import json
import logging

import pytest
from skillopt_backend_claude_chat.backend import make_backend
from skillopt_backend_claude_chat.settings import ClaudeChatSettings
from skillopt_kernel.errors import ConfigError, ContextTooLong, PassingError, PermanentError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import ChatRequest, ImagePart, Message, TextPart, Tool
from skillopt_kernel.records import ToolCall
from skillopt_testkit import ChatServer, Reply
from skillopt_testkit.programs import stand_in, write_program

KEY = "sk-ant-0123456789abcdef"
PIXEL = bytes.fromhex("89504e470d0a1a0a")
ASKED = (Message("system", "Answer in few words."), Message("user", "Say ok."))
LOOK = Tool("look", "Look at something.", {"type": "object", "properties": {"at": {"type": "string"}}})
FLAGS = (
    "--print --output-format --input-format --verbose --model --tools --setting-sources --strict-mcp-config "
    "--no-session-persistence --effort --json-schema --disable-slash-commands --bare"
)
ANSWER = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return stand_in(tmp_path_factory.mktemp("programs"), "claude")


def made(program, server, **settings):
    told = {"path": str(program), "base_url": server.root, "api_key": KEY, **settings}
    return make_backend(ClaudeChatSettings(**told), DriverContext(logging.getLogger("skillopt.test")))


@pytest.fixture(scope="module")
def shared(program):
    """An endpoint and a backend for the calls that need no settings: the program is asked once what it can do."""
    with ChatServer() as server:
        backend = made(program, server)
        yield server, backend
        backend.close()


@pytest.fixture
def ask(program, shared):
    """Makes one call, and gives its reply and what the endpoint received."""
    server, backend = shared

    def call(*replies, messages=ASKED, settings=None, **options):
        server.script = ChatServer(replies or ["ok"]).script
        server.requests.clear()
        used = backend if settings is None else made(program, server, **settings)
        reply = used.open_chat("optimizer").complete(ChatRequest(messages, **options))
        return reply, list(server.requests)

    return call


def user_text(received):
    """The texts of the last message, one after the other."""
    return "\n".join(part["text"] for part in received.body["messages"][-1]["content"] if part["type"] == "text")


def form(given, finish=None):
    """The model's call of the tool by which Claude Code holds a reply to its schema."""
    call = {"id": "toolu_1", "type": "function"}
    function = {"name": "StructuredOutput", "arguments": json.dumps(given)}
    return Reply(tool_calls=({**call, "function": function},), finish_reason=finish)


# What is sent ----------------------------------------------------------------------------------------------


def test_nothing_is_sent_but_the_call(ask):
    reply, (received,) = ask("fine", max_tokens=64_000, effort="low")
    assert reply.text == "fine"
    assert received.path == "/v1/messages?beta=true"
    assert received.headers["x-api-key"] == KEY
    body = received.body
    assert body["model"] == "claude-sonnet-4-6"
    assert body["system"][-1]["text"] == "Answer in few words."
    assert body["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Say ok."}]}]
    assert body["tools"] == []
    assert (body["max_tokens"], body["output_config"]) == (64_000, {"effort": "low"})


@pytest.mark.parametrize(
    ("setting", "asked", "sent"), [(None, 100, 100), (50, 100, 50), (500, 100, 100), (50, None, 50)]
)
def test_the_smaller_token_limit_is_sent(ask, setting, asked, sent):
    _, (received,) = ask(settings={"max_tokens": setting}, max_tokens=asked)
    assert received.body["max_tokens"] == sent


@pytest.mark.parametrize(
    ("effort", "sent", "thinking"),
    [
        (None, "high", "adaptive"),
        ("none", "high", "disabled"),
        ("minimal", "low", "adaptive"),
        ("max", "max", "adaptive"),
    ],
)
def test_efforts(ask, effort, sent, thinking):
    _, (received,) = ask(effort=effort)
    assert (received.body["output_config"], received.body["thinking"]["type"]) == ({"effort": sent}, thinking)


@pytest.mark.parametrize(
    ("settings", "header", "value"),
    [
        ({"api_key": "", "auth_token": "token-0123456789"}, "authorization", "Bearer token-0123456789"),
        ({"api_key": "", "oauth_token": "oauth-0123456789"}, "authorization", "Bearer oauth-0123456789"),
        ({"api_key": f" {KEY}\n"}, "x-api-key", KEY),
    ],
)
def test_signing_in(ask, settings, header, value):
    _, (received,) = ask(settings=settings)
    assert received.headers[header] == value


def test_a_folder_in_which_it_is_signed_in_is_used_as_it_is(ask, tmp_path):
    told = {"claudeAiOauth": {"accessToken": "folder-0123456789"}}
    (tmp_path / ".credentials.json").write_text(json.dumps(told), "utf-8")
    (tmp_path / "CLAUDE.md").write_text("OPERATORS-RULE", "utf-8")
    _, (received,) = ask(settings={"api_key": "", "config_dir": tmp_path})
    assert received.headers["authorization"] == "Bearer folder-0123456789"
    assert "OPERATORS-RULE" not in json.dumps(received.body)


def test_nothing_of_the_operator_is_sent(ask, tmp_path, monkeypatch):
    """Neither a CLAUDE.md of home or working folder nor a variable; nor with a subscription, where it reads more."""
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    for folder in (home / ".claude", home, tmp_path):
        (folder / "CLAUDE.md").write_text("OPERATORS-RULE", "utf-8")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
    monkeypatch.setenv("CLAUDE_CODE_MAX_RETRIES", "5")
    monkeypatch.setenv("MAX_THINKING_TOKENS", "0")
    monkeypatch.chdir(tmp_path)
    secret = tmp_path / "secret.txt"
    secret.write_text("SECRET-OF-A-FILE", "utf-8")
    messages = (Message("user", f"Who wrote to @{secret} ?"),)
    _, (received,) = ask(messages=messages, settings={"api_key": "", "oauth_token": "oauth-0123456789"})
    sent = json.dumps(received.body)
    assert "OPERATORS-RULE" not in sent and "SECRET-OF-A-FILE" not in sent
    assert str(tmp_path) not in sent.replace(str(secret), "")
    assert received.body["thinking"] == {"type": "adaptive"}


@pytest.mark.parametrize("text", ["/help me", "/clear", "\n/help"])
def test_a_prompt_is_never_a_command_of_the_program(ask, text):
    _, (received,) = ask(messages=(Message("user", text),))
    assert user_text(received).strip() == text.strip()


def test_long_texts_of_any_language_arrive_whole(ask):
    """O-W2: 60,000 characters of prompt and 40,000 of a skill, neither on a command line."""
    prompt, skill = "größer 🦉 " * 6_000, "- 🦉 klein\n" * 3_600
    _, (received,) = ask(messages=(Message("system", skill), Message("user", prompt)))
    assert user_text(received) == prompt
    assert received.body["system"][-1]["text"] == skill


def test_a_conversation_becomes_a_transcript_with_its_images(ask):
    messages = (
        Message("system", "Be brief."),
        Message("user", (TextPart("What is it?"), ImagePart(PIXEL, "image/jpeg"))),
        Message("assistant", "Let me see.", tool_calls=(ToolCall("c1", "look", '{"at": "sky"}'),)),
        Message("tool", "It is blue.", tool_call_id="c1"),
    )
    _, (received,) = ask(messages=messages)
    text = user_text(received)
    parts = ["What is it?", "Let me see.", "look", "It is blue."]
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    (image,) = [part for part in received.body["messages"][-1]["content"] if part["type"] == "image"]
    data = base64.b64encode(PIXEL).decode("ascii")
    assert image["source"] == {"type": "base64", "media_type": "image/jpeg", "data": data}


# What comes back -------------------------------------------------------------------------------------------


def test_a_tool_is_asked_for_and_not_run(ask):
    asked = {"content": "I look.", "tool_calls": [{"name": "look", "arguments": '{"at": "sky"}'}]}
    reply, (received,) = ask(form(asked), tools=(LOOK,), tool_choice="look")
    assert reply.text == "I look."
    assert reply.tool_calls == (ToolCall("call_0", "look", '{"at": "sky"}'),)
    assert reply.finish == "tool_calls"
    assert [tool["name"] for tool in received.body["tools"]] == ["StructuredOutput"]
    assert "Look at something." in json.dumps(received.body)


def test_a_reply_to_tools_that_is_only_text_is_text(ask):
    reply, requests = ask("It is blue.", tools=(LOOK,))
    assert (reply.text, reply.tool_calls, reply.finish) == ("It is blue.", (), "stop")
    assert len(requests) == 2, "the program asks once more for the form"


def test_a_tool_that_had_to_be_asked_for_and_was_not(ask):
    with pytest.raises(PassingError, match="asked for no tool"):
        ask(form({"content": "no", "tool_calls": []}), tools=(LOOK,), tool_choice="required")


def test_a_schema_is_enforced(ask):
    reply, requests = ask(form({"wrong": 1}), form({"answer": "ok 🦉"}), schema=ANSWER)
    assert json.loads(reply.text) == {"answer": "ok 🦉"}
    assert reply.usage.prompt_tokens == 20 and len(requests) == 2


@pytest.mark.parametrize(
    ("settings", "schema"),
    [
        ({"structured_output": False}, ANSWER),
        ({}, {"type": "array"}),
        ({}, {**ANSWER, "description": "x" * 30_000}),
    ],
)
def test_a_schema_that_cannot_be_enforced_is_left_out(ask, settings, schema):
    reply, (received,) = ask("plain", settings=settings, schema=schema)
    assert (reply.text, received.body["tools"]) == ("plain", [])


@pytest.mark.parametrize("after", [" and more", Reply(" and more", finish_reason="length")])
def test_a_reply_that_was_cut_off_is_never_taken_for_whole(ask, after):
    """Claude Code has the model go on, and tells the last piece only."""
    reply, requests = ask(Reply("The beginning", finish_reason="length"), after)
    assert (reply.text, reply.finish) == ("The beginning", "length")
    assert reply.usage.prompt_tokens == 10 * len(requests)


def test_a_form_that_was_cut_off(ask):
    reply, _ = ask(form({"answer": "o"}, "length"), schema=ANSWER)
    assert reply.finish == "length"


def test_what_the_provider_withheld(ask):
    reply, requests = ask(Reply("I cannot", finish_reason="content_filter"))
    assert (reply.text, reply.finish, len(requests)) == ("I cannot", "filtered", 1)


def test_tokens_of_the_cache_and_dollars_are_counted(ask):
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 900},
    }
    reply, _ = ask(Reply("ok", usage=usage))
    told = reply.usage
    assert (told.calls, told.prompt_tokens, told.cached_tokens, told.completion_tokens) == (1, 1000, 900, 7)
    assert told.usd == pytest.approx(100 * 3e-6 + 900 * 3e-7 + 7 * 15e-6)


def test_unknown_tokens_are_unknown_and_no_zeros(ask):
    """O-C3: and the dollars with them."""
    reply, _ = ask(Reply("ok", usage=None))
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.usd) == (None, None, None)
    assert reply.usage.unknown_calls == 1


# Errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (Reply("Your credit balance is too low to use the API.", status=400), PermanentError, "no credit or quota"),
        (Reply("no", status=401), PermanentError, "Set ANTHROPIC_API_KEY (`model.claude_chat_api_key`)"),
        (Reply("no", status=404), PermanentError, "model.optimizer"),
        (Reply("big", status=413), ContextTooLong, "does not fit"),
        (Reply("busy", status=529), PassingError, "could not answer"),
    ],
)
def test_errors_that_it_prints_on_stdout_are_errors(program, reply, kind, words):
    with ChatServer([reply]) as server:
        settings = ClaudeChatSettings(path=str(program), base_url=server.root, api_key=KEY)
        context = DriverContext(logging.getLogger("skillopt.test"), role="optimizer")
        with pytest.raises(kind) as caught:
            make_backend(settings, context).open_chat("optimizer").complete(ChatRequest(ASKED))
        assert words in str(caught.value)
        assert KEY not in str(caught.value)
        assert len(server.requests) == 1, "the kernel retries, and nobody else"


def test_with_nothing_to_sign_in_with_nothing_is_started(ask, monkeypatch):
    monkeypatch.delenv("SKILLOPT_OTHER_CLOUD", raising=False)
    with pytest.raises(PermanentError, match="nothing to sign in with"):
        ask(settings={"api_key": "", "pass_variables": ("SKILLOPT_OTHER_CLOUD",), "path": "no such program"})
    monkeypatch.setenv("SKILLOPT_OTHER_CLOUD", "a key of it")
    with pytest.raises(PermanentError, match="was not found"):
        ask(settings={"api_key": "", "pass_variables": ("SKILLOPT_OTHER_CLOUD",), "path": "no such program"})
    with pytest.raises(PermanentError, match="claude setup-token"):
        ask(settings={"api_key": " ", "path": "no such program"})


def test_a_program_that_does_not_know_an_argument(ask, tmp_path):
    """O-X1: the program's help promises what it does not take; the first call says so, and which to install."""
    source = f"""
import sys
if "--help" in sys.argv:
    print({FLAGS!r})
elif "--version" in sys.argv:
    print("2.1.50")
else:
    sys.exit("error: unknown option '--system-prompt-file'")
"""
    with pytest.raises(PermanentError) as caught:
        ask(settings={"path": str(write_program(tmp_path, "claude", source))})
    assert "unknown option '--system-prompt-file'" in str(caught.value)
    assert "npm install -g @anthropic-ai/claude-code@latest" in str(caught.value)


def test_a_version_that_reads_no_images(ask, tmp_path):
    stand = stand_in(tmp_path, "claude", "silent")
    messages = (Message("user", (TextPart("What is it?"), ImagePart(PIXEL, "image/png"))),)
    with pytest.raises(PermanentError, match="with an image"):
        ask(settings={"path": str(stand)}, messages=messages)


def test_no_agent_s_job(program):
    backend = make_backend(ClaudeChatSettings(path=str(program)), DriverContext(logging.getLogger("skillopt.test")))
    with pytest.raises(ConfigError, match="claude_code_exec"):
        backend.open_agent("target")


def test_a_check_says_what_it_signs_in_with(program):
    def check(**settings):
        told = ClaudeChatSettings(path=str(program), **settings)
        return make_backend(told, DriverContext(logging.getLogger("skillopt.test"))).check("target")

    assert ("ok", "Claude Code 2.1.332") in [(kind, text[:19]) for kind, text in check(api_key=KEY)]
    kind, sentence = check(api_key=KEY, base_url="http://user:word@127.0.0.1:9/x/?q=1")[-1]
    assert (kind, sentence) == ("ok", "Claude Code signs in at http://127.0.0.1:9/x with ANTHROPIC_API_KEY")
    assert check()[-1][0] == "error"


@pytest.mark.parametrize("address", ["ftp://host", "host", "http://", "http://host:port"])
def test_an_address_that_is_none(address):
    with pytest.raises(ValueError, match="must be an address"):
        ClaudeChatSettings(base_url=address)


def test_credentials_are_not_shown():
    assert KEY not in repr(ClaudeChatSettings(api_key=KEY, auth_token=KEY, oauth_token=KEY))
