"""Connections as the server sees them: one for each request under way, used again, and redirections followed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from skillopt_kernel.models.requests import ChatRequest, Message
from skillopt_lib_chat.model import OpenAIChatModel
from skillopt_lib_chat.options import ChatOptions

ANSWER = json.dumps({"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]})
AT_ONCE = 4


class Server(ThreadingHTTPServer):
    """Answers every request below `/v1`, and sends what comes below `/old` there.

    ports    the ports that its clients' connections came from
    together what each request waits for before it is answered
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.ports: set[int] = set()
        self.together = threading.Barrier(1)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.server.ports.add(self.client_address[1])
        moved = self.path.startswith("/old/")
        data = b"" if moved else ANSWER.encode()
        if not moved:
            self.server.together.wait(30)
        self.send_response(307 if moved else 200)
        if moved:
            self.send_header("location", self.path.replace("/old/", "/v1/"))
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def model(url: str) -> OpenAIChatModel:
    return OpenAIChatModel(ChatOptions(model="test", base_url=url, role="target", prefix="openai_compatible_"))


def ask(made: OpenAIChatModel, times: int = 1) -> list[str]:
    return [made.complete(ChatRequest((Message("user", "hello"),))).text for _ in range(times)]


def test_one_call_after_the_other_has_one_connection() -> None:
    with serving() as server:
        made = model(f"{server.url}/v1")
        assert ask(made, 6) == ["hi"] * 6
        made.close()
    assert len(server.ports) == 1


def test_calls_at_once_have_as_many_connections_and_use_them_again() -> None:
    with serving() as server, ThreadPoolExecutor(AT_ONCE) as pool:
        made = model(f"{server.url}/v1")
        server.together = threading.Barrier(AT_ONCE)  # each call waits until all are under way
        assert list(pool.map(ask, [made] * AT_ONCE, [5] * AT_ONCE)) == [["hi"] * 5] * AT_ONCE
        made.close()
    assert len(server.ports) == AT_ONCE


def test_a_redirection_is_followed() -> None:
    with serving() as server:
        made = model(f"{server.url}/old")
        assert ask(made, 3) == ["hi"] * 3
        made.close()
    assert len(server.ports) == 1
