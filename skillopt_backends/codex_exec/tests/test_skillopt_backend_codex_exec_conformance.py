"""The agent suite with a stand-in for Codex."""

from __future__ import annotations

import json

from skillopt_testkit import AgentConformance
from skillopt_testkit.conformance.http_chat import SECRET
from skillopt_testkit.programs import stand_in


class TestConformance(AgentConformance):
    name = "codex_exec"
    retry_after = None  # Codex does not hand on what the endpoint asked
    tools = frozenset({"exec_command"})

    def program(self, folder, fault=""):
        return stand_in(folder, "codex", fault)

    def settings_for(self, server, path):
        return self.settings_with(path=str(path), base_url=server.url, api_key=SECRET)

    def shell(self, command):
        arguments = json.dumps({"cmd": command})
        return {"id": "call-1", "type": "function", "function": {"name": "exec_command", "arguments": arguments}}
