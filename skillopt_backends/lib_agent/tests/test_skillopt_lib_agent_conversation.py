"""A chat request as one prompt for a program, and its answer as a reply."""

from __future__ import annotations

import json

import pytest
from skillopt_kernel.errors import PassingError
from skillopt_kernel.models.requests import ChatRequest, ImagePart, Message, TextPart, Tool
from skillopt_kernel.records import ToolCall, Usage
from skillopt_lib_agent.conversation import REPLY_WITH_CALLS, conversation_of, is_strict, reply_of

LOOK = Tool("look", "Look at something.", {"type": "object", "properties": {"at": {"type": "string"}}})
STRICT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def asked(*messages: Message, **options) -> ChatRequest:
    return ChatRequest(messages, **options)


def calls(*wanted: dict, content: str = "") -> str:
    return json.dumps({"content": content, "tool_calls": list(wanted)})


def test_one_question_stays_as_it_is():
    told = conversation_of(
        asked(Message("system", "Be brief."), Message("system", "Be kind."), Message("user", "Hi 🦉"))
    )
    assert (told.system, told.prompt, told.schema) == ("Be brief.\n\nBe kind.", "Hi 🦉", None)


def test_a_conversation_becomes_a_transcript():
    call = ToolCall("c1", "look", '{"at": "sky"}')
    told = conversation_of(
        asked(
            Message("user", "What is it?"),
            Message("assistant", "I look.", (call,)),
            Message("tool", "blue", tool_call_id="c1"),
            Message("user", "And?"),
        )
    )
    positions = [
        told.prompt.index(word)
        for word in ("What is it?", "I look.", '"look"', "Result of the call c1", "blue", "And?")
    ]
    assert positions == sorted(positions)
    assert told.prompt.startswith("This is a conversation.")


def test_images_become_files_that_the_prompt_names():
    pictures = (ImagePart(b"one", "image/png"), TextPart("and"), ImagePart(b"two", "image/jpeg"))
    told = conversation_of(asked(Message("user", (TextPart("Compare"), *pictures))))
    assert told.images == {"image-1.png": b"one", "image-2.jpg": b"two"}
    assert told.prompt == "Compare\n[image-1.png]\nand\n[image-2.jpg]"


@pytest.mark.parametrize(
    ("choice", "words"),
    [("auto", "where they help"), ("required", "at least one"), ("none", "no call"), ("look", "`look`")],
)
def test_tools_are_asked_for_in_json(choice, words):
    told = conversation_of(asked(Message("user", "Look."), tools=(LOOK,), tool_choice=choice))
    assert told.schema == REPLY_WITH_CALLS
    assert words in told.system and '"look"' in told.system


def test_calls_come_back_with_ids_that_occur_once_in_a_conversation():
    before = Message("assistant", "", (ToolCall("call_0", "look", "{}"),))
    request = asked(Message("user", "Look."), before, tools=(LOOK,))
    reply = reply_of(calls({"name": "look", "arguments": '{"at": "sky"}'}, content="I look."), request, Usage(1, 5, 3))
    assert reply.tool_calls == (ToolCall("call_1", "look", '{"at": "sky"}'),)
    assert (reply.text, reply.finish, reply.usage) == ("I look.", "tool_calls", Usage(1, 5, 3))
    told = reply_of(calls(content="It is blue."), request, Usage(1))
    assert (told.text, told.tool_calls, told.finish) == ("It is blue.", (), "stop")


@pytest.mark.parametrize("text", ["It is blue.", "[]", '{"content": "x"}', '{"content": "x", "tool_calls": [3]}', ""])
def test_what_is_not_in_the_form_passes_and_keeps_its_usage(text):
    with pytest.raises(PassingError) as caught:
        reply_of(text, asked(Message("user", "Look."), tools=(LOOK,)), Usage(1, 5, 3))
    assert caught.value.usage == Usage(1, 5, 3)


@pytest.mark.parametrize("wanted", [(), ({"name": "unknown", "arguments": "{}"},)])
def test_a_call_that_is_required_must_come(wanted):
    with pytest.raises(PassingError, match="had to"):
        reply_of(calls(*wanted), asked(Message("user", "Look."), tools=(LOOK,), tool_choice="required"), Usage(1))


def test_without_tools_the_answer_is_the_reply():
    assert reply_of('{"content": "x"}', asked(Message("user", "Hi")), Usage(1)).text == '{"content": "x"}'
    assert reply_of(" \n", asked(Message("user", "Hi")), Usage(1)).finish == "empty"


def test_a_schema_is_handed_on_where_providers_take_it():
    assert is_strict(STRICT)
    assert is_strict({**STRICT, "properties": {"a": {"type": "array", "items": STRICT}}})
    loose = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert not is_strict(loose) and not is_strict(None) and not is_strict({"type": "string"})
    assert not is_strict({**STRICT, "properties": {"a": loose}})
    assert conversation_of(asked(Message("user", "Hi"), schema=STRICT)).schema == STRICT
    assert conversation_of(asked(Message("user", "Hi"), schema=loose)).schema is None
