"""`copilot_chat` keeps what every backend must, over its stand-in program and a loopback endpoint."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_testkit import BackendConformance, ChatServer, Reply
from skillopt_testkit.programs import stand_in

TOO_LONG = {"message": "This model's maximum context length is 8 tokens.", "code": "context_length_exceeded"}
REFUSED = {"message": "The prompt was filtered.", "code": "content_filter"}

REPLIES = {
    "rejected": Reply("invalid", status=400),
    "wrong key": Reply("no", status=401),
    "unknown model": Reply("no", status=404),
    "server error": Reply("later", status=500),
    "too long": Reply(status=400, body=json.dumps({"error": TOO_LONG}).encode()),
    "refused": Reply(status=400, body=json.dumps({"error": REFUSED}).encode()),
    "empty": Reply(""),
    "malformed": Reply(body=b"<html>gateway</html>"),
    "hang": Reply("late", delay=60),
    "dropped": Reply(drop=True),
}
"""Fault -> what the endpoint answers."""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stand_in(tmp_path_factory.mktemp("programs"), "copilot")


class TestConformance(BackendConformance):
    name = "copilot_chat"
    parallel = 4
    # Of a rate limit the program obeys `Retry-After` itself, and tells no seconds: see the tests of sessions.
    faults = (*REPLIES, "killed child", "missing program")
    secret = "sk-copilot-0123456789abcdef"

    @pytest.fixture
    def settings(self, program: Path) -> Iterator[Any]:
        with ChatServer(["ok"]) as server:
            yield self.settings_for(program, server.url)

    def settings_for(self, program: Path, url: str) -> Any:
        endpoint = {"copilot_provider_base_url": url, "copilot_provider_api_key": self.secret}
        return self.settings_with(copilot_exec_path=str(program), copilot_chat_model="any", **endpoint)

    @contextmanager
    def provoked(self, fault: str, context: Any) -> Iterator[Any]:
        with tempfile.TemporaryDirectory() as folder, ChatServer([REPLIES.get(fault, "ok")]) as server:
            program = Path(folder, "nowhere")
            if fault != "missing program":
                program = stand_in(Path(folder), "copilot", "killed" if fault == "killed child" else "")
            yield make_driver(self.kind, self.name, self.settings_for(program, server.url), context)
