"""The Responses API on the wire, as endpoints really write it."""

from __future__ import annotations

from typing import Any

import pytest
from skillopt_kernel.errors import ContextTooLong, ModelError, PassingError, RefusedError, RejectedRequest
from skillopt_kernel.models.requests import ChatReply, ChatRequest, ImagePart, Message, TextPart, Tool
from skillopt_kernel.records import ToolCall, Usage
from skillopt_lib_chat.failures import error_inside
from skillopt_lib_chat.options import ChatOptions
from skillopt_lib_chat.responses import read_reply, request_body

ASK = ChatRequest((Message("user", "hello"),))
TOOL = Tool("look", "Look.", {"type": "object", "properties": {"at": {"type": "string"}}})


def options(**told: Any) -> ChatOptions:
    return ChatOptions(model="m", base_url="http://a/v1", role="target", prefix="p_", api="responses", **told)


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": list(parts)}


def text(words: str) -> dict[str, Any]:
    return {"type": "output_text", "text": words, "annotations": []}


def read(*output: Any, **more: Any) -> ChatReply:
    return read_reply({"status": "completed", "output": list(output), **more}, ASK)


# Requests --------------------------------------------------------------------------------------------------


def test_a_plain_request_says_nothing_that_was_not_asked_for() -> None:
    expected = {"model": "m", "input": [{"role": "user", "content": "hello"}], "store": False}
    assert request_body(ASK, options()) == expected


def test_every_option_of_a_call() -> None:
    request = ChatRequest(
        (Message("system", "A."), Message("system", "B."), Message("user", "hello")),
        schema={"type": "object"}, max_tokens=9, effort="high", temperature=0.0, seed=7,
    )  # fmt: skip
    body = request_body(request, options(efforts=("low", "medium"), structured_output=True, send_seed=True))
    assert body["instructions"] == "A.\n\nB."
    assert body["max_output_tokens"] == 9
    assert body["temperature"] == 0.0
    assert body["reasoning"] == {"effort": "medium"}
    assert body["text"]["format"]["schema"] == {"type": "object"}
    assert "seed" not in body, "the API has none"
    plain = request_body(request, options(send_temperature=False))
    assert plain.keys() == {"model", "input", "store", "instructions", "max_output_tokens"}


def test_a_forced_choice_is_converted() -> None:
    def sent(choice: str) -> Any:
        return request_body(ChatRequest(ASK.messages, tools=(TOOL,), tool_choice=choice), options()).get("tool_choice")

    assert [sent(choice) for choice in ("auto", "none", "required")] == [None, "none", "required"]
    assert sent("look") == {"type": "function", "name": "look"}
    tools = request_body(ChatRequest(ASK.messages, tools=(TOOL,)), options())["tools"]
    assert tools == [
        {"type": "function", "name": "look", "description": "Look.", "parameters": TOOL.parameters, "strict": False}
    ]


def test_a_conversation_with_images_and_tools() -> None:
    messages = (
        Message("user", (TextPart("see"), ImagePart(b"\x00\xff", "image/png", "low"))),
        Message("assistant", "I look.", (ToolCall("1", "look", '{"at": 1}'), ToolCall("2", "look", "{}"))),
        Message("tool", "seen", tool_call_id="1"),
        Message("tool", (ImagePart(b"\x00", "image/webp"),), tool_call_id="2"),
        Message("assistant", ""),
    )
    assert request_body(ChatRequest(messages), options())["input"] == [
        {"role": "user", "content": [
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "image_url": "data:image/png;base64,AP8=", "detail": "low"},
        ]},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "1", "name": "look", "arguments": '{"at": 1}'},
        {"type": "function_call", "call_id": "2", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "seen"},
        {"type": "function_call_output", "call_id": "2", "output": [
            {"type": "input_image", "image_url": "data:image/webp;base64,AA==", "detail": "auto"},
        ]},
        {"role": "assistant", "content": ""},
    ]  # fmt: skip


# Replies ---------------------------------------------------------------------------------------------------


def test_text_tools_and_reasoning() -> None:
    reply = read(
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "because"}], "content": None},
        message(text("I "), text("look.")),
        {"type": "function_call", "id": "fc_1", "call_id": "call_9", "name": "look", "arguments": '{"at": "sky"}'},
        {"type": "function_call", "name": "look", "arguments": {"at": "sea"}},
        {"type": "function_call"},
        {"type": "web_search_call"},
        "nothing",
        usage={"input_tokens": 30, "output_tokens": 9, "input_tokens_details": {"cached_tokens": 20},
               "output_tokens_details": {"reasoning_tokens": 4}},
    )  # fmt: skip
    assert (reply.text, reply.reasoning, reply.finish) == ("I look.", "because", "tool_calls")
    assert reply.tool_calls == (
        ToolCall("call_9", "look", '{"at": "sky"}'),
        ToolCall("call_1", "look", '{"at": "sea"}'),
    )
    assert reply.usage == Usage(1, 30, 9, 20, 4)


@pytest.mark.parametrize(
    ("output", "more", "finish", "words"),
    [
        ([message(text("hi"))], {}, "stop", "hi"),
        ([message(text("<think>a</think>hi"))], {}, "stop", "hi"),
        ([], {}, "empty", ""),
        ([message(text(" "))], {}, "empty", " "),
        ([{"type": "reasoning", "summary": []}], {}, "empty", ""),
        ([message({"type": "refusal", "refusal": "I cannot."})], {}, "filtered", "I cannot."),
        ([message(text("hal"))], {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
         "length", "hal"),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length", ""),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "filtered", ""),
        ([], {"status": "incomplete", "incomplete_details": None}, "length", ""),
    ],
)  # fmt: skip
def test_how_it_ended(output: list[Any], more: dict[str, Any], finish: str, words: str) -> None:
    reply = read(*output, **more)
    assert (reply.finish, reply.text) == (finish, words)


@pytest.mark.parametrize(
    "raw", [None, [], {}, {"output": None}, {"output": [], "status": "failed"}, {"output": [], "status": "in_progress"}]
)
def test_what_is_no_response_passes(raw: Any) -> None:
    with pytest.raises(PassingError):
        read_reply(raw, ASK)


@pytest.mark.parametrize(
    ("code", "kind", "overloaded"),
    [
        ("server_error", PassingError, False),
        ("rate_limit_exceeded", PassingError, True),
        ("something_new", PassingError, False),
        ("invalid_prompt", RejectedRequest, False),
        ("image_too_large", RejectedRequest, False),
        ("image_content_policy_violation", RefusedError, False),
        ("bio_policy", RefusedError, False),
        ("context_length_exceeded", ContextTooLong, False),
    ],
)
def test_a_response_that_failed(code: str, kind: type[ModelError], overloaded: bool) -> None:
    begun = [message(text("hal"))]
    answer = {"status": "failed", "output": begun, "error": {"code": code, "message": "it failed"}}
    error = error_inside(answer, options())
    assert type(error) is kind and "it failed" in str(error)
    assert getattr(error, "overloaded", False) is overloaded
