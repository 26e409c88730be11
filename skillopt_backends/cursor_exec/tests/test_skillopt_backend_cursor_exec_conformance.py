"""`cursor_exec` keeps what every agent must, over its stand-in program and a loopback endpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skillopt_testkit import AgentConformance, ChatServer
from skillopt_testkit.conformance.http_chat import SECRET
from skillopt_testkit.programs import stand_in


class TestConformance(AgentConformance):
    name = "cursor_exec"
    parallel = 4
    retry_after = None  # the program does not hand on what its service asked
    tokens_told = False
    hides_key = False  # the program signs in with a variable, and its commands get its variables

    @pytest.fixture(autouse=True)
    def handed_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch

    def program(self, folder: Path, fault: str = "") -> Path:
        return stand_in(folder, "cursor", fault)

    def settings_for(self, server: ChatServer, path: Path) -> Any:
        self.monkeypatch.setenv("STAND_IN_ENDPOINT", server.url)
        return self.settings_with(path=str(path), api_key=SECRET, pass_variables=("STAND_IN_ENDPOINT",))

    def shell(self, command: str) -> Mapping[str, Any]:
        function = {"name": "shell", "arguments": json.dumps({"command": command})}
        return {"id": f"call-{abs(hash(command))}", "type": "function", "function": function}
