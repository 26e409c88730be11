"""What a backend that speaks HTTP must keep, over real HTTP on the loopback, whichever protocol it speaks."""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
from skillopt_kernel.errors import PassingError, PermanentError, RejectedRequest
from skillopt_kernel.models.requests import ChatRequest, Tool
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_kernel.records import ToolCall

from skillopt_testkit.conformance.backend import BackendConformance
from skillopt_testkit.protocols import Reply
from skillopt_testkit.servers import ChatServer

PIXEL = bytes.fromhex("89504e470d0a1a0a")
LOOK = Tool("look", "Look at something.", {"type": "object", "properties": {"at": {"type": "string"}}})
SECRET = "conformance-key-0123456789"
SECONDS = 120.0
"""How long anything is waited for that ought to happen at once."""


def _error(status: int, message: str, code: str) -> Reply:
    return Reply(status=status, body=json.dumps({"error": {"message": message, "code": code}}).encode())


REPLIES: Mapping[str, Reply] = {
    "rejected": Reply("invalid", status=400),
    "wrong key": Reply(f"no such key: {SECRET}", status=401),
    "unknown model": Reply("no such model", status=404),
    "rate limit": Reply("slow down", status=429, headers={"Retry-After": "3"}),
    "server error": Reply(f"broken with {SECRET}", status=500),
    "too long": _error(400, "This model's maximum context length is 8 tokens.", "context_length_exceeded"),
    "refused": _error(400, "The prompt was filtered.", "content_filter"),
    "empty": Reply(""),
    "malformed": Reply(body=b"<html>gateway</html>"),
    "dropped": Reply(drop=True),
}
"""Fault -> what the server answers. One that hangs answers when the test is over."""


