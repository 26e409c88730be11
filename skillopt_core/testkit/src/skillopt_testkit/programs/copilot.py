"""A stand-in for the Copilot CLI: its flags, its events and its exit codes, as version 1.0.102 has them.

It asks the endpoint in COPILOT_PROVIDER_BASE_URL, does what the reply's tool calls say, and ends with its answer.
Unlike the real program it asks a failed call only once again, and only where the endpoint says how long to wait.
The file is copied as a whole, so it uses the standard library only.
"""

from __future__ import annotations

import base64
import contextlib
import json
import mimetypes
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

FAULT = ""
"""What goes wrong: "killed", "child killed", "malformed", "old"."""

VALUED = {
    "--output-format": ("text", "json"), "--stream": ("on", "off"), "--log-level": None, "--model": None,
    "--reasoning-effort": ("none", "minimal", "low", "medium", "high", "xhigh", "max"), "--available-tools": None,
    "--allow-tool": None, "--usage-output-file": None, "--attachment": None,
}  # fmt: skip
"""Flags with a value -> the values that they take; `None`: any."""

PLAIN = (
    "--no-color", "--no-auto-update", "--no-ask-user", "--disable-builtin-mcps",
    "--disallow-temp-dir", "--allow-all-tools", "--version", "--help",
)  # fmt: skip

TOOLS = ("bash", "create", "edit", "glob", "grep", "view", "task", "sql")
WITH_PERMISSION = {"bash": "shell", "create": "write", "edit": "write"}
DENIED = "Permission denied because no interactive user response was available."
BLOCKED = "The model returned no content because the response was blocked by content filtering."
SIGNED_OUT = "Error: No authentication information found.\n\nCopilot can be authenticated with GitHub using a token."


class Failed(Exception):
    """A call of the model failed. `data`: of the event `model.call_failure`."""

    def __init__(self, data: dict[str, Any], wait: float | None = None) -> None:
        self.data, self.wait = data, wait
        super().__init__(str(data))


def emit(kind: str, data: Any = None, **more: Any) -> None:
    """Print one event."""
    sys.stdout.write(json.dumps({"type": kind, **({} if data is None else {"data": data}), **more}) + "\n")
    sys.stdout.flush()


def give_up(words: str) -> None:
    """End before a session has begun."""
    sys.stderr.write(words + "\n")
    sys.exit(1)


def read_arguments(words: list[str]) -> dict[str, list[str]]:
    """Flag -> its values, in order. Ends the program as the real one's parser does."""
    given: dict[str, list[str]] = {}
    waiting = list(words)
    while waiting:
        flag, separator, value = waiting.pop(0).partition("=")
        if flag in VALUED:
            value = value if separator else waiting.pop(0) if waiting else ""
            allowed = VALUED[flag]
            if allowed is not None and value not in allowed:
                give_up(f"error: invalid value '{value}' for '{flag}'\n  [possible values: {', '.join(allowed)}]")
        elif flag not in PLAIN or separator:
            give_up(f"error: unexpected argument '{flag}' found\n\nFor more information, try '--help'.")
        given.setdefault(flag, []).append(value)
    return given


def available(given: dict[str, list[str]]) -> list[str]:
    """The tools that the model is offered: an allow-list without a name allows all, one that fits nothing none."""
    names = [name for value in given.get("--available-tools", []) for name in value.split(",") if name]
    return [tool for tool in TOOLS if tool in names or not names]


def instructions() -> str:
    """The instructions of the home's owner, as the system message has them."""
    home = os.environ.get("COPILOT_HOME") or Path(os.environ["HOME"], ".copilot")
    path = Path(home, "copilot-instructions.md")
    return f"\n<custom_instruction>\n{path.read_text('utf-8')}\n</custom_instruction>" if path.is_file() else ""


