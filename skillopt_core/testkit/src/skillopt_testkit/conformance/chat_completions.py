"""What a backend that speaks Chat Completions must keep, over real HTTP on the loopback."""

from __future__ import annotations

from typing import Any

import pytest
from skillopt_kernel.models.requests import ChatRequest, ImagePart, Message, TextPart
from skillopt_kernel.records import ToolCall

from skillopt_testkit.conformance.http_chat import LOOK, PIXEL, HttpChatConformance

CALL = ToolCall("c1", "look", '{"at": "sky"}')
MESSAGES = (
    Message("system", "Be brief."),
    Message("user", (TextPart("What is it?"), ImagePart(PIXEL, "image/png"))),
    Message("assistant", "", tool_calls=(CALL,)),
    Message("tool", "blue", tool_call_id="c1"),
)
"""A conversation with everything that one may have."""


class ChatCompletionsConformance(HttpChatConformance):
    """Subclass it, give `name` and `settings_for(url)`: settings that point at that base URL, with the key `SECRET`."""

    def test_messages_are_sent_as_the_protocol_has_them(self, context: Any) -> None:
        _, received = self.answered(context, "fine", request=ChatRequest(MESSAGES, tools=(LOOK,), stage="rollout"))
        assert received.path.partition("?")[0].endswith("/chat/completions")
        system, user, assistant, tool = received.body["messages"]
        assert system == {"role": "system", "content": "Be brief."}
        assert user["content"][0] == {"type": "text", "text": "What is it?"}
        assert user["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
        assert assistant["tool_calls"][0]["id"] == "c1"
        assert assistant["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "sky"}'}
        assert (tool["tool_call_id"], tool["content"]) == ("c1", "blue")
        assert received.body["tools"][0]["function"]["name"] == "look"

    @pytest.mark.parametrize(
        ("choice", "sent"),
        [
            ("auto", None),
            ("none", "none"),
            ("required", "required"),
            ("look", {"type": "function", "function": {"name": "look"}}),
        ],
    )
    def test_the_choice_among_tools(self, context: Any, choice: str, sent: Any) -> None:
        request = self.request(tools=(LOOK,), tool_choice=choice)
        _, received = self.answered(context, "fine", request=request)
        assert received.body.get("tool_choice") == sent


class ResponsesConformance(HttpChatConformance):
    """As `ChatCompletionsConformance`, for settings with which the backend speaks Responses."""

    def test_messages_are_sent_as_the_protocol_has_them(self, context: Any) -> None:
        _, received = self.answered(context, "fine", request=ChatRequest(MESSAGES, tools=(LOOK,), stage="rollout"))
        assert received.path.partition("?")[0].endswith("/responses")
        assert received.body["instructions"] == "Be brief."
        assert received.body["store"] is False, "the endpoint keeps nothing"
        user, call, output = received.body["input"]
        assert user["content"][0] == {"type": "input_text", "text": "What is it?"}
        assert user["content"][1]["image_url"].startswith("data:image/png;base64,")
        assert call == {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"at": "sky"}'}
        assert output == {"type": "function_call_output", "call_id": "c1", "output": "blue"}
        assert received.body["tools"][0]["name"] == "look"

    @pytest.mark.parametrize(
        ("choice", "sent"),
        [("auto", None), ("none", "none"), ("required", "required"), ("look", {"type": "function", "name": "look"})],
    )
    def test_the_choice_among_tools(self, context: Any, choice: str, sent: Any) -> None:
        request = self.request(tools=(LOOK,), tool_choice=choice)
        _, received = self.answered(context, "fine", request=request)
        assert received.body.get("tool_choice") == sent
