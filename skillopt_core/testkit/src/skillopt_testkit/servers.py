"""A loopback server that speaks Chat Completions: real HTTP for tests, with scripted replies and faults."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

from attrs import field, frozen


@frozen
class Reply:
    """What the server answers one request with.

    text, tool_calls, finish_reason   of the one choice; tool_calls as the protocol has them
    usage     the protocol's `usage` object, `None` leaves it out
    status    HTTP status; from 400 on, `text` is the error's message
    headers   further headers, e.g. {"Retry-After": "2"}
    delay     seconds to wait before answering
    drop      close the connection without an answer
    body      the whole body as it stands, instead of all the above
    """

    text: str = ""
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    finish_reason: str | None = None
    usage: Mapping[str, int] | None = field(
        factory=lambda: {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    )
    status: int = 200
    headers: Mapping[str, str] = field(factory=dict)
    delay: float = 0.0
    drop: bool = False
    body: bytes | None = None

    def encoded(self, model: str) -> bytes:
        """The body of the HTTP response."""
        if self.body is not None:
            return self.body
        if self.status >= 400:
            error = {"message": self.text or f"scripted status {self.status}", "type": "scripted"}
            return json.dumps({"error": error}).encode()
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.tool_calls:
            message["tool_calls"] = [dict(call) for call in self.tool_calls]
        finish = self.finish_reason or ("tool_calls" if self.tool_calls else "stop")
        completion: dict[str, Any] = {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }
        if self.usage is not None:
            completion["usage"] = dict(self.usage)
        return json.dumps(completion).encode()


@frozen
class Received:
    """One request as it came: its path, its headers (names in lower case) and its JSON body."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


Script = Callable[[Mapping[str, Any]], Reply | str]


class ChatServer:
    """Serves Chat Completions on 127.0.0.1 while it is used as a context manager.

    script    a function from a request's JSON body to a `Reply` (or its text), called from several threads at
              once; or replies in order, the last one repeated for ever. As an attribute: the function in use
    url       base URL for a client, ending in `/v1`; requests: everything received, in order of arrival
    peak      the most requests that were being answered at the same time
    """

    def __init__(self, script: Script | Iterable[Reply | str] = ("ok",), models: tuple[str, ...] = ("test",)) -> None:
        self.script: Script = script if callable(script) else _in_order(script)
        self._lock = threading.Lock()
        self._open = 0
        self.models = models
        self.requests: list[Received] = []
        self.peak = 0

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"chat_server": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    def answer(self, received: Received) -> Reply:
        """The reply to one request; called by the handler's threads."""
        with self._lock:
            self.requests.append(received)
            self._open += 1
            self.peak = max(self.peak, self._open)
        try:
            reply = self.script(received.body)
            reply = Reply(reply) if isinstance(reply, str) else reply
            if reply.delay:
                time.sleep(reply.delay)
            return reply
        finally:
            with self._lock:
                self._open -= 1


def _in_order(replies: Iterable[Reply | str]) -> Script:
    waiting = list(replies)
    if not waiting:
        raise ValueError("a scripted server needs at least one reply")
    lock = threading.Lock()

    def script(_: Mapping[str, Any]) -> Reply | str:
        with lock:
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return script


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests, and no traceback."""


class _Handler(BaseHTTPRequestHandler):
    chat_server: ClassVar[ChatServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        models = [{"id": name, "object": "model"} for name in self.chat_server.models]
        self._send(200, json.dumps({"object": "list", "data": models}).encode(), {})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(raw or b"{}")
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.chat_server.answer(Received(self.path, headers, body))
        if reply.drop:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._send(reply.status, reply.encoded(str(body.get("model", ""))), reply.headers)

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what was received is in `ChatServer.requests`."""
