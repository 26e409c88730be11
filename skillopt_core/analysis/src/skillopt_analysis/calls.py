"""`skillopt calls`: the model calls of a run by role and stage, one by one, or one of them in full."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from skillopt_kernel.console import echo, table
from skillopt_kernel.errors import RunDirectoryError, SkillOptError
from skillopt_kernel.models.ledger import CALLS, Ledger
from skillopt_kernel.store.patterns import redact_diagnostics

COLUMNS = {
    "calls": "calls",
    "failed": "failed_calls",
    "served": "served_calls",
    "replayed": "replayed_calls",
    "in": "prompt_tokens",
    "out": "completion_tokens",
    "cached": "cached_tokens",
    "reasoning": "reasoning_tokens",
    "usd": "usd",
    "seconds": "seconds",
}
"""Heading -> the sum under it."""


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--list", "listed", is_flag=True, help="List the calls, one a line, in the order in which they ended.")
@click.option("--show", "number", metavar="N", type=click.IntRange(min=1), help="Show the request and reply of call N.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def calls(run: Path, listed: bool, number: int | None, as_json: bool) -> int:
    """What the model calls of the run in the folder RUN used, by role and stage; reads only, also while it is running.

    `served` counts the calls that were not made again after a stop, `replayed` those that another run had made and
    this one did not. A dash is unknown, never zero.
    """
    if listed and number is not None:
        raise click.UsageError("--list and --show ask for different things; give one of them.")
    with ledger_of(run) as ledger:
        if number is not None:
            call = _plain(_found(ledger, number))
            echo(json.dumps(call, ensure_ascii=True) if as_json else call_text(call))
        elif listed:
            rows = ledger.calls()
            echo("\n".join(json.dumps(row) for row in rows) if as_json else list_text(rows))
        else:
            rows, roles = ledger.sums("role", "stage"), ledger.sums("role")
            total = next(iter(ledger.sums()), {})
            told = {"run": str(run), "calls": rows, "roles": roles, "total": total}
            echo(json.dumps(told) if as_json else sums_text(rows, roles, total))
    return 0


@contextmanager
def ledger_of(run: Path) -> Iterator[Ledger]:
    """The ledger of a run to read from. Raises `RunDirectoryError` when there is none or it cannot be read."""
    if not run.is_dir():
        raise RunDirectoryError(f"{run} is not a folder; name the folder of a run.")
    if not (run / CALLS).is_file():
        raise RunDirectoryError(
            f"{run} holds no {CALLS}: it is no run directory, or its run made no call yet. `skillopt runs FOLDER` "
            f"lists the runs in a folder."
        )
    ledger = Ledger(run / CALLS, read_only=True)
    try:
        yield ledger
    finally:
        ledger.close()


def _found(ledger: Ledger, number: int) -> dict[str, Any]:
    call = ledger.call(number)
    if call is None:
        made = next(iter(ledger.sums()), {"calls": 0})["calls"]
        has = f"its calls are 1 to {made}" if made else "it has made none yet"
        raise SkillOptError(f"the run has no call {number}; {has}. --list lists them.")
    return call


def _plain(value: Any) -> Any:
    """The value without what looks like a credential: the ledger keeps what was said, a person is shown less."""
    if isinstance(value, str):
        return redact_diagnostics(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def sums_text(rows: Sequence[Mapping[str, Any]], roles: Sequence[Mapping[str, Any]], total: Mapping[str, Any]) -> str:
    """The table of sums, a role with several stages also as a whole, and what they leave out."""
    if not rows:
        return "No model call was made yet."
    columns = {name: column for name, column in COLUMNS.items() if name != "replayed" or total["replayed_calls"]}

    def numbers(row: Mapping[str, Any]) -> list[str]:
        return [_number(name, row[name]) for name in columns.values()]

    cells = []
    for role in roles:
        stages = [row for row in rows if row["role"] == role["role"]]
        cells += [(row["role"], row["stage"], *numbers(row)) for row in stages]
        cells += [(role["role"], "all", *numbers(role))] if len(stages) > 1 else []
    lines = [table(("role", "stage", *columns), [*cells, ("all", "all", *numbers(total))])]
    if total["replayed_calls"]:
        lines.append("Replayed calls were answered by the ledger of another run: what they used was spent there.")
    unknown, unpriced = total["unknown_calls"], total["unpriced_calls"]
    if unknown:
        which = "1 call did not tell its" if unknown == 1 else f"{unknown:,} calls did not tell their"
        lines.append(f"{which} tokens: the sums are of the others.")
    if unpriced and total["usd"] is not None:
        which = "1 call has" if unpriced == 1 else f"{unpriced:,} calls have"
        lines.append(f"{which} no known price: the dollars are of the others.")
    return "\n".join(lines)


def _number(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4f}" if name == "usd" else f"{value:,.1f}" if name == "seconds" else f"{value:,}"


def list_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """A line for each call."""
    if not rows:
        return "No model call was made yet."
    names = ("number", "started", "role", "stage", "step", "status", "model")
    numbers = ("prompt_tokens", "completion_tokens", "usd", "seconds", "served")
    cells = [
        (
            *("-" if row[name] is None else str(row[name]) for name in names),
            *(_number(name, row[name]) for name in numbers),
            f"{row['scope']} {row['ordinal']}",
        )
        for row in rows
    ]
    return table(("call", *names[1:], "in", "out", "usd", "seconds", "served", "scope and ordinal"), cells)


def call_text(call: Mapping[str, Any]) -> str:
    """One call as a person reads it: what is known of it, each message, the reply or the error."""
    request, reply = call["request"], call["reply"]
    where = ", ".join(f"{name} {call[name]}" for name in ("epoch", "step") if call[name] is not None)
    used = ", ".join(f"{label} {_number(COLUMNS[label], call[COLUMNS[label]])}" for label in list(COLUMNS)[4:-1])
    lines = [
        f"Call {call['number']}: {call['role']}, stage {call['stage']}{f', {where}' if where else ''}",
        f"Model {call['model']} of {call['backend']}; started {call['started']}, {call['seconds']} s, tries "
        f"{call['tries']}, process {call['process']}, served {call['served']} times",
        f"Status {call['status']}; tokens and dollars: {used}",
        f"Key {call['scope']} {call['ordinal']} {call['digest']}",
    ]
    return "\n".join(
        [*lines, *_asked(request), *(_answered(reply) if reply else ["", f"--- no reply: {call['error']}"])]
    )


def _asked(request: Mapping[str, Any]) -> list[str]:
    """The settings of a request, and its messages, or an agent's skill and prompt."""
    texts = ("messages", "skill", "prompt", "files")
    lines = [f"{name}: {value}" for name, value in request.items() if name not in texts]
    lines += _files(request)
    for message in request.get("messages", ()):
        lines += ["", f"--- {message['role']}", *_content(message)]
    for name in ("skill", "prompt"):
        lines += ["", f"--- {name}", request[name]] if name in request else []
    return lines


def _answered(reply: Mapping[str, Any]) -> list[str]:
    """What came back: a model's reply with its reasoning, or what an agent did, said and left."""
    lines: list[str] = []
    for turn in reply.get("trajectory", ()):
        lines += ["", f"--- {turn['role']}", *_content(turn)]
    if "message" in reply:
        return [*lines, "", "--- reply", reply["message"], *_files(reply)]
    lines += ["", f"--- reply (finish {reply['finish']})", *_content({**reply, "content": reply["text"]})]
    return [*lines, "", "--- reasoning", reply["reasoning"]] if reply["reasoning"] else lines


def _files(value: Mapping[str, Any]) -> list[str]:
    return [f"[file {file['file']}, {file['bytes']:,} bytes, {file['content']}]" for file in value.get("files", ())]


def _content(message: Mapping[str, Any]) -> list[str]:
    content = message["content"]
    parts = [content] if isinstance(content, str) else content
    shown = [
        part if isinstance(part, str) else f"[image {part['media_type']}, {part['bytes']:,} bytes, {part['image']}]"
        for part in parts
    ]
    shown += [f"[calls {call['name']} ({call['id']}): {call['arguments']}]" for call in message.get("tool_calls", ())]
    return shown