class Endpoint:
    """The endpoint of the user's own, and what its replies said of their use."""

    def __init__(self, model: str, effort: str) -> None:
        self.model, self.effort = model, effort
        self.used = {"inputTokens": 0, "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0}
        self.calls = 0

    def ask(self, messages: list[Any], tools: list[str]) -> Any:
        """The first choice of a reply. Raises `Failed`."""
        body: dict[str, Any] = {"model": self.model, "messages": messages, "temperature": 0}
        if tools:
            body["tools"] = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in tools]
        if self.effort:
            body["reasoning_effort"] = self.effort
        if limit := os.environ.get("COPILOT_PROVIDER_MAX_OUTPUT_TOKENS"):
            body["max_tokens"] = int(limit)
        try:
            return self._read(self._post(body))
        except urllib.error.HTTPError as error:
            text = error.read().decode("utf-8", "replace")
            with contextlib.suppress(ValueError, KeyError):
                text = json.dumps(json.loads(text)["error"])
            wait = error.headers.get("Retry-After")
            data = {"statusCode": error.code, "failureKind": "api", "errorMessage": text}
            raise Failed(data, float(wait) if wait else None) from None
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise Failed({"failureKind": "transport", "errorMessage": json.dumps(f"request failed: {error}")}) from None

    def _post(self, body: dict[str, Any]) -> Any:
        key = os.environ.get("COPILOT_PROVIDER_BEARER_TOKEN") or os.environ.get("COPILOT_PROVIDER_API_KEY", "")
        request = urllib.request.Request(
            os.environ["COPILOT_PROVIDER_BASE_URL"].rstrip("/") + "/chat/completions",
            json.dumps(body).encode(),
            {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})},
        )
        with urllib.request.urlopen(request) as reply:
            return json.loads(reply.read())

    def _read(self, told: Any) -> Any:
        choice = told["choices"][0]
        usage = told.get("usage") or {}
        if usage:
            self.calls += 1
            self.used["inputTokens"] += usage["prompt_tokens"]
            self.used["outputTokens"] += usage["completion_tokens"]
            self.used["cacheReadTokens"] += (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
            thought = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
            if thought is not None:
                self.used["reasoningTokens"] = self.used.get("reasoningTokens", 0) + thought
        return choice

    def write_usage(self, path: str) -> None:
        """The file of `--usage-output-file`."""
        metrics = {self.model: {"requests": {"count": self.calls}, "usage": self.used}} if self.calls else {}
        Path(path).write_text(json.dumps({"modelMetrics": metrics, "currentModel": self.model}), "utf-8")


class Session:
    """One prompt and all that comes of it."""

    def __init__(self, given: dict[str, list[str]], endpoint: Endpoint, prompt: str) -> None:
        self.endpoint, self.tools, self.given = endpoint, available(given), given
        parts: list[Any] = [{"type": "text", "text": prompt}]
        for name in given.get("--attachment", []):
            kind = mimetypes.guess_type(name)[0]
            data = base64.b64encode(Path(name).read_bytes()).decode()
            parts.append({"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}})
        content: Any = parts if len(parts) > 1 else prompt
        self.messages: list[Any] = [
            {"role": "system", "content": "You are the stand-in of a terminal assistant." + instructions()},
            {"role": "user", "content": content},
        ]
        self.turn = 0

    def call(self) -> Any:
        """The next choice of the model; a call that is to be made later is made once again."""
        turn = {"turnId": str(self.turn)}
        for last in (False, True):
            emit("model.call_start", {**turn, "model": self.endpoint.model}, ephemeral=True)
            try:
                choice = self.endpoint.ask(self.messages, self.tools)
            except Failed as failed:
                emit("model.call_failure", {"model": self.endpoint.model, **failed.data}, ephemeral=True)
                emit("model.call_finished", {**turn, "outcome": "error"}, ephemeral=True)
                if last or failed.wait is None:
                    raise
                time.sleep(failed.wait)
            else:
                emit("model.call_finished", {**turn, "outcome": "success"}, ephemeral=True)
                return choice
        raise AssertionError("never reached")

    def run(self) -> None:
        """Ask until there is an answer. Raises `Failed`, and `ValueError` with the words for a reply without any."""
        cut_off = 0
        while True:
            emit("assistant.turn_start", {"turnId": str(self.turn)})
            choice = self.call()
            message, ending = choice["message"], choice.get("finish_reason")
            text, calls = message.get("content") or "", message.get("tool_calls") or []
            if ending == "content_filter" and not text:
                text = BLOCKED
            if ending == "length" and cut_off < 2:
                cut_off += 1
                self.messages += [message, {"role": "user", "content": "Please continue from where you left off."}]
            else:
                self._say(text, calls)
                if not calls and not text:
                    raise ValueError("No response was returned. Send your message again to retry.")
                if not calls:
                    return
                self._do(message, calls)
            emit("assistant.turn_end", {"turnId": str(self.turn)})
            self.turn += 1

    def _say(self, text: str, calls: list[Any]) -> None:
        requests = [
            {"toolCallId": call["id"], "name": call["function"]["name"], "type": "function",
             "arguments": json.loads(call["function"]["arguments"])}
            for call in calls
        ]  # fmt: skip
        data = {"model": self.endpoint.model, "content": text, "toolRequests": requests, "turnId": str(self.turn)}
        emit("assistant.message", data)

    def _do(self, message: Any, calls: list[Any]) -> None:
        self.messages.append(message)
        for call in calls:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            emit("tool.execution_start", {"toolCallId": call["id"], "toolName": name, "arguments": arguments})
            done = self._use(name, arguments)
            emit("tool.execution_complete", {"toolCallId": call["id"], "turnId": str(self.turn), **done})
            said = done["result"]["content"] if done["success"] else done["error"]["message"]
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": said})

    def _use(self, name: str, arguments: Any) -> dict[str, Any]:
        kind = WITH_PERMISSION.get(name)
        allowed = kind is None or kind in self.given.get("--allow-tool", []) or "--allow-all-tools" in self.given
        if name not in self.tools:
            return {"success": False, "error": {"message": f"Tool '{name}' does not exist.", "code": "failure"}}
        path = Path(arguments.get("path", "."))
        if not allowed or not path.resolve().is_relative_to(Path.cwd()):
            return {"success": False, "error": {"message": DENIED, "code": "denied"}}
        try:
            return {"success": True, **self._used(name, arguments, path)}
        except (OSError, KeyError) as error:
            return {"success": False, "error": {"message": str(error), "code": "failure"}}

    def _used(self, name: str, arguments: Any, path: Path) -> dict[str, Any]:
        if name == "bash":
            hidden = ("COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN", "COPILOT_GITHUB_TOKEN")
            environment = {key: value for key, value in os.environ.items() if key not in hidden}
            done = subprocess.run(
                arguments["command"], shell=True, env=environment, stdout=-1, stderr=subprocess.STDOUT, check=False
            )
            ending = f"\n<shellId: 0 completed with exit code {done.returncode}>"
            content = done.stdout.decode("utf-8", "replace") + ending
            return {"shellExecution": {"exitCode": done.returncode}, "result": {"content": content}}
        if name == "create":
            path.write_text(arguments["file_text"], "utf-8")
            return {"result": {"content": f"Created file {path} with {len(arguments['file_text'])} characters"}}
        if name == "view":
            names = "\n".join(sorted(each.name for each in path.iterdir())) if path.is_dir() else None
            return {"result": {"content": path.read_text("utf-8") if names is None else names}}
        raise KeyError(f"the stand-in cannot {name}")


def told(failed: Failed) -> dict[str, Any]:
    """The data of `session.error` for a failed call."""
    status = failed.data.get("statusCode")
    try:
        message = json.loads(failed.data["errorMessage"])
    except ValueError:
        message = failed.data["errorMessage"]
    words = message.get("message") if isinstance(message, dict) else message
    if status in (401, 403):
        words = f"Authentication failed with provider at {os.environ['COPILOT_PROVIDER_BASE_URL']} (HTTP {status})."
        return {"errorType": "authentication", "message": words, "statusCode": status}
    if status == 413:
        return {"errorType": "query", "message": "The provider rejected the prompt as too long."}
    kind = "rate_limit" if status == 429 else "query"
    return {
        "errorType": kind,
        "message": f"{status or ''} {words}".strip(),
        **({"statusCode": status} if status else {}),
    }


def go_wrong() -> None:
    """What FAULT says, in the middle of the session."""
    if FAULT == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "child killed":  # the launcher that npm installs tells of its child's end, and goes on
        give_up("GitHub Copilot native binary at copilot was terminated by signal SIGKILL.\nno platform package found.")
    if FAULT == "malformed":
        sys.stdout.write('{"type": "assistant.message", "da\nSegmentation fault\n')
        sys.exit(0)


def main() -> None:
    given = read_arguments(sys.argv[1:])
    if "--version" in given:
        sys.stdout.write("GitHub Copilot CLI 1.0.102.\n")
        return
    if "--help" in given:
        flags = [flag for flag in (*VALUED, *PLAIN) if FAULT != "old" or flag != "--usage-output-file"]
        sys.stdout.write("Usage: copilot [OPTIONS] [COMMAND]\n\n" + "".join(f"      {flag}\n" for flag in flags))
        return
    prompt = sys.stdin.buffer.read().decode("utf-8")
    model = (given.get("--model") or [""])[-1]
    if not prompt.strip():
        give_up("No prompt provided. Run in an interactive terminal or provide a prompt with -p or via standard in.")
    if not os.environ.get("COPILOT_PROVIDER_BASE_URL"):
        give_up(SIGNED_OUT)
    if not model:
        give_up("BYOK providers require an explicit model. Run `copilot help providers` for configuration details.")
    endpoint = Endpoint(model, (given.get("--reasoning-effort") or [""])[-1])
    session = Session(given, endpoint, prompt)
    emit("session.tools_updated", {"model": model}, ephemeral=True)
    emit("user.message", {"content": prompt, "turnId": "0"})
    go_wrong()
    code = 0
    try:
        session.run()
    except Failed as failed:
        code = 1
        emit("session.error", told(failed))
    except ValueError as error:
        code = 1
        emit("session.error", {"errorType": "query", "message": str(error)})
    emit("assistant.idle", {}, ephemeral=True)
    if "--usage-output-file" in given:
        endpoint.write_usage(given["--usage-output-file"][-1])
    emit("result", exitCode=code, usage={"premiumRequests": 0})
    sys.exit(code)


if __name__ == "__main__":
    main()
