"""A stand-in for `codex exec`: it takes the same arguments, speaks Responses with its endpoint and prints its events.

It does what the tests of a driver need and no more: it reads the prompt from stdin, hands a skill that is named in it
to the model, runs the model's commands in its working folder, and tells of errors in the words of the real program
(version 0.171.0). The file is copied as a whole, so it uses the standard library only.
"""

from __future__ import annotations

import http.client
import itertools
import json
import os
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

FAULT = ""
"""What goes wrong: "killed", "malformed", "silent", "old"."""

FLAGS = {
    "--config": 1, "--enable": 1, "--disable": 1, "--image": 1, "--model": 1, "--profile": 1, "--sandbox": 1, "--cd": 1,
    "--add-dir": 1, "--skip-git-repo-check": 0, "--ephemeral": 0, "--ignore-user-config": 0, "--ignore-rules": 0,
    "--output-schema": 1, "--color": 1, "--json": 0, "--output-last-message": 1,
}  # fmt: skip
SHELL = {
    "type": "function",
    "name": "exec_command",
    "description": "Run a command.",
    "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]},
}
REASONS = {401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 502: "Bad Gateway", 503: "Service Unavailable"}
TOKENS = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "input_tokens_details.cached_tokens",
    "output_tokens": "output_tokens",
    "reasoning_output_tokens": "output_tokens_details.reasoning_tokens",
}
"""What the program tells -> where the endpoint tells it."""

BUSY = "We’re currently experiencing high demand, which may cause temporary errors."


class Failed(Exception):
    """The turn has failed, with the words that the program prints."""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def emit(kind: str, **told: Any) -> None:
    say(json.dumps({"type": kind, **told}, ensure_ascii=False))


def parsed(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The flags, those that occur several times as lists; ends the program for one that is unknown."""
    found: dict[str, list[str]] = {}
    waiting = list(arguments)
    while waiting:
        word = waiting.pop(0)
        if word == "-":
            continue
        if word not in FLAGS:
            sys.stderr.write(f"error: unexpected argument '{word}' found\n\nUsage: codex exec [OPTIONS] [PROMPT]\n")
            sys.exit(2)
        found.setdefault(word, []).append(waiting.pop(0) if FLAGS[word] else "")
    return found


def ask(address: str, key: str | None, body: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The output items and the usage of one response."""
    parts = urllib.parse.urlsplit(f"{address}/responses")
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
    try:
        connection.request("POST", parts.path, json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8")
    except (OSError, http.client.HTTPException):
        said = f"error sending request for url ({address}/responses)"
        raise Failed(f"stream disconnected before completion: {said}") from None
    if answer.status == 400:
        if json.loads(text).get("error", {}).get("code") == "context_length_exceeded":
            raise Failed(
                "Codex ran out of room in the model's context window. Start a new thread or clear earlier history."
            )
        raise Failed(text)
    if answer.status == 429:
        raise Failed("exceeded retry limit, last status: 429 Too Many Requests")
    if answer.status == 500:
        raise Failed(BUSY)
    if answer.status >= 400:
        said = json.loads(text).get("error", {}).get("message", "")
        reason = REASONS.get(answer.status, "Error")
        raise Failed(f"unexpected status {answer.status} {reason}: {said}, url: {address}/responses")
    for line in text.splitlines():
        if line.startswith("data: "):
            event = json.loads(line[6:])
            if event["type"] in ("response.completed", "response.incomplete"):
                return event["response"]["output"], event["response"].get("usage") or {}
    raise Failed("stream disconnected before completion: stream closed before response.completed")


def message(role: str, text: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def skills_named(prompt: str) -> Iterator[dict[str, Any]]:
    """Of each skill in the working folder that the prompt names with a $, what its file says."""
    for path in sorted(Path(".agents/skills").glob("*/SKILL.md")):
        if f"${path.parent.name}" in prompt:
            yield message("user", f"<skill>\n<name>{path.parent.name}</name>\n{path.read_text('utf-8')}</skill>")


def run(command: str, without: set[str]) -> tuple[str, int]:
    variables = {name: value for name, value in os.environ.items() if name not in without}
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, env=variables, stdin=subprocess.DEVNULL, start_new_session=True
    )
    return (done.stdout + done.stderr).decode("utf-8", "replace"), done.returncode


def turn(flags: Mapping[str, list[str]], prompt: str) -> dict[str, int]:
    """One turn: the model is asked until it asks for no command any more. The tokens of all its requests."""
    values = dict(value.partition("=")[::2] for value in flags.get("--config", ()))
    provider = f"model_providers.{values.get('model_provider', '')}."
    address, variable = values.get(provider + "base_url"), values.get(provider + "env_key", "")
    if address is None:
        raise Failed("stream disconnected before completion: there is no endpoint but that of tests")
    if variable and not os.environ.get(variable):
        raise Failed(f"Missing environment variable: `{variable}`.")
    body = request(flags, values)
    system = values.get("model_instructions_file")
    first = Path(system).read_text("utf-8") if system else "You are a coding agent."
    items = [message("developer", first), message("user", prompt), *skills_named(prompt)]
    total = dict.fromkeys(TOKENS, 0)
    for number in itertools.count(1):
        output, usage = ask(address, os.environ.get(variable), {**body, "input": items})
        for name, path in TOKENS.items():
            told: Any = usage
            for key in path.split("."):
                told = told.get(key, {})
            total[name] += told or 0
        results = [done(item, f"item_{number}-{at}", body["tools"], variable) for at, item in enumerate(output)]
        items += [*output, *filter(None, results)]
        if "--ephemeral" not in flags:
            record(items, total)
        if not any(results):
            break
    return total


def record(items: Sequence[Any], total: Mapping[str, int]) -> None:
    """The session as it is kept: all that went to the model and came from it, and what its requests used."""
    folder = Path(os.environ["CODEX_HOME"], "sessions/2026/11/30")
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"type": "response_item", "payload": item}) for item in items]
    used = {"type": "token_count", "info": {"total_token_usage": total}}
    lines.append(json.dumps({"type": "event_msg", "payload": used}))
    text = "\n".join([json.dumps({"type": "session_meta", "payload": {}}), *lines, ""])
    (folder / "rollout-2026-11-30T04-19-16.jsonl").write_text(text, "utf-8")


