"""Tokens in place of keys: from the library where it is installed, from a program `az` where it is not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from skillopt_backend_openai_chat.settings import OpenAIChatSettings
from skillopt_backend_openai_chat.tokens import Token, Tokens, tokens_of
from skillopt_kernel.errors import PermanentError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-in for az is a shell script")
ENDPOINT = "https://my-resource.openai.azure.com"


def az(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str, code: int = 0, errors: str = "") -> Path:
    """Put a program `az` on the PATH that notes its arguments and answers so; where the notes are."""
    program, notes = folder / "bin" / "az", folder / "asked.txt"
    program.parent.mkdir()
    (folder / "answer.txt").write_text(answer)
    program.write_text(
        f'#!/bin/sh\necho "$@" >> "{notes}"\ncat "{folder}/answer.txt"\necho "{errors}" >&2\nexit {code}\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return notes


def answer(**changes: Any) -> str:
    ends = time.time() + 3600
    local = datetime.fromtimestamp(ends).strftime("%Y-%m-%d %H:%M:%S.%f")
    told = {"accessToken": "eyJ-a-token", "expiresOn": local, "expires_on": int(ends), "tokenType": "Bearer", **changes}
    return json.dumps({name: value for name, value in told.items() if value is not None})


def tokens(**told: Any) -> Tokens:
    made = tokens_of(OpenAIChatSettings(azure_openai_endpoint=ENDPOINT, **told))
    assert made is not None
    return made


@pytest.fixture(params=["azure-identity", "az"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With the library, and as where it is not installed."""
    if request.param == "azure-identity":
        pytest.importorskip("azure.identity")
    else:
        monkeypatch.setitem(sys.modules, "azure", None)
        monkeypatch.setitem(sys.modules, "azure.identity", None)
    return str(request.param)


def test_the_program_is_asked_once_for_many_calls(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = az(tmp_path, monkeypatch, answer())
    made = tokens()
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: made(), range(32))) == {"eyJ-a-token"}
    (asked,) = notes.read_text().splitlines()
    assert asked.startswith("account get-access-token")
    assert "--resource https://cognitiveservices.azure.com" in asked and ".default" not in asked


def test_an_older_program_tells_the_end_in_local_time(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = az(tmp_path, monkeypatch, answer(expires_on=None))
    made = tokens(azure_openai_ad_scope="https://other.example/.default")
    assert [made(), made()] == ["eyJ-a-token"] * 2
    assert len(notes.read_text().splitlines()) == 1
    assert "--resource https://other.example" in notes.read_text()


def test_nobody_is_signed_in(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    az(tmp_path, monkeypatch, "", code=1, errors="ERROR: Please run 'az login' to setup account.")
    with pytest.raises(PermanentError, match="az login") as caught:
        tokens()()
    assert "Traceback" not in str(caught.value)


def test_the_program_is_missing(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PermanentError, match="az login"):
        tokens()()


@pytest.mark.parametrize("printed", ["", "no json", "[]", "{}", '{"accessToken": "x", "expiresOn": "soon"}'])
def test_the_program_prints_something_else(printed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure", None)
    az(tmp_path, monkeypatch, printed)
    with pytest.raises(PermanentError, match="something else than a token"):
        tokens()()


class _Identity(BaseHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        told = {"access_token": "eyJ-of-the-machine", "expires_on": str(int(time.time()) + 3600), "resource": "r",
                "token_type": "Bearer"}  # fmt: skip
        body = json.dumps(told).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def test_a_managed_identity_is_asked_for_by_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real library, against a stand-in for the machine's own service that gives tokens."""
    pytest.importorskip("azure.identity")
    handler = type("Handler", (_Identity,), {"asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"http://127.0.0.1:{server.server_port}/msi/token")
    monkeypatch.setenv("IDENTITY_HEADER", "x")
    try:
        made = tokens(azure_openai_auth_mode="aad", azure_openai_managed_identity_client_id="the-client")
        assert [made(), made()] == ["eyJ-of-the-machine"] * 2
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    (asked,) = handler.asked
    assert "client_id=the-client" in asked and "cognitiveservices.azure.com" in asked and ".default" not in asked


def test_a_managed_identity_needs_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure", None)
    with pytest.raises(PermanentError, match=r"pip install 'skillopt-backend-openai-chat\[azure\]'"):
        tokens(azure_openai_auth_mode="managed_identity")()


def test_a_token_is_renewed_before_it_ends() -> None:
    given = iter([Token("first", time.time() + 10), Token("second", time.time() + 3600)])
    made = Tokens(lambda: next(given))
    assert [made(), made(), made()] == ["first", "second", "second"]


def test_threads_do_not_fetch_twice() -> None:
    count, began = 0, threading.Event()

    def fetch() -> Token:
        nonlocal count
        count += 1
        began.wait(0.2)
        return Token("t", time.time() + 3600)

    made = Tokens(fetch)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: made(), range(8)))
    assert count == 1
    assert "'t'" not in repr(Token("t", 0.0))


def test_the_library_is_not_loaded_before_a_token_is_needed() -> None:
    code = (
        "import sys, logging\n"
        "from skillopt_kernel.plugins.discovery import make_driver, load_manifest, settings_class\n"
        "from skillopt_kernel.interfaces import DriverContext\n"
        "settings = settings_class(load_manifest('backend', 'openai_chat'))\n"
        f"told = settings(azure_openai_endpoint={ENDPOINT!r})\n"
        "make_driver('backend', 'openai_chat', told, DriverContext(logging.getLogger())).open_chat('target')\n"
        "print(sorted({'openai', 'azure', 'msal', 'httpx2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
