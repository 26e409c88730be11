"""A stand-in for `claude -p`: it takes the same arguments, speaks Messages with its endpoint and prints its events.

It does what tests need and no more, in the words of the real program (version 2.1.332). Whatever a driver must keep
out of a request gets in where it does not: a CLAUDE.md, a file that is named with an `@`, built-in tools. The file is
copied as a whole, so it uses the standard library only.
"""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FAULT = ""
"""What goes wrong: "killed", "malformed", "silent", "old"."""

FLAGS = {
    "--print": 0, "--output-format": 1, "--input-format": 1, "--verbose": 0, "--model": 1, "--tools": 1,
    "--allowedTools": 1, "--setting-sources": 1, "--settings": 1, "--strict-mcp-config": 0, "--max-turns": 1,
    "--no-session-persistence": 0, "--disable-slash-commands": 0, "--bare": 0, "--effort": 1, "--json-schema": 1,
    "--system-prompt-file": 1, "--permission-mode": 1,
}  # fmt: skip
UNLISTED = ("--max-turns", "--system-prompt-file")  # accepted, and not in the help
BUILT_IN = ("Bash", "Edit", "Glob", "Grep", "Read", "Skill", "Task", "WebFetch", "Write")
FORM = "StructuredOutput"
COMMANDS = ("/help", "/clear", "/model")
DENIED = "Permission to use {} has been denied because Claude Code is running in don't ask mode."
CUT_OFF = "Output token limit hit. Resume directly — no apology, no recap of what you were doing."
TOO_LONG = "API Error: Claude's response exceeded the {} output token maximum."
NO_FORM = f"[structured-output-enforce] You MUST call the {FORM} tool to complete this request. Call this tool now."
NO_TEXT = "[Your previous response had no visible output. Please continue and produce a user-visible response.]"
PRICES = {
    "input_tokens": 3e-6, "cache_read_input_tokens": 3e-7, "cache_creation_input_tokens": 4e-6, "output_tokens": 15e-6,
}  # fmt: skip
NAMES = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")


class Failed(Exception):
    """The request has failed for good: what the program says of it, and the fields of its last event."""

    def __init__(self, said: str, status: int | None = None, reason: str = "api_error") -> None:
        self.said, self.status, self.reason = said, status, reason
        super().__init__(said)


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def emit(kind: str, **told: Any) -> None:
    say(json.dumps({"type": kind, "session_id": "01a22a93-9f2b-7312-a076-389d839ea3db", **told}, ensure_ascii=False))


def parsed(arguments: list[str]) -> dict[str, str]:
    """The flags with their values; ends the program for one that is unknown."""
    found, waiting = {}, list(arguments)
    while waiting:
        word, _, value = waiting.pop(0).partition("=")
        word = {"-p": "--print"}.get(word, word)
        if word not in FLAGS:
            sys.stderr.write(f"error: unknown option '{word}'\n")
            sys.exit(1)
        found[word] = value or (waiting.pop(0) if FLAGS[word] and not _ else "")
    return found


# What goes into a request ----------------------------------------------------------------------------------


def configuration() -> Path:
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")


def reminders(flags: Mapping[str, str], prompt: str) -> Iterator[str]:
    """What stands before the prompt: most of it is what a driver must keep out."""
    if "--bare" in flags:
        return
    if os.environ.get("CLAUDE_CODE_DISABLE_ATTACHMENTS") != "1":
        for name in re.findall(r"(?:^|\s)@(\S+)", prompt):
            with contextlib.suppress(OSError):
                yield f"Result of calling the Read tool:\n{Path(name).read_text('utf-8')}"
    yield f"# Environment\n - Primary working directory: {Path.cwd()}"
    sources = flags.get("--setting-sources", "user,project,local").split(",")
    folders = [*([configuration()] if "user" in sources else []), Path.cwd(), *Path.cwd().parents]
    for folder in folders if os.environ.get("CLAUDE_CODE_DISABLE_CLAUDE_MDS") != "1" else ():
        with contextlib.suppress(OSError):
            yield f"Contents of {folder}/CLAUDE.md:\n{(folder / 'CLAUDE.md').read_text('utf-8')}"


