"""An environment that does to its worker what environments do: compute, print, read, fail, hang, end the process."""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, frozen
from skillopt_kernel.config.fields import at_least, option
from skillopt_kernel.errors import DataError
from skillopt_kernel.interfaces import DriverContext, Judge, Target
from skillopt_kernel.models.requests import Message
from skillopt_kernel.records import Attempt, Score, Splits, Task

HANG = 3600.0
"""Seconds that a hanging attempt would take."""


@frozen
class RehearsalSettings:
    """How the attempts of all tasks are."""

    rounds: int = option(0, "rounds of arithmetic before each attempt's question: work for a CPU", at_least(0))
    isolation: Literal["thread", "process"] = option("process", "what it asks of the executor")
    marks: Path | None = option(None, "folder for files that say what was begun, by task", path="output")


class RehearsalEnvironment:
    """Asks the target the task's question; right is a reply that holds the answer.

    Tasks are the items of `split_dir`/{train,val,test}/items.json: `id`, `question`, `answer`, and in `attempt` and
    `score` what is done first, in order: names of functions of this module without their leading `do_`, or "judge".
    """

    targets = frozenset({"chat"})

    def __init__(self, settings: RehearsalSettings, context: DriverContext) -> None:
        self._settings, self._common = settings, context.common
        self.isolation: Literal["thread", "process"] = settings.isolation

    def splits(self) -> Splits:
        return Splits(*(self._tasks(name) for name in ("train", "val", "test")))

    def _tasks(self, split: str) -> tuple[Task, ...]:
        path = Path(self._common.split_dir or "") / split / "items.json"
        try:
            items = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise DataError(f"{path}: the tasks cannot be read ({error}); write a list of items there.") from error
        return tuple(task_of(**item) for item in items)

    def initial_skill(self) -> str:
        return "# Rehearsal\n\n- Answer in few words.\n"

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        self._mark(task, "attempt")
        found = work(self._settings.rounds)
        made = Attempt("", state={"worker": os.getpid(), "work": found, "reference": task.reference})
        for name in task.inputs["attempt"]:
            made = DEEDS[name](made, target)
        reply = target.chat([Message("system", skill), Message("user", task.inputs["question"])])
        return evolve(made, output=f"{made.output} {reply.text}".strip())

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        self._mark(task, "score")
        feedback = f"The answer is {task.reference}."
        for name in task.inputs["score"]:
            if name == "judge":
                feedback = judge.chat([Message("user", f"{attempt.output} / {task.reference}")]).text
            else:
                DEEDS[name](attempt, None)
        right = float(str(task.reference) in attempt.output)
        return Score(right, right, feedback)

    def _mark(self, task: Task, name: str) -> None:
        """Leave a file that says which process began what."""
        if self._settings.marks is not None:
            self._settings.marks.mkdir(parents=True, exist_ok=True)
            with (self._settings.marks / f"{task.id}.{name}").open("a", encoding="utf-8") as file:
                file.write(f"{os.getpid()}\n")


def task_of(id: str, question: str, answer: str, attempt: Any = (), score: Any = ()) -> Task:
    """A task of the environment: what is done in its attempt and in its scoring, by name."""
    return Task(id, "", {"question": question, "attempt": list(attempt), "score": list(score)}, reference=answer)


def work(rounds: int) -> int:
    """Arithmetic that holds a CPU (and Python's lock) all the while; the same number each time."""
    found = 1
    for number in range(rounds):
        found = (found * 1103515245 + number) % 2147483647
    return found


def do_print(made: Attempt, target: Any) -> Attempt:
    """Write to everything that could be taken for a channel, in the midst of the attempt."""
    sys.stdout.write("printed by the environment\n")
    sys.stdout.flush()
    sys.stderr.write("printed as an error\n")
    os.write(1, b"\x80\x05bytes on descriptor 1\n")
    subprocess.run([sys.executable, "-c", "print('printed by a child')"], check=True)
    return made


def do_read(made: Attempt, target: Any) -> Attempt:
    """Read what there is to be read."""
    return evolve(made, output=f"{made.output} read {sys.stdin.read()!r}")


def do_note(made: Attempt, target: Any) -> Attempt:
    target.note("the door opens", step=1)
    return made


def do_ask(made: Attempt, target: Any) -> Attempt:
    """One more call of the target, before the one that counts."""
    target.chat([Message("user", "Are you there?")])
    return made


def do_variables(made: Attempt, target: Any) -> Attempt:
    """Say which environment variables and arguments there are."""
    told = json.dumps({"variables": dict(os.environ), "arguments": [*sys.argv, *sys.orig_argv]})
    return evolve(made, state={**made.state, "told": told})


def do_child(made: Attempt, target: Any) -> Attempt:
    """Start a program that would outlive the attempt."""
    child = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({HANG})"])
    return evolve(made, state={**made.state, "child": child.pid})


def do_raise(made: Attempt, target: Any) -> Attempt:
    raise RuntimeError("a defect of the environment")


def do_exit(made: Attempt, target: Any) -> Attempt:
    sys.exit(3)


def do_end(made: Attempt, target: Any) -> Attempt:
    """End the process as a crash in a library does."""
    sys.stderr.write("about to crash\n")
    sys.stderr.flush()
    os._exit(7)


def do_hang(made: Attempt, target: Any) -> Attempt:
    """Take no notice of anybody for an hour."""
    time.sleep(HANG)
    return made


def do_unsendable(made: Attempt, target: Any) -> Attempt:
    return evolve(made, state={**made.state, "lock": threading.Lock()})


def do_unreadable(made: Attempt, target: Any) -> Attempt:
    """Hand on an object of a module that nobody else has."""
    module = sys.modules["rehearsed_here"] = types.ModuleType("rehearsed_here")
    kind = module.__dict__["Kind"] = type("Kind", (), {"__module__": "rehearsed_here"})
    return evolve(made, state={**made.state, "kind": kind()})


DEEDS: dict[str, Callable[[Attempt, Any], Attempt]] = {
    name.removeprefix("do_"): deed for name, deed in list(globals().items()) if name.startswith("do_")
}
"""What an attempt, or its scoring, can be told to do."""
