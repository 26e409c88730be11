"""Requests and replies on the wire, as endpoints really write them."""

from __future__ import annotations

from typing import Any

import pytest
from skillopt_kernel.errors import PassingError
from skillopt_kernel.models.requests import ChatReply, ChatRequest, ImagePart, Message, TextPart, Tool
from skillopt_kernel.records import ToolCall, Usage
from skillopt_lib_chat.options import ChatOptions, plain_address
from skillopt_lib_chat.wire import read_reply, read_usage, request_body

ASK = ChatRequest((Message("user", "hello"),))
CALL = {"id": "1", "function": {"name": "f", "arguments": "{}"}}


def options(**told: Any) -> ChatOptions:
    return ChatOptions(**{"model": "m", "base_url": "http://a/v1", "role": "target", "prefix": "p_", **told})


def completion(message: Any, finish: Any = "stop", **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}


def read(message: Any, finish: Any = "stop", **more: Any) -> ChatReply:
    return read_reply(completion(message, finish, **more), ASK)


# Requests --------------------------------------------------------------------------------------------------


def test_a_plain_request_says_nothing_that_was_not_asked_for() -> None:
    assert request_body(ASK, options()) == {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def test_every_option_of_a_call() -> None:
    request = ChatRequest(
        (Message("user", "hello"),), schema={"type": "object"}, max_tokens=9, effort="low", temperature=0.0, seed=7
    )
    body = request_body(request, options(efforts=("low",), send_seed=True, structured_output=True, temperature=1.5))
    assert body["max_tokens"] == 9
    assert body["temperature"] == 0.0, "a call's own temperature wins, and zero is one"
    assert (body["seed"], body["reasoning_effort"]) == (7, "low")
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert request_body(request, options()).keys() == {"model", "messages", "max_tokens", "temperature"}


@pytest.mark.parametrize(
    ("asked", "taken", "sent"),
    [
        ("medium", (), None), (None, ("low",), None), ("", ("low",), None), ("medium", ("low", "medium"), "medium"),
        ("max", ("low", "medium", "high"), "high"), ("low", ("high",), "high"), ("xhigh", ("high", "max"), "high"),
        ("minimal", ("low", "high"), "low"), ("deeper", ("low",), "deeper"),
    ],
)  # fmt: skip
def test_an_effort_is_the_nearest_that_the_model_takes(
    asked: str | None, taken: tuple[str, ...], sent: str | None
) -> None:
    body = request_body(ChatRequest(ASK.messages, effort=asked), options(efforts=taken))
    assert body.get("reasoning_effort") == sent


def test_a_model_that_takes_no_temperature_is_sent_none() -> None:
    request = ChatRequest(ASK.messages, temperature=0.5)
    assert "temperature" not in request_body(request, options(send_temperature=False, temperature=1.0))


@pytest.mark.parametrize(
    ("asked", "told", "sent"), [(16_384, None, 16_384), (None, 100, 100), (50, 100, 50), (200, 100, 100)]
)
def test_the_token_limit(asked: int | None, told: int | None, sent: int) -> None:
    request = ChatRequest(ASK.messages, max_tokens=asked)
    body = request_body(request, options(max_tokens=told, token_limit_field="max_completion_tokens"))
    assert body["max_completion_tokens"] == sent
    assert "max_tokens" not in body


def test_tools_and_the_choice_among_them() -> None:
    tool = Tool("look", "Look.", {"type": "object"})
    function = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
    for choice, wire in [("required", "required"), ("look", {"type": "function", "function": {"name": "look"}})]:
        body = request_body(ChatRequest(ASK.messages, tools=(tool,), tool_choice=choice), options())
        assert body["tools"] == [{"type": "function", "function": function}]
        assert body["tool_choice"] == wire
    assert "tool_choice" not in request_body(ChatRequest(ASK.messages, tool_choice="required"), options())


def test_a_conversation_with_images_and_tools() -> None:
    messages = (
        Message(
            "user", (TextPart("see"), ImagePart(b"\x00\xff", "image/png", "low"), ImagePart(b"\x00", "image/webp"))
        ),
        Message("assistant", "", (ToolCall("1", "look", '{"at": 1}'),)),
        Message("tool", "seen", tool_call_id="1"),
    )
    user, assistant, tool = request_body(ChatRequest(messages), options())["messages"]
    assert user["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AP8=", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "data:image/webp;base64,AA=="}},
    ]
    assert assistant["content"] is None
    assert assistant["tool_calls"] == [
        {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
    ]
    assert tool == {"role": "tool", "content": "seen", "tool_call_id": "1"}


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://h:1/v1/", "http://h:1/v1"),
        ("https://user:password@h/v1?api-version=3", "https://h/v1"),
        (" https://h/v1/chat/completions ", "https://h/v1"),
    ],
)
def test_an_address_without_what_does_not_belong_to_it(url: str, address: str) -> None:
    assert plain_address(url) == address


