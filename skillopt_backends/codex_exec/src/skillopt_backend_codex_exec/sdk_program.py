"""Codex through its Python SDK, as a program that takes the arguments of `codex` and prints its events.

So a job through the SDK has the same folders, variables, wall, deadline and record as one without. The SDK passes few
options on; what it starts is therefore this program again, which puts the whole command line in its place.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

PROGRAM, ARGUMENTS = "SKILLOPT_CODEX_PROGRAM", "SKILLOPT_CODEX_ARGUMENTS"
"""Variables: the path of Codex; the command line that the SDK does not know, as JSON."""


def main() -> int:
    """The command `skillopt-codex-sdk`."""
    arguments = json.loads(os.environ.get(ARGUMENTS) or "null")
    if arguments is not None or sys.argv[1:2] != ["exec"] or "--help" in sys.argv:
        _become(arguments or sys.argv[1:])
    return asyncio.run(_turn(sys.argv[1:], sys.stdin.buffer.read().decode("utf-8")))


def _become(arguments: list[str]) -> None:
    variables = {name: value for name, value in os.environ.items() if name not in (PROGRAM, ARGUMENTS)}
    program = os.environ[PROGRAM]
    try:
        os.execve(program, [program, *arguments], variables)
    except OSError as error:
        sys.exit(f"{program}: {error.strerror}")


async def _turn(arguments: list[str], prompt: str) -> int:
    """One turn through the SDK; its events as Codex prints them."""
    from openai_codex_sdk import Codex

    variables = {**os.environ, ARGUMENTS: json.dumps(arguments)}
    codex = Codex({"codex_path_override": sys.argv[0], "env": variables})
    ended = ""
    try:
        streamed = await codex.start_thread().run_streamed(prompt)
        async for event in streamed.events:
            ended = event.type
            sys.stdout.write(event.model_dump_json() + "\n")
            sys.stdout.flush()
    except Exception as error:  # of whatever type: the SDK says so of an exit code, of a line that it cannot read, ...
        if ended not in ("turn.failed", "turn.completed"):
            sys.stderr.write(f"{error}\n")
        return 1
    return 0
