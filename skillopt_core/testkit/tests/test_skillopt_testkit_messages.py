"""Anthropic's Messages on the loopback server: what is asked as a script sees it, what is answered as a client does."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

import pytest
from skillopt_testkit.servers import ChatServer, Reply

CALL = {"id": "toolu_1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}
USAGE = {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6},
         "completion_tokens_details": {"reasoning_tokens": 2}}  # fmt: skip


def post(server, **body):
    """The answer's bytes and its content type."""
    address = f"{server.root}/v1/messages?beta=true"
    request = urllib.request.Request(address, json.dumps(body).encode(), {"x-api-key": "k"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.read(), response.headers["Content-Type"]


def test_a_message():
    with ChatServer([Reply("Let me see.", tool_calls=(CALL,), usage=USAGE)]) as server:
        told = json.loads(post(server, model="m", max_tokens=5, messages=[])[0])
    assert (told["role"], told["model"], told["stop_reason"]) == ("assistant", "m", "tool_use")
    assert told["content"] == [
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}},
    ]
    assert told["usage"] == {
        "input_tokens": 4, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 6, "output_tokens": 4,
        "output_tokens_details": {"thinking_tokens": 2},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("finish", "reason"), [(None, "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal")]
)
def test_a_stream_says_the_same_as_a_message(finish, reason):
    with ChatServer([Reply("größer 🦉", tool_calls=(CALL,) if finish is None else (), finish_reason=finish)]) as server:
        data, kind = post(server, model="m", messages=[], stream=True)
    assert kind == "text/event-stream"
    events = [json.loads(line[6:]) for line in data.decode().splitlines() if line.startswith("data: ")]
    assert [line[7:] for line in data.decode().splitlines() if line.startswith("event: ")] == [
        event["type"] for event in events
    ]
    assert (events[0]["type"], events[-1]["type"]) == ("message_start", "message_stop")
    assert events[0]["message"]["content"] == [] and events[0]["message"]["stop_reason"] is None
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert deltas[0] == {"type": "text_delta", "text": "größer 🦉"}
    ending = next(event for event in events if event["type"] == "message_delta")
    assert ending["delta"]["stop_reason"] == (reason if finish else "tool_use")
    assert ending["usage"]["output_tokens"] == 5
    if finish is None:
        assert json.loads(deltas[1]["partial_json"]) == {"at": "sky"}


def test_a_fault_has_anthropic_s_form():
    with ChatServer([Reply("slow down", status=429, headers={"Retry-After": "2"})]) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(server, model="m", messages=[], stream=True)
        told = json.loads(caught.value.read())
    assert (caught.value.code, caught.value.headers["Retry-After"]) == (429, "2")
    assert told["error"] == {"type": "rate_limit_error", "message": "slow down"}


def test_a_script_sees_chat_completions():
    seen = []

    def script(body):
        seen.append(body)
        return "ok"

    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "One"}, {"type": "text", "text": "Two"}]},
        {"role": "assistant", "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "sky"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "blue"}]},
            {"type": "text", "text": "See?"}, {"type": "image", "source": source},
        ]},
        {"role": "assistant", "content": "Yes."},
    ]  # fmt: skip
    tools = [{"name": "look", "description": "Look.", "input_schema": {"type": "object"}}]
    with ChatServer(script) as server:
        post(server, model="m", messages=messages, system=[{"type": "text", "text": "Be brief."}], tools=tools)
        assert server.requests[0].body["messages"] == messages, "what was received stays as it came"
    (body,) = seen
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "One"},
        {"role": "user", "content": "Two"},
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "toolu_1", "content": "blue"},
        {"role": "user", "content": [
            {"type": "text", "text": "See?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ]},
        {"role": "assistant", "content": "Yes."},
    ]  # fmt: skip
    assert body["tools"][0]["function"] == {"name": "look", "description": "Look.", "parameters": {"type": "object"}}


def test_a_client_may_look_whether_somebody_is_there():
    with ChatServer() as server:
        with urllib.request.urlopen(urllib.request.Request(f"{server.root}/", method="HEAD"), timeout=10) as response:
            assert response.status == 200
        assert server.requests == []
