"""A loopback server for tests, real HTTP with scripted replies and faults: Chat Completions, Responses, Messages."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

from attrs import frozen

from skillopt_testkit.protocols import Reply, as_chat, protocol_of


@frozen
class Received:
    """One request as it came: its path, its headers (names in lower case) and its JSON body."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]


__all__ = ["ChatServer", "Received", "Reply", "Script"]

Script = Callable[[Mapping[str, Any]], Reply | str]


class ChatServer:
    """Serves Chat Completions, Responses and Anthropic's Messages on 127.0.0.1, while used as a context manager.

    script    a function from a request's JSON body, in the form of Chat Completions, to a `Reply` (or its text),
              called from several threads at once; or replies in order, the last one repeated for ever. As an
              attribute: the function in use
    url       base URL for a client, ending in `/v1`; root: without it, as Anthropic's and Azure's clients want it
    requests  everything received, as it came, in order of arrival
    peak      the most requests that were being answered at the same time
    connected connections that are open now; connections: all that there were
    """

    def __init__(self, script: Script | Iterable[Reply | str] = ("ok",), models: tuple[str, ...] = ("test",)) -> None:
        self.script: Script = script if callable(script) else _in_order(script)
        self._lock = threading.Lock()
        self._open = 0
        self.models = models
        self.requests: list[Received] = []
        self.peak = self.connected = self.connections = 0

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"chat_server": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._server.chat_server = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def root(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def url(self) -> str:
        return f"{self.root}/v1"

    def count(self, opened: int) -> None:
        """A connection was opened (1) or closed (-1)."""
        with self._lock:
            self.connected += opened
            self.connections += max(opened, 0)

    def answer(self, received: Received) -> Reply:
        """The reply to one request; called by the handler's threads."""
        body = received.body
        with self._lock:
            self.requests.append(received)
            self._open += 1
            self.peak = max(self.peak, self._open)
        try:
            reply = self.script(as_chat(body, protocol_of(received.path) or ""))
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
    chat_server: ChatServer

    def process_request(self, request: Any, client_address: Any) -> None:
        self.chat_server.count(1)
        super().process_request(request, client_address)

    def close_request(self, request: Any) -> None:
        super().close_request(request)
        self.chat_server.count(-1)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of the tests, and no traceback."""


class _Handler(BaseHTTPRequestHandler):
    chat_server: ClassVar[ChatServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_HEAD(self) -> None:
        self._send(200, b"", {})

    def do_GET(self) -> None:
        if protocol_of(self.path) != "models":
            self._nothing_here()
            return
        models = [{"id": name, "object": "model"} for name in self.chat_server.models]
        self._send(200, json.dumps({"object": "list", "data": models}).encode(), {})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        protocol = protocol_of(self.path)
        if protocol not in ("chat/completions", "responses", "messages"):
            self._nothing_here()
            return
        body = json.loads(raw or b"{}")
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.chat_server.answer(Received(self.path, headers, body))
        if reply.drop:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        streams = protocol in ("messages", "responses") and bool(body.get("stream")) and reply.status < 400
        data = reply.encoded(str(body.get("model", "")), protocol, streams)
        self._send(reply.status, data, reply.headers, "text/event-stream" if streams else "application/json")

    def _nothing_here(self) -> None:
        self._send(404, json.dumps({"error": {"message": f"nothing is served at {self.path}"}}).encode(), {})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str], content: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", content)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what was received is in `ChatServer.requests`."""