def test_options_do_not_show_their_key() -> None:
    assert "s3cret" not in repr(options(api_key="s3cret"))


# Replies ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "finish", "expected"),
    [
        ({"content": "hi"}, "stop", "stop"),
        ({"content": "hi"}, None, "stop"),
        ({"content": "hi"}, "eos", "stop"),
        ({"content": "hi"}, "length", "length"),
        ({"content": ""}, "length", "length"),
        ({"content": None}, "content_filter", "filtered"),
        ({"content": None}, "stop", "empty"),
        ({"content": " \n"}, "stop", "empty"),
        ({}, "stop", "empty"),
        ({"content": None, "refusal": "I cannot help with that."}, "stop", "filtered"),
        ({"content": None, "tool_calls": [CALL]}, "stop", "tool_calls"),
        ({"content": None, "tool_calls": [CALL]}, "length", "length"),
        ({"content": "hi", "tool_calls": []}, "tool_calls", "stop"),
    ],
)  # fmt: skip
def test_how_it_ended(message: Any, finish: Any, expected: str) -> None:
    assert read(message, finish).finish == expected


def test_a_refusal_s_words_are_kept() -> None:
    assert read({"content": None, "refusal": "I cannot."}).text == "I cannot."


@pytest.mark.parametrize(
    ("message", "text", "reasoning"),
    [
        ({"content": "hi", "reasoning_content": "because"}, "hi", "because"),
        ({"content": "hi", "reasoning": "because"}, "hi", "because"),
        ({"content": "hi", "reasoning_details": [{"type": "reasoning.text", "text": "because"}]}, "hi", "because"),
        ({"content": "<think>\nbecause\n</think>\n\nhi"}, "hi", "because"),
        ({"content": "because</think>hi"}, "hi", "because"),
        ({"content": "<think>cut off"}, "", "cut off"),
        ({"content": "<think>b</think>hi", "reasoning_content": "a"}, "hi", "a\nb"),
        ({"content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "hi"}]}, "hi", ""),
        ({"content": "a <think> tag in the middle"}, "a <think> tag in the middle", ""),
    ],
)
def test_reasoning_is_kept_apart_from_the_text(message: Any, text: str, reasoning: str) -> None:
    reply = read(message)
    assert (reply.text, reply.reasoning) == (text, reasoning)


def test_only_reasoning_is_an_empty_reply() -> None:
    assert read({"content": "<think>hm</think>"}).finish == "empty"
    assert read({"content": None, "reasoning_content": "hm"}).finish == "empty"


def test_tool_calls_in_their_variants() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"function": {"name": "g", "arguments": {"y": "é"}}},
        {"id": "", "function": {"name": "h"}},
        {"id": "b", "function": {"name": ""}},
        "no call",
    ]
    reply = read({"content": None, "tool_calls": calls})
    assert reply.tool_calls == (
        ToolCall("a", "f", '{"x": 1}'),
        ToolCall("call_1", "g", '{"y": "é"}'),
        ToolCall("call_2", "h", "{}"),
    )


def test_made_up_ids_do_not_meet_again_in_a_conversation() -> None:
    raw = completion({"content": None, "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]})
    first = read_reply(raw, ASK).tool_calls
    second = read_reply(raw, ChatRequest((*ASK.messages, Message("assistant", "", first)))).tool_calls
    assert first[0].id != second[0].id
    assert read_reply(raw, ASK).tool_calls == first, "a replay makes the same ids"


@pytest.mark.parametrize(
    "raw",
    [
        None, [], "text", {}, {"choices": []}, {"choices": None}, {"choices": ["x"]}, {"choices": [{}]},
        completion("text"), completion(None), completion({"content": "half"}, "error"),
        completion({"content": ""}, "insufficient_system_resource"),
    ],
)  # fmt: skip
def test_what_is_no_completion_passes(raw: Any) -> None:
    with pytest.raises(PassingError):
        read_reply(raw, ASK)


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        (None, Usage(1, unknown_calls=1)),
        ({}, Usage(1, unknown_calls=1)),
        ({"prompt_tokens": 3, "completion_tokens": 0}, Usage(1, 3, 0)),
        ({"input_tokens": 3, "output_tokens": 4}, Usage(1, 3, 4)),
        ({"prompt_tokens": "3", "completion_tokens": -1}, Usage(1, unknown_calls=1)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2},
          "completion_tokens_details": {"reasoning_tokens": 1}}, Usage(1, 3, 4, 2, 1)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "prompt_tokens_details": None, "prompt_cache_hit_tokens": 2},
         Usage(1, 3, 4, 2)),
        ({"prompt_tokens": 3, "completion_tokens": 4, "cost": 0.25}, Usage(1, 3, 4, usd=0.25)),
        ({"prompt_tokens": True, "completion_tokens": 4.0, "cost": "free"}, Usage(1, unknown_calls=1)),
    ],
)  # fmt: skip
def test_usage_is_what_was_told(raw: Any, usage: Usage) -> None:
    assert read_usage(raw) == usage
