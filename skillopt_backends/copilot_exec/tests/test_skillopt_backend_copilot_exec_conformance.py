"""`copilot_exec` keeps what every agent must, over its stand-in program and a loopback endpoint."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from skillopt_testkit import AgentConformance, ChatServer
from skillopt_testkit.conformance.http_chat import SECRET
from skillopt_testkit.programs import stand_in


class TestConformance(AgentConformance):
    name = "copilot_exec"
    parallel = 4
    faults = (*AgentConformance.faults, "refused")
    retry_after = None  # the program obeys it itself, and tells no seconds
    tools = frozenset({"view", "grep", "glob", "bash", "create", "edit"})

    def program(self, folder: Path, fault: str = "") -> Path:
        return stand_in(folder, "copilot", fault)

    def settings_for(self, server: ChatServer, path: Path) -> Any:
        endpoint = {"copilot_provider_base_url": server.url, "copilot_provider_api_key": SECRET}
        return self.settings_with(copilot_exec_path=str(path), copilot_exec_model="any", **endpoint)

    def shell(self, command: str) -> Mapping[str, Any]:
        arguments = json.dumps({"command": command, "description": "as asked"})
        function = {"name": "bash", "arguments": arguments}
        return {"id": f"call-{abs(hash(command))}", "type": "function", "function": function}
