"""The model over real HTTP on the loopback: time, threads, connections, keys."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from skillopt_kernel.errors import CallTimeout, ModelError, PassingError, PermanentError
from skillopt_kernel.models.requests import ChatRequest, Message
from skillopt_lib_chat.model import OpenAIChatModel
from skillopt_lib_chat.options import ChatOptions
from skillopt_testkit.servers import ChatServer, Reply

KEY = "s3cret-0123456789abcdef"


def model(url: str, **told: Any) -> OpenAIChatModel:
    base = {"model": "test", "base_url": url, "role": "target", "prefix": "openai_compatible_", "api_key": KEY}
    return OpenAIChatModel(ChatOptions(**{**base, **told}))


def ask(seconds: float | None = None) -> ChatRequest:
    deadline = None if seconds is None else time.monotonic() + seconds
    return ChatRequest((Message("user", "hello"),), deadline=deadline)


def closed_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_call() -> None:
    with ChatServer(["hi"]) as server:
        made = model(server.url, extra_body={"chat_template_kwargs": {"enable_thinking": False}})
        assert made.complete(ask()).text == "hi"
        received = server.requests[0]
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.body["chat_template_kwargs"] == {"enable_thinking": False}


def test_without_a_key_a_dummy_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "of-somebody-else")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "of-somebody-else")
    monkeypatch.setenv("OPENAI_ORG_ID", "of-somebody-else")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "of-somebody-else")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    with ChatServer(["hi"]) as server:
        model(server.url, api_key="").complete(ask())
        headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer dummy"
    assert "of-somebody-else" not in str(headers), "what is meant for OpenAI goes to no other endpoint"


@pytest.mark.parametrize("key", ["line\nbreak-s3cret", "schlüssel-s3cret"])
def test_a_key_that_cannot_be_sent_is_not_shown(key: str) -> None:
    with pytest.raises(PermanentError, match="OPENAI_COMPATIBLE_API_KEY") as caught:
        model("http://127.0.0.1:1/v1", api_key=key).complete(ask())
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_the_setting_s_timeout_holds_without_a_deadline() -> None:
    with ChatServer([Reply("late", delay=30)]) as server:
        began = time.monotonic()
        with pytest.raises(CallTimeout, match=r"within 1 s"):
            model(server.url, timeout_seconds=1.0).complete(ask())
        assert 0.9 < time.monotonic() - began < 20


def test_the_deadline_shortens_the_timeout() -> None:
    with ChatServer([Reply("late", delay=30)]) as server:
        began = time.monotonic()
        with pytest.raises(CallTimeout):
            model(server.url).complete(ask(0.4))
        assert time.monotonic() - began < 20
        with pytest.raises(CallTimeout):
            model(server.url).complete(ask(-1))
        assert len(server.requests) == 1, "after its deadline a call is not made"


class _Dribble(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        try:
            for _ in range(400):
                self.wfile.write(b" ")
                time.sleep(0.1)
        except OSError:
            pass

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def dribbling() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Dribble)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_server_that_keeps_the_line_open_is_not_waited_for(dribbling: str) -> None:
    began = time.monotonic()
    with pytest.raises(CallTimeout):
        model(dribbling).complete(ask(0.5))
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("status", [429, 500])
def test_nothing_is_tried_again_here(status: int) -> None:
    with ChatServer([Reply("busy", status=status), "hi"]) as server:
        with pytest.raises(PassingError):
            model(server.url).complete(ask())
        assert len(server.requests) == 1


def test_an_endpoint_that_is_not_there_passes() -> None:
    with pytest.raises(PassingError, match=r"no connection to http://127\.0\.0\.1:\d+/v1 \(ConnectError"):
        model(f"http://127.0.0.1:{closed_port()}/v1").complete(ask())


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"error": {"code": 429, "message": "upstream is busy"}}', PassingError),
        (b'{"error": {"code": 401, "message": "no"}}', PermanentError),
        (b'{"error": {"message": "no status"}}', PassingError),
    ],
)
def test_an_error_inside_an_answer(body: bytes, kind: type) -> None:
    with ChatServer([Reply(body=body)]) as server, pytest.raises(kind):
        model(server.url).complete(ask())


@pytest.mark.parametrize(
    "reply", [Reply(status=401), Reply(status=400), Reply(status=500), Reply(drop=True), Reply(delay=2)]
)
def test_no_error_holds_the_key_or_a_header(reply: Reply) -> None:
    with ChatServer([reply]) as server, pytest.raises(ModelError) as caught:
        model(server.url).complete(ask(0.3))
    shown = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
    assert KEY not in shown
    assert "authorization" not in shown.lower()
    assert caught.value.__cause__ is None


def test_a_hundred_threads_at_once() -> None:
    barrier = threading.Barrier(100)

    def together(_: Any) -> str:
        barrier.wait(20)
        return "hi"

    with ChatServer(together) as server:
        made = model(server.url)
        with ThreadPoolExecutor(100) as pool:
            replies = list(pool.map(lambda _: made.complete(ask()).text, range(200)))
        assert replies == ["hi"] * 200
        assert server.peak == 100, "the server answers only once a hundred calls have come"


def test_connections_are_kept() -> None:
    ports: set[int] = set()

    class Counting(ChatServer):
        def __enter__(self) -> ChatServer:
            entered = super().__enter__()
            inner = self._server.get_request

            def get_request() -> Any:
                connection, address = inner()
                ports.add(address[1])
                return connection, address

            self._server.get_request = get_request  # type: ignore[method-assign]
            return entered

    with Counting(["hi"]) as server:
        made = model(server.url)
        for _ in range(5):
            made.complete(ask())
    assert len(ports) == 1


def test_a_closed_model_takes_no_further_call() -> None:
    with ChatServer([Reply("late", delay=0.3)]) as server:
        made = model(server.url)
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(made.complete, ask())
            while not server.requests:
                time.sleep(0.01)
            made.close()
            # What was in flight may be cut off or arrive, but not hang.
            assert call.exception() is None or isinstance(call.exception(), PassingError)
        with pytest.raises(PassingError, match="closed"):
            made.complete(ask())
        made.close()


def test_a_check_spends_nothing() -> None:
    with ChatServer(["hi"], models=("test", "other")) as server:
        assert model(server.url).check() == [("ok", f"{server.url} answers and serves 'test'")]
        ((kind, sentence),) = model(server.url, model="unknown").check()
        assert kind == "warning"
        assert "other, test" in sentence
        assert model(server.url, api_key="").check()[0][0] == "warning"
        assert server.requests == [], "a completion was asked for"


def test_a_check_warns_of_a_limit_that_cuts_off_the_optimizer() -> None:
    with ChatServer(["hi"]) as server:
        (warning, _) = model(server.url, role="optimizer", max_tokens=8_000).check()
        assert warning == ("warning", "replies are cut off at 8000 tokens, and the optimizer's may need 16384")
        assert len(model(server.url, role="target", max_tokens=8_000).check()) == 1


def test_a_check_of_what_is_not_there() -> None:
    ((kind, sentence),) = model(f"http://127.0.0.1:{closed_port()}/v1").check()
    assert kind == "error"
    assert "no connection" in sentence


def test_importing_the_module_loads_no_provider_library() -> None:
    code = "import sys, skillopt_lib_chat.model; print(sorted({'openai', 'httpx2', 'pydantic'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
