"""The simulated world as the model behind an agent program: it has a command run, and then answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import define
from served_world import Served
from skillopt_testkit.servers import Reply
from skillopt_testkit.wording import text_of

SHELLS = {"exec_command": "cmd", "Bash": "command", "bash": "command"}
"""The tool by which an agent program runs a command -> its parameter."""

LOOKED = "looked-it-up-with-a-command"


def shell_call(body: Mapping[str, Any], command: str) -> Mapping[str, Any] | None:
    """The call that has a command run, with the tool that the program offers; `None` where it offers none."""
    offered = [tool.get("function", tool).get("name") for tool in body.get("tools") or ()]
    for name in set(offered) & set(SHELLS):
        function = {"name": name, "arguments": json.dumps({SHELLS[name]: command})}
        return {"id": "call-1", "type": "function", "function": function}
    return None


@define
class ServedAgent:
    """Answers what an agent program asks as the target, and all that is asked otherwise as `served` does."""

    served: Served

    def __call__(self, body: Mapping[str, Any]) -> Reply:
        messages = body["messages"]
        texts = [text_of(message) for message in messages if message["role"] != "tool"]
        call = shell_call(body, f"echo {LOOKED}")
        if call is None:
            plain = [{"role": "system", "content": texts[0]}, {"role": "user", "content": "\n".join(texts[1:])}]
            return self.served({**body, "messages": plain})
        if not any(message["role"] == "tool" for message in messages):
            return Reply(tool_calls=(call,))
        # The skill comes as a message of its own; what the target is asked for is in the one with the question.
        asked = next(text for text in texts if "## Question" in text)
        told = "\n".join(text for text in texts if text is not asked)
        plain = [{"role": "system", "content": told}, {"role": "user", "content": asked}]
        return self.served({**body, "messages": plain})
