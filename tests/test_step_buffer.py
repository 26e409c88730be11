"""The step buffer within an epoch, and kept across epochs as configured."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.errors import StoppedEarly
from skillopt_kernel.loop.memory import KEPT_TOKENS, MemoryEntry, kept, memory_text
from skillopt_kernel.models.pricing import estimate_tokens
from skillopt_testkit.project import Project

import skillopt_core
from skillopt_core import Edit, Proposal, hookimpl


class Lab:
    """Proposes an edit that is no help in each step, and notes which steps it was told of."""

    def __init__(self) -> None:
        self.told: dict[int, list[int]] = {}

    @hookimpl
    def skillopt_reflect(self, step: Any) -> tuple[Proposal, ...]:
        self.told[step.number] = [int(number) for number in re.findall(r"^### Step (\d+): REJECT", step.memory, re.M)]
        return (Proposal("lesson", "failure", items=(Edit("append", f"- Idea {step.number}."),)),)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def train(project: Project, lab: Any, keep: bool, *plugins: tuple[str, Any], **options: Any) -> Any:
    overrides = ("train.num_epochs=3", f"gradient.keep_step_buffer={str(keep).lower()}", "evaluation.eval_test=false")
    config = project.folder / "config.yaml"
    return skillopt_core.train(
        config, overrides, out=project.folder / f"run-{keep}", plugins=[("lab", lab), *plugins], **options
    )


def test_it_speaks_of_the_epoch_alone_unless_it_is_kept(project: Project) -> None:
    forgetful, lasting = Lab(), Lab()
    train(project, forgetful, keep=False)
    train(project, lasting, keep=True)
    assert forgetful.told == {1: [], 2: [1], 3: [], 4: [3], 5: [], 6: [5]}
    assert lasting.told == {number: list(range(1, number)) for number in range(1, 7)}


def test_a_resumed_run_is_told_the_same(project: Project) -> None:
    class StopAfter:
        asked = threading.Event()

        @hookimpl
        def skillopt_step_started(self, event: Any) -> None:
            if event.step == 4:
                self.asked.set()

    first, second = Lab(), Lab()
    with pytest.raises(StoppedEarly):
        train(project, first, True, ("stop", StopAfter()), stop=StopAfter.asked)
    train(project, second, True)
    assert min(second.told) > 2
    assert first.told | second.told == {number: list(range(1, number)) for number in range(1, 7)}


def test_what_is_kept_is_bounded_and_the_newest() -> None:
    entries = [
        MemoryEntry(step=n, action="reject", n_total=8, n_fail=4, rejected_edits=(f"edit {n} " + "x" * 3000,))
        for n in range(1, 20)
    ]
    found = kept(entries)
    assert [entry.step for entry in found] == [15, 16, 17, 18, 19]
    assert estimate_tokens(memory_text(found)) <= KEPT_TOKENS + len(found)
    assert kept([]) == [] and kept(entries[:2]) == entries[:2]
    assert kept(entries, tokens=100) == []