class HttpChatConformance(BackendConformance):
    """Subclass it, give `name` and `settings_for(url)`: settings that point at that base URL, with the key `SECRET`."""

    faults = (*REPLIES, "hang")
    secret = SECRET
    key_header: ClassVar[str] = "authorization"

    def settings_for(self, url: str) -> Any:
        raise NotImplementedError("give settings_for(url)")

    @pytest.fixture
    def server(self) -> Iterator[ChatServer]:
        with ChatServer(["ok"]) as server:
            yield server

    @pytest.fixture
    def settings(self, server: ChatServer) -> Any:
        return self.settings_for(server.url)

    def opened(self, server: ChatServer, context: Any) -> Any:
        """The backend at a server."""
        return make_driver(self.kind, self.name, self.settings_for(server.url), context)

    @contextmanager
    def provoked(self, fault: str, context: Any) -> Iterator[Any]:
        over = threading.Event()

        def hang(_: Any) -> Reply:
            over.wait(SECONDS)
            return Reply("late")

        with ChatServer(hang if fault == "hang" else [REPLIES[fault]]) as server:
            driver = self.opened(server, context)
            try:
                yield driver
                assert len(server.requests) <= 1, "a backend does not retry: the kernel does"
            finally:
                over.set()
                driver.close()

    def answered(self, context: Any, *replies: Reply | str, request: ChatRequest | None = None) -> Any:
        """The reply of the backend and the request that the server got."""
        with ChatServer(replies) as server:
            driver = self.opened(server, context)
            reply = driver.open_chat(self.role).complete(request or self.request())
            assert len(server.requests) == 1, "a backend does not retry: the kernel does"
            driver.close()
            return reply, server.requests[0]

    def test_usage_is_recorded(self, context: Any) -> None:
        usage = {
            "prompt_tokens": 11,
            "completion_tokens": 7,
            "total_tokens": 18,
            "prompt_tokens_details": {"cached_tokens": 5},
            "completion_tokens_details": {"reasoning_tokens": 3},
        }
        told = self.answered(context, Reply("fine", usage=usage))[0].usage
        assert (told.calls, told.prompt_tokens, told.completion_tokens) == (1, 11, 7)
        assert (told.cached_tokens, told.reasoning_tokens) == (5, 3)
        untold = self.answered(context, Reply("fine", usage=None))[0].usage
        assert untold.prompt_tokens is None, "what the endpoint did not say is unknown, not zero"
        assert untold.unknown_calls == 1

    @pytest.mark.parametrize(
        ("reply", "finish"),
        [
            (Reply("whole"), "stop"),
            (Reply("cut off", finish_reason="length"), "length"),
            (Reply("", finish_reason="length"), "length"),
            (Reply("", finish_reason="content_filter"), "filtered"),
            (Reply(""), "empty"),
        ],
    )
    def test_how_a_reply_ended(self, context: Any, reply: Reply, finish: str) -> None:
        assert self.answered(context, reply)[0].finish == finish

    def test_the_token_limit_of_a_call_is_what_is_sent(self, context: Any) -> None:
        """A smaller one that nobody asked for would cut off an optimizer's reply."""
        _, received = self.answered(context, "fine", request=self.request(max_tokens=64_000))
        limits = {name: value for name, value in received.body.items() if "max_" in name and "tokens" in name}
        assert list(limits.values()) == [64_000], limits

    def test_the_key_is_sent_as_a_header_only(self, context: Any) -> None:
        _, received = self.answered(context, "fine")
        assert SECRET in received.headers[self.key_header]
        others = {name: value for name, value in received.headers.items() if name != self.key_header}
        assert SECRET not in json.dumps([received.path, others, dict(received.body)])

    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 529])
    def test_passing_errors(self, context: Any, status: int) -> None:
        with pytest.raises(PassingError):
            self.answered(context, Reply("later", status=status))

    @pytest.mark.parametrize("status", [401, 403, 404])
    def test_permanent_errors(self, context: Any, status: int) -> None:
        with pytest.raises(PermanentError) as caught:
            self.answered(context, Reply("no", status=status))
        assert len(str(caught.value).split()) > 5, "a permanent error says what to do"

    @pytest.mark.parametrize("status", [400, 422])
    def test_a_rejected_request_concerns_itself_only(self, context: Any, status: int) -> None:
        with pytest.raises(RejectedRequest):
            self.answered(context, Reply("invalid", status=status))

    @pytest.mark.parametrize(
        "body", [b"", b"<html>gateway</html>", b"{}", b'{"choices": []}', b'{"output": 3}', b"[1]"]
    )
    def test_a_reply_that_is_no_completion_passes(self, context: Any, body: bytes) -> None:
        with pytest.raises(PassingError):
            self.answered(context, Reply(body=body))

    def test_tool_calls_come_back_with_the_endpoint_s_ids(self, context: Any) -> None:
        calls = [
            {"id": f"call-{name}", "type": "function", "function": {"name": "look", "arguments": f'{{"at": "{name}"}}'}}
            for name in ("sky", "sea")
        ]
        reply, _ = self.answered(context, Reply(tool_calls=tuple(calls)), request=self.request(tools=(LOOK,)))
        assert reply.tool_calls == (
            ToolCall("call-sky", "look", '{"at": "sky"}'),
            ToolCall("call-sea", "look", '{"at": "sea"}'),
        )
        assert reply.finish == "tool_calls"

    def test_calls_at_once_have_a_connection_each_and_closing_leaves_none(self, context: Any) -> None:
        together = threading.Barrier(self.parallel)

        def at_once(_: Any) -> str:
            together.wait(SECONDS)
            return "ok"

        with ChatServer(at_once) as server:
            driver = self.opened(server, context)
            model = driver.open_chat(self.role)
            with ThreadPoolExecutor(self.parallel) as pool:
                list(pool.map(lambda _: model.complete(self.request()), range(self.parallel * 2)))
            assert server.peak == self.parallel
            assert server.connections <= 2 * self.parallel
            driver.close()
            gc.collect()
            assert _comes_true(lambda: server.connected == 0), f"{server.connected} connections are left open"


def _comes_true(condition: Callable[[], bool]) -> bool:
    ends = time.monotonic() + SECONDS
    while not condition() and time.monotonic() < ends:
        time.sleep(0.01)
    return condition()
