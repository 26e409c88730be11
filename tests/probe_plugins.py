"""Plugins for tests of whole runs: a benchmark that asks the judge, a backend that keeps every request, and a hook.

`install` makes them known to this process as any installed distribution is: by metadata with entry points.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest
from skillopt_backend_simulated.settings import SimulatedSettings
from skillopt_kernel import PLUGIN_API, Attempt, DriverContext, Judge, Manifest, Message, Score, Splits, Target, Task
from skillopt_kernel.errors import PassingError, RejectedRequest
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.models.requests import ChatReply, ChatRequest

METADATA = "Metadata-Version: 2.1\nName: probe-plugins\nVersion: 1.0\n"
ENTRY_POINTS = """\
[skillopt.envs]
judged = probe_plugins:judged
graded = probe_plugins:graded
[skillopt.backends]
recorded = probe_plugins:recorded
[skillopt.hooks]
silent = probe_plugins:silent
"""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the plugins of this module known until the test ends."""
    metadata = folder / "probe_plugins-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(METADATA, encoding="utf-8")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)


# A benchmark whose answers the judge compares -----------------------------------------------------------------

judged = Manifest(
    kind="env", name="judged", api=PLUGIN_API, summary="questions; the judge compares answer and reference",
    factory="probe_plugins:JudgedEnvironment",
)  # fmt: skip


class JudgedEnvironment:
    """Hands the target whatever its task holds, and the judge what it needs: a leak would be the kernel's."""

    targets = frozenset({"chat"})
    isolation: Literal["thread", "process"] = "thread"

    def __init__(self, settings: Any, context: DriverContext) -> None:
        self.folder = context.common.split_dir

    def splits(self) -> Splits:
        return Splits(*(self._tasks(name) for name in ("train", "val", "test")))

    def _tasks(self, split: str) -> tuple[Task, ...]:
        items = json.loads((self.folder / split / "items.json").read_text("utf-8"))
        kept = ("question", "context")
        return tuple(
            Task(item["id"], item["task_type"], {key: item[key] for key in kept}, reference=item["answers"][0])
            for item in items
        )

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        reply = target.chat([Message("system", skill), Message("user", repr(task))])
        return Attempt(reply.text, target.trajectory)

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        asked = f"{task.inputs['question']}\nAnswer: {attempt.output}\nReference: {task.reference}"
        verdict = judge.chat([Message("system", "Is the answer right?"), Message("user", asked)]).text
        right = float("yes" in verdict)
        return Score(right, right, verdict)

    def evidence(self, task: Task, attempt: Attempt) -> Mapping[str, str]:
        return {"The reference": str(task.reference)}


graded = Manifest(
    kind="env", name="graded", api=PLUGIN_API, summary="questions; a wrong answer is still worth a quarter",
    factory="probe_plugins:GradedEnvironment",
)  # fmt: skip


class GradedEnvironment(JudgedEnvironment):
    """Gives partial credit to every answer, without a judge."""

    def score(self, task: Task, attempt: Attempt, judge: Judge) -> Score:
        right = str(task.reference) in attempt.output
        return Score(1.0, 1.0) if right else Score(0.25, 0.25, "not the answer")


# A backend that keeps every request ---------------------------------------------------------------------------

recorded = Manifest(
    kind="backend", name="recorded", api=PLUGIN_API, summary="the simulated backend, with every request kept",
    factory="probe_plugins:RecordedBackend", settings="probe_plugins:RecordedSettings",
    section="model", prefix="recorded_",
)  # fmt: skip


@attrs.frozen
class RecordedSettings:
    """Where the answers come from, and where what was asked is written.

    world     world file of the simulated backend
    folder    folder of `requests.jsonl`
    rejected  requests of this stage, or with this text, are rejected
    busy      the endpoint asks those with this text to come back in an hour
    """

    world: str = "world.yaml"
    folder: str = ""
    rejected: str = ""
    busy: str = ""


class RecordedBackend:
    def __init__(self, settings: RecordedSettings, context: DriverContext) -> None:
        assert context.driver is not None
        self.settings = settings
        simulated = SimulatedSettings(world=Path(settings.world))
        self.backend = context.driver("backend", "simulated", simulated)
        self.capabilities = self.backend.capabilities
        self.name = context.model or "unnamed"

    def open_chat(self, role: str) -> Recorder:
        return Recorder(self.backend.open_chat(role), role, self.name, self.settings)

    def open_agent(self, role: str) -> Any:
        return self.backend.open_agent(role)

    def endpoint(self, role: str) -> str:
        return "recorded"

    def check(self, role: str) -> list[Any]:
        return []


@attrs.define
class Recorder:
    chat: Any
    role: str
    model: str
    settings: RecordedSettings

    def complete(self, request: ChatRequest) -> ChatReply:
        plain = attrs.asdict(attrs.evolve(request, deadline=None))
        line = json.dumps({"role": self.role, "model": self.model, **plain}, sort_keys=True) + "\n"
        with (Path(self.settings.folder) / "requests.jsonl").open("a", encoding="utf-8") as file:
            file.write(line)
        text = " ".join(message.text for message in request.messages)
        if self.settings.busy and self.settings.busy in text:
            raise PassingError("the endpoint is busy", retry_after=3600)
        if self.settings.rejected and (request.stage == self.settings.rejected or self.settings.rejected in text):
            raise RejectedRequest("the endpoint takes no such request.")
        reply: ChatReply = self.chat.complete(request)
        return reply


# A hook with a setting ----------------------------------------------------------------------------------------

silent = Manifest(
    kind="hook", name="silent", api=PLUGIN_API, summary="no proposals from the step that its setting names on",
    factory="probe_plugins:SilentHook", settings="probe_plugins:SilentSettings",
)  # fmt: skip


@attrs.frozen
class SilentSettings:
    """When to fall silent.

    since  the first step without proposals
    """

    since: int = 1


class SilentHook:
    def __init__(self, settings: SilentSettings, context: DriverContext) -> None:
        self.since = settings.since

    @hookimpl
    def skillopt_reflect(self, step: Any) -> tuple[()] | None:
        return () if step.number >= self.since else None