def skill_called(flags: Mapping[str, str], prompt: str) -> list[str] | None:
    """The texts of a prompt that calls a skill by its name; `None`: it calls none."""
    name, _, given = prompt[1:].partition("\n")
    folder = Path(".claude/skills", name)
    if not prompt.startswith("/") or "project" not in flags.get("--setting-sources", "project"):
        return None
    if "--disable-slash-commands" in flags or "/" in name or not (folder / "SKILL.md").is_file():
        return None
    body = (folder / "SKILL.md").read_text("utf-8").partition("---\n")[2].partition("---\n")[2].strip()
    filled = re.sub(r"(?<!\\)\$(?:ARGUMENTS|\d+)", lambda _: given, body)
    asked = "" if filled != body else f"\n\nARGUMENTS: {given}"
    text = re.sub(r"\\(?=\$)", "", filled)
    return [
        f"<command-name>/{name}</command-name>\n<command-args>{given}</command-args>",
        f"Base directory for this skill: {folder.absolute()}\n\n{text}{asked}",
    ]


def content(flags: Mapping[str, str]) -> list[dict[str, Any]]:
    """The content of the user's message. Ends the program for a command of its own."""
    text = sys.stdin.buffer.read().decode("utf-8")
    parts = [text_part(text)]
    if flags.get("--input-format") == "stream-json":
        parts = json.loads(text)["message"]["content"]
    prompt = parts[0]["text"]
    skill = skill_called(flags, prompt)
    if skill is None and prompt.startswith(COMMANDS):
        said = f"{prompt.split()[0]} isn't available in this environment."
        emit("result", subtype="success", is_error=False, result=said, num_turns=0, modelUsage={}, total_cost_usd=0)
        sys.exit(0)
    before = [text_part(f"<system-reminder>\n{each}\n</system-reminder>") for each in reminders(flags, prompt)]
    return [*before, *(map(text_part, skill) if skill else parts)]


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def tools_of(flags: Mapping[str, str]) -> list[dict[str, Any]]:
    names = flags["--tools"].split(",") if "--tools" in flags else BUILT_IN
    tools: list[dict[str, Any]] = [
        {"name": name, "description": name, "input_schema": {"type": "object"}} for name in sorted(names) if name
    ]
    if schema := flags.get("--json-schema"):
        tools.append({"name": FORM, "description": "Reply in this form.", "input_schema": json.loads(schema)})
    return tools


