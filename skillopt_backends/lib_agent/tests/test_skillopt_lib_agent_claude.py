"""What Claude Code prints, as recorded of versions 2.1.197 and 2.1.332, and what it is handed."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from skillopt_kernel.errors import (
    ContextTooLong,
    PassingError,
    PermanentError,
    RefusedError,
    RejectedRequest,
)
from skillopt_kernel.records import Usage
from skillopt_kernel.store.redaction import Redactor
from skillopt_lib_agent.claude.program import effort_of, program, prompt_input
from skillopt_lib_agent.claude.reading import read, usage_of
from skillopt_lib_agent.events import Events
from skillopt_lib_agent.handing import BY_PIPE, handed_on
from skillopt_lib_agent.process import Finished

KEY = "sk-ant-0123456789abcdef"
INIT = {"type": "system", "subtype": "init", "tools": ["Bash"], "permissionMode": "dontAsk"}


def said(text, message="msg_1", **more):
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "message": {"id": message, "model": "claude-sonnet-4-6", "content": content}, **more}


def called(id_, name="Bash", **given):
    block = {"type": "tool_use", "id": id_, "name": name, "input": given}
    return {"type": "assistant", "message": {"id": f"msg_{id_}", "content": [block]}, "parent_tool_use_id": None}


def returned(id_, content, **more):
    block = {"type": "tool_result", "tool_use_id": id_, "content": content, **more}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def noted(text):
    return {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
        "isSynthetic": True,
    }


def ended(result="", **fields):
    told = {"subtype": "success", "is_error": False, "terminal_reason": "completed", "stop_reason": "end_turn"}
    return {"type": "result", **told, "result": result, **fields}


def told(*events, code=0, stderr=""):
    done = Finished(code, Path("stdout"), stderr, 1.0)
    return read(Events(tuple(events)), done, program("claude_chat_", "target"), Redactor([KEY]))


def error(*events, **done):
    with pytest.raises((PassingError, PermanentError, RejectedRequest, ContextTooLong, RefusedError)) as caught:
        told(*events, **done)
    return caught.value


# Turns -----------------------------------------------------------------------------------------------------


def test_turns_in_the_order_in_which_they_happened():
    found = told(
        INIT,
        said("I look."),
        called("t1", command="ls"),
        returned("t1", [{"type": "text", "text": "a.txt"}, {"type": "image", "source": {}}]),
        called("t2", name="Read", file_path="/gold"),
        {"type": "system", "subtype": "permission_denied", "tool_name": "Read", "tool_use_id": "t2"},
        returned("t2", "Permission to use Read has been denied.", is_error=True),
        noted("[Your previous response had no visible output.]"),
        said("It is ", "msg_9"),
        said("four.", "msg_9"),
        ended("It is four."),
    )
    assert [turn.role for turn in found.trajectory] == [
        "assistant", "assistant", "tool", "assistant", "tool", "environment", "assistant", "assistant",
    ]  # fmt: skip
    assert found.trajectory[2].content == "a.txt\n[image]"
    assert found.trajectory[4].content == "[denied] Permission to use Read has been denied."
    assert json.loads(found.trajectory[1].tool_calls[0].arguments) == {"command": "ls"}
    assert (found.ending, found.text, found.first) == ("completed", "It is four.", "It is four.")


def test_what_a_helper_of_the_agent_says_and_the_program_s_own_words_are_no_turns():
    found = told(
        said("from below", parent_tool_use_id="t1"),
        {"type": "assistant", "message": {"model": "<synthetic>", "content": [{"type": "text", "text": "API Error"}]}},
        {"type": "rate_limit_event", "rate_limit_info": {}},
        said("Fine."),
        ended("Fine."),
    )
    assert [turn.content for turn in found.trajectory] == ["Fine."]


@pytest.mark.parametrize("content", [None, "text", 3, [None, 3, {"type": "thinking"}], [{"type": "text"}]])
def test_events_of_other_shapes_do_no_harm(content):
    found = told({"type": "assistant", "message": {"content": content}}, {"type": "user"}, {"type": 3}, ended("ok"))
    assert found.text == "ok"


# Endings ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("note", [[], [noted("Output token limit hit. Resume directly — no apology.")]])
def test_a_text_that_was_gone_on_with(note):
    """The older version does not tell that a reply was cut off: the next message follows at once."""
    found = told(said("The beginning", "msg_1"), *note, said(" and the rest", "msg_2"), ended(" and the rest"))
    assert (found.ending, found.first, found.text) == ("cut off", "The beginning", "The beginning and the rest")


def test_a_text_that_never_came_to_an_end():
    words = "API Error: Claude's response exceeded the 32000 output token maximum."
    result = ended(words, is_error=True, terminal_reason="api_error", stop_reason="stop_sequence")
    found = told(said("a", "1"), said("b", "2"), result, code=1)
    assert (found.ending, found.first, found.text) == ("cut off", "a", "ab")
    assert told(result, code=1).ending == "cut off"


def test_a_cut_before_a_tool_call_is_forgotten():
    found = told(said("a", "1"), said("b", "2"), called("t1"), returned("t1", ""), said("Done.", "4"), ended("Done."))
    assert (found.ending, found.text) == ("completed", "Done.")


def test_a_second_reply_that_was_asked_for_is_no_piece():
    note = noted("[structured-output-enforce] You MUST call the StructuredOutput tool to complete this request.")
    found = told(said("plain", "1"), note, said("plain again", "2"), ended("plain again"))
    assert (found.ending, found.text) == ("completed", "plain again")


@pytest.mark.parametrize(
    ("fields", "ending"),
    [
        ({"stop_reason": "refusal", "is_error": True, "terminal_reason": "api_error"}, "refused"),
        ({"subtype": "error_max_turns", "is_error": True, "errors": ["Reached 2"]}, "turns used up"),
        ({"terminal_reason": "max_turns", "is_error": True}, "turns used up"),
        ({"subtype": "error_max_structured_output_retries", "is_error": True}, "wrong form"),
        ({"stop_reason": "max_tokens"}, "cut off"),
    ],
)
def test_what_the_model_itself_is_to_blame_for(fields, ending):
    assert told(said("x"), ended("API Error: no", **fields), code=1).ending == ending


# Errors ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "fields", "kind"),
    [
        ("API Error: 400 messages: too few", {"api_error_status": 400}, RejectedRequest),
        ("Output blocked by content filtering policy", {"api_error_status": 400}, RefusedError),
        ("Credit balance is too low", {"api_error_status": 400}, PermanentError),
        ("Prompt is too long · the request is ~9 tokens", {"terminal_reason": "prompt_too_long"}, ContextTooLong),
        ("Request too large (max 32MB).", {"api_error_status": 413}, ContextTooLong),
        ("Not logged in · Please run /login", {}, PermanentError),
        (f"Failed to authenticate. API Error: 401 {KEY}", {"api_error_status": 401}, PermanentError),
        ("There's an issue with the selected model (x).", {"api_error_status": 404}, PermanentError),
        ("API Error: Request rejected (429) · slow", {"api_error_status": 429}, PassingError),
        ("API Error: 529 busy", {"api_error_status": 529}, PassingError),
        ("API Error: Stream ended without receiving any events", {}, PassingError),
        ("API Error: Unable to connect to API (ECONNRESET)", {}, PassingError),
    ],
)
def test_an_error_is_told_by_its_fields(words, fields, kind):
    result = ended(words, is_error=True, **{"terminal_reason": "api_error", "stop_reason": "stop_sequence", **fields})
    found = error(INIT, result, code=1)
    assert type(found) is kind
    assert KEY not in str(found)
    assert found.usage is None, "nothing was used"


@pytest.mark.parametrize(
    ("code", "stderr", "kind", "words"),
    [
        (1, "error: unknown option '--tools'\n(Did you mean --tool?)", PermanentError, "npm install"),
        (1, "Claude Code could not start: connection refused", PassingError, "connection refused"),
        (1, "Claude Code could not start: no", RejectedRequest, "could not start"),
        (0, "", PassingError, "no result, and exit code 0"),
        (3, "", PassingError, "no result, and exit code 3"),
    ],
)
def test_output_without_an_end(code, stderr, kind, words):
    found = error(INIT, said("half an answer"), code=code, stderr=stderr)
    assert type(found) is kind and words in str(found)


def test_what_was_used_before_an_error_is_told():
    used = {"m": {"inputTokens": 10, "outputTokens": 2}}
    result = ended("API Error: 500 no", is_error=True, api_error_status=500, modelUsage=used, total_cost_usd=0.5)
    assert error(result, code=1).usage == Usage(1, 10, 2, cached_tokens=0, usd=0.5)


# Usage -----------------------------------------------------------------------------------------------------


def test_tokens_of_all_models_are_added():
    models = {
        "a": {"inputTokens": 1, "cacheReadInputTokens": 10, "cacheCreationInputTokens": 100, "outputTokens": 5,
              "thinkingTokens": 3, "costUSD": 0.1},
        "b": {"inputTokens": 1000, "outputTokens": 7},
        "c": None,
    }  # fmt: skip
    found = usage_of({"modelUsage": models, "usage": {"input_tokens": 9}, "total_cost_usd": 0.25})
    assert found == Usage(1, 1111, 12, cached_tokens=10, reasoning_tokens=3, usd=0.25)


@pytest.mark.parametrize(
    ("result", "usage"),
    [
        ({}, Usage(1, unknown_calls=1)),
        ({"modelUsage": {}, "usage": {"input_tokens": 0}, "total_cost_usd": 0}, Usage(1, unknown_calls=1)),
        ({"usage": {"input_tokens": 3, "output_tokens": 1}}, Usage(1, 3, 1, cached_tokens=0)),
        ({"usage": {"input_tokens": "3", "output_tokens": True}, "total_cost_usd": "1"}, Usage(1, unknown_calls=1)),
    ],
)
def test_what_is_not_told_is_unknown(result, usage):
    """O-C3."""
    assert usage_of(result) == usage


# What it is given ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("prompt", "read"), [("Hi.", "Hi."), ("/help", "\n/help"), ("", "\n"), (" /x", " /x")])
def test_a_prompt_as_text(prompt, read):
    assert prompt_input(prompt) == ([], read)


def test_a_prompt_with_images():
    arguments, line = prompt_input("/look", {"a.png": b"1", "b.jpg": b"2"})
    assert arguments == ["--input-format", "stream-json"]
    content = json.loads(line)["message"]["content"]
    assert content[0] == {"type": "text", "text": "\n/look"}
    assert [part["text"] for part in content[1::2]] == ["a.png:", "b.jpg:"]
    assert [part["source"]["media_type"] for part in content[2::2]] == ["image/png", "image/jpeg"]


@pytest.mark.parametrize(
    ("effort", "given"),
    [
        (None, ([], {})),
        ("off", ([], {})),
        ("none", ([], {"MAX_THINKING_TOKENS": "0"})),
        ("minimal", (["--effort", "low"], {})),
        (" XHigh ", (["--effort", "xhigh"], {})),
    ],
)
def test_efforts(effort, given):
    assert effort_of(effort) == given


@pytest.mark.skipif(not BY_PIPE, reason="this system does not hand on open files by number")
def test_a_secret_is_handed_on_by_a_pipe_which_is_closed():
    with handed_on({"ONE": "secret ü", "TWO": "x" * 2000}) as (variables, numbers):
        assert set(variables) == {"ONE", "TWO"}
        assert sorted(map(int, variables.values())) == sorted(numbers)
        assert os.read(int(variables["ONE"]), 5000).decode() == "secret ü"
        assert os.read(int(variables["ONE"]), 1) == b"", "it ends there"
    for number in numbers:
        with pytest.raises(OSError):
            os.fstat(number)
