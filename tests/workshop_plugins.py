"""Plugins of `workshop`: a benchmark of sums in files, and a backend with an agent program and an optimizer.

SHEETS in the environment is the folder of the data; beside it is kept what was asked.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from skillopt_kernel import PLUGIN_API, Attempt, DriverContext, Judge, Manifest, Score, Splits, Target, Task
from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, ChatRequest
from skillopt_kernel.records import Turn, Usage

RULES = ("Sum the odd lines, too.", "Mind the last line.", "Write the sum as a number.")

sheets = Manifest(
    kind="env", name="sheets", api=PLUGIN_API, summary="sums of a file's numbers", factory="workshop_plugins:Sheets",
    needs=("SHEETS",),
)  # fmt: skip
workshop = Manifest(
    kind="backend", name="workshop", api=PLUGIN_API, summary="an agent, and an optimizer beside it",
    factory="workshop_plugins:Workshop",
)  # fmt: skip


def data() -> Path:
    return Path(os.environ["SHEETS"])


def keep(name: str, what: Any) -> None:
    with (data().parent / name).open("a", encoding="utf-8") as file:
        file.write(json.dumps(what) + "\n")


def wait_where_it_is_held() -> None:
    """Once as many jobs were begun as the file `hold` says, none of them ends: so the run can be killed there."""
    folder = data().parent
    while (folder / "hold").exists():
        begun = (folder / "jobs.jsonl").read_bytes().count(b"\n")
        if begun < int((folder / "hold").read_text("utf-8") or 0):
            return
        time.sleep(0.01)


class Sheets:
    targets = frozenset({"agent"})
    isolation: Literal["thread", "process"] = "thread"

    def __init__(self, settings: Any, context: DriverContext) -> None:
        pass

    def splits(self) -> Splits:
        def tasks(split: str, count: int) -> tuple[Task, ...]:
            return tuple(Task(f"{split}-{n}", "", {"sheet": f"{split}-{n}.csv"}, "42") for n in range(count))

        return Splits(tasks("train", 8), tasks("val", 6), tasks("test", 4))

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        sheet = task.inputs["sheet"]
        files = {sheet: data() / "sheet.csv", "note.txt": task.id.encode()}
        result = target.agent(AgentJob(f"Sum {sheet}", skill, files, collect=("*.txt",), edits=True))
        return Attempt(result.message, files=result.files)

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        return Score(float(attempt.files["answer.txt"] == task.reference.encode()), 0.5, attempt.output)


class Agent:
    """The more rules the skill holds, the more sums are right."""

    model = "workshop-agent"

    def run(self, job: AgentJob) -> AgentResult:
        keep("jobs.jsonl", [job.stage, job.prompt, job.skill])
        wait_where_it_is_held()
        known = sum(rule in job.skill for rule in RULES)
        number = int(job.prompt.rpartition("-")[2].removesuffix(".csv"))
        answer = b"42" if number % 4 < 1 + known else b"41"
        said = f"The sum is {answer.decode()}, says rule {known}."
        sheet = next(file for name, file in job.files.items() if name.endswith(".csv"))
        assert isinstance(sheet, Path)
        turns = (Turn("assistant", "I read."), Turn("tool", sheet.read_text("utf-8")), Turn("assistant", said))
        files = {"answer.txt": answer, "trace.txt": bytes(range(256)) * 20}
        return AgentResult(said, files, turns, Usage(1, len(job.skill), 9, usd=0.01))


class Optimizer:
    """Adds one rule at a time."""

    model = "workshop-optimizer"

    def complete(self, request: ChatRequest) -> ChatReply:
        text = request.messages[-1].text
        rule = next((rule for rule in RULES if rule not in text), f"Mind line {len(text)}.")
        edits = {"reasoning": "", "edits": [{"op": "append", "content": f"- {rule}", "support_count": 3}]}
        whole = {**edits, "patch": edits, "slow_update_content": f"- {rule}", "meta_skill_content": "Go on."}
        return ChatReply(json.dumps(whole), usage=Usage(1, len(text) // 4, 20, usd=0.02))


class Workshop:
    capabilities: Mapping[str, frozenset[str]] = {
        "optimizer": frozenset({"chat"}),
        "judge": frozenset({"chat"}),
        "target": frozenset({"agent"}),
    }

    def __init__(self, settings: Any, context: DriverContext) -> None:
        pass

    def open_chat(self, role: str) -> Optimizer:
        return Optimizer()

    def open_agent(self, role: str) -> Agent:
        return Agent()

    def endpoint(self, role: str) -> str:
        return "workshop"

    def check(self, role: str) -> list[Any]:
        return []