def request(flags: Mapping[str, str], messages: list[Any]) -> dict[str, Any]:
    file = flags.get("--system-prompt-file")
    system = Path(file).read_text("utf-8") if file else "You are an agent."
    thinking = "disabled" if os.environ.get("MAX_THINKING_TOKENS") == "0" else "adaptive"
    return {
        "model": flags["--model"],
        "max_tokens": int(os.environ.get("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "32000")),
        "system": [text_part("You are a Claude agent."), text_part(system)],
        "messages": messages,
        "tools": tools_of(flags),
        "thinking": {"type": thinking},
        "output_config": {"effort": flags.get("--effort", "high")},
        "stream": True,
    }


# The endpoint ----------------------------------------------------------------------------------------------


def credentials() -> dict[str, str]:
    """The header that signs in: with a variable, or with what the pipe of a number holds."""

    def told(name: str, pipe: str) -> str:
        number = os.environ.get(pipe)
        if not number:
            return os.environ.get(name, "")
        with os.fdopen(int(number)) as opened:
            return opened.read()

    if key := told("ANTHROPIC_API_KEY", "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR"):
        return {"x-api-key": key}
    pipe = "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR"
    token = os.environ.get("ANTHROPIC_AUTH_TOKEN") or told("CLAUDE_CODE_OAUTH_TOKEN", pipe)
    file = configuration() / ".credentials.json"
    if not token and file.is_file():
        token = json.loads(file.read_text("utf-8"))["claudeAiOauth"]["accessToken"]
    if not token:
        raise Failed("Not logged in · Please run /login")
    return {"authorization": f"Bearer {token}"}


def ask(body: Mapping[str, Any], signed: Mapping[str, str]) -> dict[str, Any]:
    """One message of the model's, asked for as often as the program retries."""
    tries = 1 + int(os.environ.get("CLAUDE_CODE_MAX_RETRIES", "10"))
    while True:
        tries -= 1
        try:
            return asked(body, signed)
        except Failed as error:
            if not tries or (error.status and error.status < 500 and error.status not in (401, 408, 429)):
                raise
            time.sleep(0.01)


def asked(body: Mapping[str, Any], signed: Mapping[str, str]) -> dict[str, Any]:
    parts = urllib.parse.urlsplit(os.environ.get("ANTHROPIC_BASE_URL", ""))
    if not parts.hostname:
        raise Failed("API Error: there is no endpoint but that of tests")
    connection = http.client.HTTPConnection(parts.hostname, parts.port)
    headers = {"Content-Type": "application/json", "anthropic-version": "2023-06-01", **signed}
    try:
        connection.request("POST", f"{parts.path}/v1/messages?beta=true", json.dumps(body), headers)
        answer = connection.getresponse()
        text = answer.read().decode("utf-8")
    except (OSError, http.client.HTTPException):
        raise Failed(
            "API Error: Connection dropped (ECONNRESET). Check the gateway set in ANTHROPIC_BASE_URL."
        ) from None
    if answer.status >= 400:
        raise failed(answer.status, text, body)
    return message(text)


def failed(status: int, text: str, body: Mapping[str, Any]) -> Failed:
    said = json.loads(text)["error"]["message"]
    if status == 400 and re.search("prompt is too long|maximum context length", said):
        return Failed("Prompt is too long · start with less context.", 400, "prompt_too_long")
    if status == 400 and "credit balance" in said:
        return Failed("Credit balance is too low", 400)
    words = dict.fromkeys((401, 403), f"Failed to authenticate. API Error: {status} {said}") | {
        404: f"There's an issue with the selected model ({body['model']}). It may not exist.",
        429: f"API Error: Request rejected (429) · {said}",
    }
    return Failed(words.get(status, f"API Error: {status} {said}"), status)


def message(stream: str) -> dict[str, Any]:
    """The message that a stream of events brings."""
    told: dict[str, Any] | None = None
    for line in stream.splitlines():
        if not line.startswith("data: "):
            continue
        event = json.loads(line[6:])
        if event["type"] == "message_start":
            told = event["message"]
        elif told is not None and event["type"] == "content_block_start":
            told["content"].append({**event["content_block"], "partial": ""})
        elif told is not None and event["type"] == "content_block_delta":
            delta = event["delta"]
            told["content"][-1]["partial"] += delta.get("text", "") + delta.get("partial_json", "")
        elif told is not None and event["type"] == "message_delta":
            told.update(stop_reason=event["delta"]["stop_reason"], usage=event["usage"])
    if told is None or told["stop_reason"] is None:
        raise Failed("API Error: Stream ended without receiving any events")
    for block in told["content"]:
        partial = block.pop("partial")
        block.update({"text": partial} if block["type"] == "text" else {"input": json.loads(partial or "{}")})
    return told


# The turn --------------------------------------------------------------------------------------------------


class Turn:
    """Asks the model until it calls no tool any more, and adds up what that took."""

    def __init__(self, flags: Mapping[str, str]) -> None:
        self.flags, self.asked, self.cuts, self.nudged = flags, 0, 0, False
        self.usage = dict.fromkeys(PRICES, 0)
        self.denials: list[dict[str, Any]] = []
        self.form: Any = None

    def run(self) -> dict[str, Any]:
        """The fields of the last event."""
        signed = credentials()
        messages: list[Any] = [{"role": "user", "content": content(self.flags)}]
        while True:
            said = ask(request(self.flags, messages), signed)
            self.asked += 1
            for name in self.usage:
                self.usage[name] += said["usage"].get(name, 0)
            for block in said["content"]:
                emit("assistant", message={**said, "content": [block], "stop_reason": None}, parent_tool_use_id=None)
            results = [self.done(block) for block in said["content"] if block["type"] == "tool_use"]
            for result in results:
                emit("user", message={"role": "user", "content": [result]}, parent_tool_use_id=None)
            text = "".join(block["text"] for block in said["content"] if block["type"] == "text")
            if ended := self.ended(said["stop_reason"], text, bool(results)):
                return {"stop_reason": said["stop_reason"], **ended}
            answer = results or self.nudge(said["stop_reason"])
            messages += [{"role": "assistant", "content": said["content"] or "(no content)"}]
            messages += [{"role": "user", "content": answer}]

    def ended(self, reason: str, text: str, called: bool) -> dict[str, Any] | None:
        """The fields of the last event, if the turn is over."""
        if reason == "refusal":
            said = f"API Error: {self.flags['--model']} can't help with this."
            return {"is_error": True, "result": said, "terminal_reason": "api_error"}
        if self.form is not None:
            return {"result": json.dumps(self.form), "structured_output": self.form}
        if called:
            if self.asked != int(self.flags.get("--max-turns", "0")):
                return None
            errors = [f"Reached maximum number of turns ({self.asked})"]
            return {"subtype": "error_max_turns", "terminal_reason": "max_turns", "is_error": True, "errors": errors}
        if reason == "max_tokens":
            said = TOO_LONG.format(os.environ.get("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "32000"))
            told = {"is_error": True, "result": said, "stop_reason": "stop_sequence", "terminal_reason": "api_error"}
            return told if self.cuts == 3 else None
        wanting = "--json-schema" in self.flags or not text
        return None if wanting and not self.nudged else {"result": text}

    def nudge(self, reason: str) -> list[dict[str, Any]]:
        """The program's own word to the model, when it was cut off or did not do what it had to."""
        self.cuts += reason == "max_tokens"
        self.nudged = self.nudged or reason != "max_tokens"
        word = CUT_OFF if reason == "max_tokens" else NO_FORM if "--json-schema" in self.flags else NO_TEXT
        told = [{"type": "text", "text": word}]
        emit("user", message={"role": "user", "content": told}, parent_tool_use_id=None, isSynthetic=True)
        return told

    def done(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """What a call of a tool gives back."""
        try:
            text, wrong = self.tried(call["name"], call["input"], call["id"]), False
        except (OSError, AttributeError, ValueError) as error:
            text, wrong = str(error), True
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        return {**result, "is_error": True} if wrong else result

    def tried(self, name: str, given: Mapping[str, Any], id_: str) -> str:
        if name not in [tool["name"] for tool in tools_of(self.flags)]:
            raise ValueError(f"Error: No such tool available: {name}.")
        if name == FORM:
            if missing := set(json.loads(self.flags["--json-schema"]).get("required", ())) - set(given):
                raise ValueError(f"Output does not match required schema: it must have {sorted(missing)}")
            self.form = given
            return "Structured output provided successfully"
        if not self.permitted(name, given):
            self.denials.append({"tool_name": name, "tool_use_id": id_, "tool_input": given})
            raise ValueError(DENIED.format(name))
        return str(getattr(self, name.lower())(given))

    def permitted(self, name: str, given: Mapping[str, Any]) -> bool:
        """As in the mode `dontAsk`: reading below the working folder is, everything else by a rule only."""
        path = Path(given.get("file_path") or given.get("path") or ".").absolute()
        inside = path.resolve().is_relative_to(Path.cwd().resolve())
        rules = self.flags.get("--allowedTools", "").split(",")
        return name in rules or (inside and (name in ("Read", "Glob", "Grep") or f"{name}(./**)" in rules))

    def bash(self, given: Mapping[str, Any]) -> str:
        command = ["/bin/sh", "-c", given["command"]]
        done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, start_new_session=True)
        text = (done.stdout + done.stderr).decode("utf-8", "replace")
        if done.returncode:
            raise ValueError(f"Exit code {done.returncode}\n{text}")
        return text

    def read(self, given: Mapping[str, Any]) -> str:
        lines = Path(given["file_path"]).read_text("utf-8").split("\n")
        return "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, 1))

    def write(self, given: Mapping[str, Any]) -> str:
        Path(given["file_path"]).write_text(given["content"], encoding="utf-8")
        return f"File created successfully at: {given['file_path']}"


def main() -> int:
    arguments = sys.argv[1:]
    if "--version" in arguments:
        say("1.0.44 (Claude Code)" if FAULT == "old" else "2.1.332 (Claude Code)")
        return 0
    if "--help" in arguments:
        listed = [flag for flag in FLAGS if flag not in UNLISTED and (FAULT != "old" or flag != "--setting-sources")]
        say(
            "Usage: claude [options] [command] [prompt]\n\nOptions:\n"
            + "\n".join(f"  {flag} <value>" for flag in listed)
        )
        return 0
    flags = parsed(arguments)
    if FAULT == "silent":
        return 0
    emit("system", subtype="init", cwd=str(Path.cwd()), tools=[tool["name"] for tool in tools_of(flags)])
    if FAULT == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    turn = Turn(flags)
    try:
        ended = turn.run()
    except Failed as error:
        ended = {"is_error": True, "result": error.said, "stop_reason": "stop_sequence"}
        ended |= {"api_error_status": error.status, "terminal_reason": error.reason}
    if FAULT == "malformed":
        say('{"type": "resu')
        return 0
    usd = sum(count * PRICES[name] for name, count in turn.usage.items())
    used = {**dict(zip(NAMES, turn.usage.values(), strict=True)), "costUSD": usd}
    about = {"subtype": "success", "is_error": False, "terminal_reason": "completed", "num_turns": turn.asked, **ended}
    spent = {"usage": turn.usage, "modelUsage": {flags["--model"]: used} if turn.asked else {}, "total_cost_usd": usd}
    emit("result", **about, **spent, permission_denials=turn.denials)
    return 1 if about["is_error"] else 0


if __name__ == "__main__":
    sys.exit(main())
