"""`copilot_chat` keeps what every backend must, over its stand-in program and a loopback endpoint."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_testkit import BackendConformance, ChatServer, Reply
from skillopt_testkit.conformance.http_chat import REPLIES, SECRET
from skillopt_testkit.programs import stand_in


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stand_in(tmp_path_factory.mktemp("programs"), "copilot")


class TestConformance(BackendConformance):
    name = "copilot_chat"
    parallel = 4
    faults = (*REPLIES, "hang", "killed child", "missing program", "old program", "not signed in")
    retry_after = None  # the program obeys it itself, and tells no seconds
    secret = SECRET

    @pytest.fixture
    def settings(self, program: Path) -> Iterator[Any]:
        with ChatServer(["ok"]) as server:
            yield self.settings_for(program, server.url)

    def settings_for(self, program: Path, url: str) -> Any:
        endpoint = {"copilot_provider_base_url": url, "copilot_provider_api_key": self.secret}
        return self.settings_with(copilot_exec_path=str(program), copilot_chat_model="any", **endpoint)

    @contextmanager
    def provoked(self, fault: str, context: Any) -> Iterator[Any]:
        over = threading.Event()

        def script(_: object) -> Reply:
            if fault == "hang":
                over.wait(120)
            return REPLIES.get(fault, Reply("late"))

        faults = {"killed child": "killed", "old program": "old"}
        with tempfile.TemporaryDirectory() as folder, ChatServer(script) as server:
            program = stand_in(Path(folder), "copilot", faults.get(fault, ""))
            if fault == "missing program":
                program.unlink()
            settings = self.settings_for(program, "" if fault == "not signed in" else server.url)
            yield make_driver(self.kind, self.name, settings, context)
            over.set()
