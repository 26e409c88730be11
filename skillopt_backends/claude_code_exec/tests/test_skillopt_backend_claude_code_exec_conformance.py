"""The agent suite with a stand-in for Claude Code."""

from __future__ import annotations

import json

from skillopt_testkit import AgentConformance
from skillopt_testkit.conformance.http_chat import SECRET
from skillopt_testkit.programs import stand_in


class TestConformance(AgentConformance):
    name = "claude_code_exec"
    retry_after = None  # Claude Code does not hand on what the endpoint asked
    tools = frozenset({"Read", "Glob", "Grep", "Edit", "Write", "Bash"})

    def program(self, folder, fault=""):
        return stand_in(folder, "claude", fault)

    def settings_for(self, server, path):
        return self.settings_with(path=str(path), base_url=server.root, api_key=SECRET)

    def shell(self, command):
        arguments = json.dumps({"command": command})
        return {"id": "toolu_1", "type": "function", "function": {"name": "Bash", "arguments": arguments}}