def request(flags: Mapping[str, list[str]], values: Mapping[str, str]) -> dict[str, Any]:
    """What every request of a turn holds beside its input."""
    tools = [] if "shell_tool" in flags.get("--disable", ()) else [SHELL]
    body: dict[str, Any] = {"model": flags.get("--model", [""])[0], "stream": True, "tools": tools}
    # The real program tells other things here; a test of its driver wants to know what it was given.
    profile = Path(os.environ["CODEX_HOME"], f"{flags.get('--profile', [''])[0]}.config.toml")
    body["client_metadata"] = {
        "arguments": [sys.argv[0], *(word for word in sys.argv[1:] if os.environ["HOME"] not in word)],
        "variables": sorted(os.environ),
        "profile": profile.read_text("utf-8") if profile.is_file() else None,
    }
    if effort := values.get("model_reasoning_effort"):
        body["reasoning"] = {"effort": effort}
    if schema := flags.get("--output-schema"):
        told = json.loads(Path(schema[0]).read_text("utf-8"))
        body["text"] = {"format": {"type": "json_schema", "strict": True, "schema": told}}
    return body


def done(item: Mapping[str, Any], id_: str, tools: list[Any], variable: str) -> dict[str, Any] | None:
    """What the model said is told; what it asks for is run, and becomes an item of the next request."""
    if item["type"] == "message":
        text = "".join(part["text"] for part in item["content"])
        emit("item.completed", item={"id": id_, "type": "agent_message", "text": text})
        return None
    output = f"unsupported call: {item['name']}"
    if item["name"] in [tool["name"] for tool in tools]:
        command = json.loads(item["arguments"])["cmd"]
        about = {"id": id_, "type": "command_execution", "command": f"/bin/sh -c '{command}'"}
        emit("item.started", item={**about, "aggregated_output": "", "exit_code": None, "status": "in_progress"})
        printed, code = run(command, {variable})
        status = "completed" if code == 0 else "failed"
        emit("item.completed", item={**about, "aggregated_output": printed, "exit_code": code, "status": status})
        output = f"Chunk ID: 0\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{printed}"
    return {"type": "function_call_output", "call_id": item["call_id"], "output": output}


def main() -> int:
    arguments = sys.argv[1:]
    if "--version" in arguments:
        say("codex-cli 0.50.0" if FAULT == "old" else "codex-cli 0.171.0")
        return 0
    if "--help" in arguments:
        known = [flag for flag in FLAGS if FAULT != "old" or flag != "--ignore-user-config"]
        say("Run Codex non-interactively\n\nOptions:\n" + "\n".join(f"      {flag} <VALUE>" for flag in known))
        return 0
    flags = parsed(arguments[1:])
    prompt = sys.stdin.buffer.read().decode("utf-8")
    os.chdir(flags["--cd"][0])
    emit("thread.started", thread_id="01a22a93-9f2b-7312-a076-389d839ea3db")
    emit("item.completed", item={"id": "item_0", "type": "error", "message": "Model metadata not found."})
    emit("turn.started")
    if FAULT == "silent":
        return 0
    if FAULT == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        usage = turn(flags, prompt)
    except Failed as error:
        emit("error", message=str(error))
        emit("turn.failed", error={"message": str(error)})
        return 1
    if FAULT == "malformed":
        say('{"type": "turn.comp')
        return 0
    emit("turn.completed", usage=usage)
    return 0


if __name__ == "__main__":
    sys.exit(main())
