"""`claude_chat` keeps what every backend must, with a stand-in for Claude Code and a loopback endpoint."""

from __future__ import annotations

import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_testkit import BackendConformance, ChatServer, Reply
from skillopt_testkit.conformance.http_chat import REPLIES, SECRET
from skillopt_testkit.programs import stand_in

PROGRAM_FAULTS = {"killed child": "killed", "old program": "old"}


class TestConformance(BackendConformance):
    name = "claude_chat"
    parallel = 4
    faults = (
        *(fault for fault in REPLIES if fault != "refused"),
        "hang",
        "killed child",
        "missing program",
        "old program",
    )
    retry_after = None  # Claude Code does not hand on what the endpoint asked
    secret = SECRET

    @pytest.fixture
    def settings(self, tmp_path):
        with ChatServer(["ok"]) as server:
            yield self.settings_for(stand_in(tmp_path, "claude"), server)

    def settings_for(self, program, server):
        return self.settings_with(path=str(program), base_url=server.root, api_key=self.secret)

    @contextmanager
    def provoked(self, fault, context):
        over = threading.Event()

        def script(_):
            if fault == "hang":
                over.wait(120)
            return REPLIES.get(fault, Reply("late"))

        with tempfile.TemporaryDirectory() as folder, ChatServer(script) as server:
            program = stand_in(Path(folder), "claude", PROGRAM_FAULTS.get(fault, ""))
            if fault == "missing program":
                program.unlink()
            driver = make_driver(self.kind, self.name, self.settings_for(program, server), context)
            try:
                yield driver
            finally:
                over.set()
                driver.close()
