"""A call that is given up ends its work: the server sees its connection close, however the server kept it waiting."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from skillopt_kernel.errors import CallTimeout, ModelError
from skillopt_kernel.models.requests import ChatRequest, Message
from skillopt_lib_chat.model import OpenAIChatModel
from skillopt_lib_chat.options import ChatOptions

HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n"


class Waiting:
    """A server that says `first` and then one byte of `more` every tenth of a second, until its client hangs up.

    hung_up    set once a connection was closed from the other side
    connected  set once a request has come
    """

    def __init__(self, first: bytes, more: bytes) -> None:
        self.first, self.more = first, more
        self.hung_up = threading.Event()
        self.connected = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/v1"

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            self.connected.set()
            connection.settimeout(0.1)
            try:
                connection.sendall(self.first)
                while True:
                    try:
                        if not connection.recv(65536):
                            break
                    except TimeoutError:
                        connection.sendall(self.more)
            except OSError:
                pass
            self.hung_up.set()


@contextmanager
def serving(first: bytes, more: bytes) -> Iterator[Waiting]:
    server = Waiting(first, more)
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield server
    finally:
        server.listener.close()


def model(server: Waiting) -> OpenAIChatModel:
    return OpenAIChatModel(ChatOptions("test", server.url, "target", "openai_compatible_"))


def ask(seconds: float) -> ChatRequest:
    return ChatRequest((Message("user", "hello"),), deadline=time.monotonic() + seconds)


WAYS = {
    "says nothing": (b"", b""),
    "one byte of the headers after the other": (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x"),
    "headers and no body": (HEADERS, b""),
    "one byte of the body after the other": (HEADERS, b" "),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_server_sees_that_nobody_waits_any_more(way: str) -> None:
    with serving(*WAYS[way]) as server:
        with pytest.raises(CallTimeout):
            model(server).complete(ask(0.6))
        assert server.hung_up.wait(30), "the connection is still open"


def test_closing_the_model_ends_what_is_in_flight() -> None:
    with serving(b"", b"") as server, ThreadPoolExecutor(1) as pool:
        made = model(server)
        call = pool.submit(made.complete, ask(300))
        assert server.connected.wait(30)
        made.close()
        assert isinstance(call.exception(timeout=60), ModelError)
        assert server.hung_up.wait(30)
