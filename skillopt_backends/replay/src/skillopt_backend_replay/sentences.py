"""What is said of a replay that asks something else than the run did: which call, the difference, likely causes."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from attrs import frozen
from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.models.call_text import Asked, CallKey, with_texts
from skillopt_kernel.store.directory import FINGERPRINT, RunDirectory
from skillopt_kernel.store.files import read_object
from skillopt_kernel.store.patterns import redact_diagnostics
from skillopt_kernel.store.reading import read_run
from skillopt_kernel.version import version_of

WIDTH = 160
"""Characters of a line of the difference: longer ones are broken, so that it shows only the part that differs."""

IN_A_ROW = 12
"""Lines of the difference that are shown of those taken out, or put in, at one place."""

MOST_LINES = 60
"""Lines of the difference in all, and characters of one value among the causes."""


@frozen
class Question:
    """A call of the replay: which one, and what it asks of which model."""

    role: str
    key: CallKey
    asked: Asked
    backend: str
    model: str

    @property
    def place(self) -> str:
        """Which call it is, for a person."""
        scope, number = self.key.scope, self.key.ordinal + 1
        if self.role == "optimizer":
            return f"call {number} of the optimizer in {scope}"
        skill, _, sample, task = scope.split("/", 3) if scope.count("/") > 2 else (scope, "", "", scope)
        return f"call {number} of the {self.role} at the task {task!r} (skill {skill}, sample {sample})"


def made_no_more(run: Path, question: Question, rows: Sequence[Mapping[str, Any]]) -> str:
    """The run made this very call, and it came to nothing or was answered before; the replay asks once more."""
    ends = [f"{row['status']} ({row['error']})" if row["error"] else row["status"] for row in rows]
    return (
        f"the replay asks once more what {run} did not ask again: {question.place}. There it ended with "
        f"{redact_diagnostics(', then '.join(ends))}. A run can be replayed up to where a time limit cut an attempt "
        f"short, or where it was killed while it tried a failed call again."
    )


def never_made(run: Path, question: Question, folder: Path) -> str:
    """Neither this call nor one like it stands in the ledger of the run."""
    return f"{run} never made this call, nor one like it: {question.place}.{causes(run, folder)}"


def asked_otherwise(run: Path, question: Question, folder: Path, row: Mapping[str, Any], *, same_call: bool) -> str:
    """The call asks something else than it did; or it was never made, and `row` is the nearest that was.

    row  of the run's ledger, in full (`Ledger.call`)
    """
    old = [f"model {row['model']} of {row['backend']}", *_lines(row["request"])]
    request = with_texts(question.asked.document, lambda name: question.asked.contents[name].decode("utf-8"))
    new = [f"model {question.model or row['model']} of {question.backend or row['backend']}", *_lines(request)]
    names = (f"call {row['number']} of {run}", "the replay")
    whole = difflib.unified_diff(_broken(old), _broken(new), *names, n=1, lineterm="")
    difference = _clipped(whole, f"skillopt calls {run} --show {row['number']} has all of the old text")
    moment = [f", {name} {row[name]}" for name in ("epoch", "step") if row[name] is not None]
    where = f"stage {row['stage']}{''.join(moment)}"
    what = (
        f"the replay asks something else than {run} did: {question.place}; {where}."
        if same_call
        else f"{run} never made this call: {question.place}. The nearest one there is call {row['number']} ({where})."
    )
    return "\n".join([what, *difference, causes(run, folder).lstrip()])


def _lines(request: Mapping[str, Any]) -> list[str]:
    """A request as lines: its settings, then each message, or an agent's skill and prompt."""
    texts = {name: request[name] for name in ("skill", "prompt") if name in request}
    lines = [f"{name}: {value}" for name, value in request.items() if name not in ("messages", *texts)]
    for message in request.get("messages", ()):
        parts = [message["content"]] if isinstance(message["content"], str) else message["content"]
        calls = [f"calls {call['name']}: {call['arguments']}" for call in message.get("tool_calls", ())]
        lines += [f"--- {message['role']}", *(line for part in (*parts, *calls) for line in str(part).splitlines())]
    for name, text in texts.items():
        lines += [f"--- {name}", *text.splitlines()]
    return lines


def _clipped(difference: Iterable[str], rest: str) -> list[str]:
    """The difference with the first lines of each place, and where the rest can be read."""
    clipped: list[str] = []
    cut = False
    for sign, found in groupby(difference, lambda line: line[:1]):
        lines = list(found)
        clipped += lines[:IN_A_ROW]
        if further := len(lines[IN_A_ROW:]):
            clipped.append(f"{sign}... {further:,} lines more")
            cut = True
    if further := len(clipped[MOST_LINES:]):
        clipped[MOST_LINES:] = [f"... {further:,} lines more"]
        cut = True
    return [*clipped, rest] if cut else clipped


def _broken(lines: Sequence[str]) -> list[str]:
    """The lines without what looks like a credential, the long ones broken at spaces."""
    shown = redact_diagnostics("\n".join(lines)).split("\n")
    return [part for line in shown for part in textwrap.wrap(line, WIDTH, drop_whitespace=False) or [""]]


def causes(run: Path, folder: Path) -> str:
    """What differs between the two runs, as far as they tell it, and what to do."""
    view = read_run(run)
    try:
        differences = RunDirectory(run).differences(read_object(folder / FINGERPRINT))
    except RunDirectoryError:  # a run without a fingerprint tells nothing
        differences = {}
    told = [f"  {key}: was {_short(old)}, now {_short(new)}" for key, (old, new) in differences.items()]
    before, now = view.summary.get("version"), version_of("skillopt-kernel")
    if before and before != now:
        told.append(f"  version of SkillOpt: was {before}, now {now}")
    if told:
        first = " Likely causes are the differences between the two runs; put them back, or train anew:"
        return "\n".join([first, *told])
    if view.status != "finished":
        return f" The run is {view.status}, at step {view.step}: it can be replayed as far as it has come."
    return (
        " Configuration, data, start skill, prompts and the versions of the drivers are those of the run. Likely "
        "causes: SkillOpt or a plugin was changed without a new version, the environment or a hook looks at a clock, "
        "at a random number or at files of its own, or a time limit had cut the attempt short there."
    )


def _short(value: Any) -> str:
    text = "(not set)" if value is None else str(value)
    return text if len(text) <= MOST_LINES else f"{text[: MOST_LINES - 3]}..."
