"""What a backend that speaks Chat Completions must keep, over real HTTP on the loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from skillopt_kernel.errors import ContextTooLong, PassingError, PermanentError, RejectedRequest
from skillopt_kernel.models.requests import ChatRequest, ImagePart, Message, TextPart, Tool
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_kernel.records import ToolCall

from skillopt_testkit.conformance.backend import BackendConformance
from skillopt_testkit.servers import ChatServer, Reply

PIXEL = bytes.fromhex("89504e470d0a1a0a")
LOOK = Tool("look", "Look at something.", {"type": "object", "properties": {"at": {"type": "string"}}})


class ChatCompletionsConformance(BackendConformance):
    """Subclass it, give `name` and `settings_for(url)`: settings that point at that base URL, with any key."""

    def settings_for(self, url: str) -> Any:
        raise NotImplementedError("give settings_for(url)")

    @pytest.fixture
    def server(self) -> Iterator[ChatServer]:
        with ChatServer(["ok"]) as server:
            yield server

    @pytest.fixture
    def settings(self, server: ChatServer) -> Any:
        return self.settings_for(server.url)

    def answered(self, context: Any, *replies: Reply | str, request: ChatRequest | None = None) -> Any:
        """The reply of the backend and the request that the server got."""
        with ChatServer(replies) as server:
            driver = make_driver(self.kind, self.name, self.settings_for(server.url), context)
            reply = driver.open_chat(self.role).complete(request or self.request())
            assert len(server.requests) == 1, "a backend does not retry: the kernel does"
            return reply, server.requests[0]

    def test_usage_is_recorded(self, context: Any) -> None:
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        reply, _ = self.answered(context, Reply("fine", usage=usage))
        assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (11, 7)
        reply, _ = self.answered(context, Reply("fine", usage=None))
        assert reply.usage.prompt_tokens is None, "what the endpoint did not say is unknown, not zero"

    @pytest.mark.parametrize(
        ("reply", "finish"),
        [
            (Reply("cut off", finish_reason="length"), "length"),
            (Reply("", finish_reason="content_filter"), "filtered"),
            (Reply(""), "empty"),
        ],
    )
    def test_how_a_reply_ended(self, context: Any, reply: Reply, finish: str) -> None:
        assert self.answered(context, reply)[0].finish == finish

    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
    def test_passing_errors(self, context: Any, status: int) -> None:
        with pytest.raises(PassingError):
            self.answered(context, Reply("later", status=status))

    def test_retry_after_is_told(self, context: Any) -> None:
        with pytest.raises(PassingError) as caught:
            self.answered(context, Reply("slow down", status=429, headers={"Retry-After": "3"}))
        assert caught.value.retry_after == 3.0

    def test_a_lost_connection_passes(self, context: Any) -> None:
        with pytest.raises(PassingError):
            self.answered(context, Reply(drop=True))

    @pytest.mark.parametrize("status", [401, 403, 404])
    def test_permanent_errors(self, context: Any, status: int) -> None:
        with pytest.raises(PermanentError) as caught:
            self.answered(context, Reply("no", status=status))
        assert len(str(caught.value).split()) > 5, "a permanent error says what to do"

    @pytest.mark.parametrize("status", [400, 422])
    def test_a_rejected_request_concerns_itself_only(self, context: Any, status: int) -> None:
        with pytest.raises(RejectedRequest):
            self.answered(context, Reply("invalid", status=status))

    def test_a_context_that_is_too_long(self, context: Any) -> None:
        error = {"message": "This model's maximum context length is 8 tokens.", "code": "context_length_exceeded"}
        with pytest.raises(ContextTooLong):
            self.answered(context, Reply(status=400, body=json.dumps({"error": error}).encode()))

    @pytest.mark.parametrize("body", [b"", b"<html>gateway</html>", b"{}", b'{"choices": []}', b"[1]"])
    def test_a_reply_that_is_no_completion_passes(self, context: Any, body: bytes) -> None:
        with pytest.raises(PassingError):
            self.answered(context, Reply(body=body))

    def test_messages_are_sent_as_the_protocol_has_them(self, context: Any) -> None:
        call = ToolCall("c1", "look", '{"at": "sky"}')
        messages = (
            Message("system", "Be brief."),
            Message("user", (TextPart("What is it?"), ImagePart(PIXEL, "image/png"))),
            Message("assistant", "", tool_calls=(call,)),
            Message("tool", "blue", tool_call_id="c1"),
        )
        _, received = self.answered(context, "fine", request=ChatRequest(messages, tools=(LOOK,), stage="rollout"))
        system, user, assistant, tool = received.body["messages"]
        assert system["content"] == "Be brief."
        assert user["content"][0] == {"type": "text", "text": "What is it?"}
        assert user["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
        assert assistant["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "sky"}'}
        assert (tool["tool_call_id"], tool["content"]) == ("c1", "blue")
        assert received.body["tools"][0]["function"]["name"] == "look"

    def test_tool_calls_come_back(self, context: Any) -> None:
        call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "sky"}'}}
        request = self.request(tools=(LOOK,))
        reply, _ = self.answered(context, Reply(tool_calls=(call,)), request=request)
        assert reply.tool_calls == (ToolCall("c1", "look", '{"at": "sky"}'),)
        assert reply.finish == "tool_calls"
