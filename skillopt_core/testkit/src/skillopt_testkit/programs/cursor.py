"""A stand-in for Cursor's command-line agent: its flags and its events, as its documentation of the output format has
them.

The real one asks Cursor's own service, and nothing else. This one asks an endpoint that speaks Chat Completions, at the
address in STAND_IN_ENDPOINT, and does what the reply's tool calls say. Without `--force` it neither runs commands nor
writes. The file is copied as a whole, so it uses the standard library only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

FAULT = ""
"""What goes wrong: "killed", "malformed", "old", "plain words"."""

VALUED = {"--output-format": ("text", "json", "stream-json"), "--workspace": None, "--sandbox": ("enabled", "disabled"),
          "--mode": ("plan", "ask"), "--model": None}  # fmt: skip
"""Flags with a value -> the values that they take; `None`: any."""

PLAIN = ("--print", "--trust", "--force", "--version", "--help")
TOOLS = ("shell", "read", "write", "ls")
CHANGING = ("shell", "write")


class Failed(Exception):
    """The service refused, with the words that the program prints."""


def emit(kind: str, **told: Any) -> None:
    """Print one event; like some versions of the real program, on both streams."""
    line = json.dumps({"type": kind, **told, "session_id": "c6b62c6f"}) + "\n"
    for stream in (sys.stdout, sys.stderr):
        stream.write(line)
        stream.flush()


def give_up(words: str) -> None:
    """End before a session has begun."""
    sys.stderr.write(words + "\n")
    sys.exit(1)


def read_arguments(words: list[str]) -> dict[str, str]:
    """Flag -> its value, "" for one without."""
    given: dict[str, str] = {}
    waiting = list(words)
    while waiting:
        flag = waiting.pop(0)
        if flag not in (*VALUED, *PLAIN):
            give_up(f"error: unknown option '{flag}'")
        given[flag] = waiting.pop(0) if flag in VALUED and waiting else ""
        if VALUED.get(flag) and given[flag] not in (VALUED[flag] or ()):
            give_up(f"error: option '{flag} <value>' argument '{given[flag]}' is invalid.")
    return given


def rules(workspace: Path) -> str:
    """The text of the rules that always apply, front matter taken off."""
    texts = []
    for path in sorted(workspace.glob(".cursor/rules/*.mdc")):
        _, head, body = path.read_text("utf-8").split("---\n", 2)
        if "alwaysApply: true" in head:
            texts.append(f"<always_applied_rule>\n{body.strip()}\n</always_applied_rule>")
    return "\n".join(texts)


def ask(model: str, messages: list[Any], tools: tuple[str, ...]) -> Any:
    """The message of a reply. Raises `Failed`."""
    offered = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in tools]
    body = {"model": model, "messages": messages, "tools": offered}
    request = urllib.request.Request(
        os.environ["STAND_IN_ENDPOINT"].rstrip("/") + "/chat/completions",
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ['CURSOR_API_KEY']}"},
    )
    try:
        with urllib.request.urlopen(request) as reply:
            return json.loads(reply.read())["choices"][0]["message"]
    except urllib.error.HTTPError as error:
        text = error.read().decode("utf-8", "replace")
        try:
            told = json.loads(text)["error"]
            text = " ".join(str(told[name]) for name in ("code", "message") if told.get(name))
        except (ValueError, KeyError):
            pass
        raise Failed(f"Request failed with status code {error.code}: {text}") from None
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise Failed(f"Connection lost, reconnect failed: {error}") from None


def use(name: str, arguments: Any, workspace: Path, force: bool) -> dict[str, Any]:
    """The result of a tool call, as the event of its end has it."""
    if name in CHANGING and not force:
        return {"rejected": {"reason": "The tool is not allowed in this mode."}}
    try:
        if name == "shell":
            done = subprocess.run(arguments["command"], shell=True, cwd=workspace, capture_output=True, check=False)
            streams = {"stdout": done.stdout.decode(), "stderr": done.stderr.decode(), "exitCode": done.returncode}
            return {"success" if done.returncode == 0 else "failure": streams}
        path = workspace / arguments["path"]
        if name == "write":
            path.write_text(arguments["fileText"], "utf-8")
            return {"success": {"path": str(path), "linesCreated": len(arguments["fileText"].splitlines())}}
        if name == "ls":
            return {"success": {"content": "\n".join(sorted(each.name for each in path.iterdir()))}}
        content = path.read_text("utf-8")
        return {"success": {"content": content, "isEmpty": not content, "totalChars": len(content)}}
    except (OSError, KeyError) as error:
        return {"error": {"errorMessage": str(error)}}


def work(prompt: str, model: str, workspace: Path, force: bool) -> str:
    """Ask until there is an answer; all that was said. Raises `Failed`."""
    messages: list[Any] = [
        {"role": "system", "content": "You are the stand-in of a coding agent.\n" + rules(workspace)},
        {"role": "user", "content": prompt},
    ]
    said = ""
    while True:
        message = ask(model, messages, TOOLS)
        text = message.get("content") or ""
        said += text
        if text:
            emit("assistant", message={"role": "assistant", "content": [{"type": "text", "text": text}]})
        if not message.get("tool_calls"):
            return said
        messages.append(message)
        for call in message["tool_calls"]:
            name, arguments = call["function"]["name"], json.loads(call["function"]["arguments"])
            told: dict[str, Any] = {"args": arguments}
            emit("tool_call", subtype="started", call_id=call["id"], tool_call={f"{name}ToolCall": told})
            told = {**told, "result": use(name, arguments, workspace, force)}
            emit("tool_call", subtype="completed", call_id=call["id"], tool_call={f"{name}ToolCall": told})
            (outcome,) = told["result"].values()
            content = "\n".join(str(value) for value in outcome.values())
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": content})


def go_wrong() -> None:
    """What FAULT says, in the middle of the session."""
    if FAULT == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "malformed":
        sys.stdout.write('{"type": "assistant", "mess\nSegmentation fault\n')
        sys.exit(0)


def main() -> None:
    given = read_arguments(sys.argv[1:])
    if "--version" in given:
        sys.stdout.write("2026.01.28-fd13201\n")
        return
    if "--help" in given:
        flags = [flag for flag in (*VALUED, *PLAIN) if FAULT != "old" or flag != "--sandbox"]
        sys.stdout.write(
            "Usage: cursor-agent [options] [command] [prompt...]\n\n" + "".join(f"  {flag}\n" for flag in flags)
        )
        return
    if not os.environ.get("CURSOR_API_KEY"):
        give_up("Error: Authentication required. Please run 'agent login' first, or set CURSOR_API_KEY.")
    if "--trust" not in given:
        give_up("Workspace Trust Required: pass --trust to trust this directory.")
    if FAULT == "plain words":
        sys.stdout.write("T: Named models unavailable on free plans. Switch to Auto or upgrade plans to continue.\n")
        return
    prompt = sys.stdin.buffer.read().decode("utf-8")
    model, workspace = given.get("--model", "auto"), Path(given["--workspace"])
    mode = "force" if "--force" in given else given.get("--mode", "default")
    emit("system", subtype="init", apiKeySource="env", cwd=str(workspace), model=model, permissionMode=mode)
    emit("user", message={"role": "user", "content": [{"type": "text", "text": prompt}]})
    go_wrong()
    try:
        said = work(prompt, model, workspace, "--force" in given)
    except Failed as failed:
        emit("result", subtype="error", is_error=True, result=str(failed), duration_ms=1)
        sys.exit(1)
    emit("result", subtype="success", is_error=False, result=said, duration_ms=1)


if __name__ == "__main__":
    main()
