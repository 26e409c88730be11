"""What every hook plugin must keep."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from skillopt_kernel.config.schema import HooksSettings
from skillopt_kernel.hookspecs import OBSERVERS
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.assembly import Assembled, assemble
from skillopt_kernel.plugins.registry import HOOKS
from skillopt_kernel.store.events import Event

from skillopt_testkit.conformance.common import PluginConformance

_COMMON = {"task": "task-1", "skill_hash": "2cf24dba5fb0a30e", "sample": 0, "purpose": "train"}
EVENT_DATA: Mapping[str, Mapping[str, Any]] = {
    "run_started": {"resumed": False, "models": {}, "splits": {"train": 4, "selection": 4, "test": 0}, "folder": "run"},
    "run_finished": {"status": "finished", "best_step": 1, "best_selection_hard": 0.5, "scores": {}},
    "run_failed": {"error": "PermanentError", "message": "no key"},
    "epoch_started": {"steps": 2},
    "epoch_finished": {"accepts": 1, "rejects": 1, "skips": 0, "best_score": 0.5},
    "step_started": {"tasks": 4, "skill_hash": "2cf24dba5fb0a30e", "skill_tokens": 12},
    "step_finished": {"action": "reject", "hard": None, "soft": None, "score": None, "best_score": 0.5},
    "stage_started": {"tasks": 4},
    "stage_finished": {"seconds": 0.1},
    "attempt_started": _COMMON,
    "attempt_finished": {**_COMMON, "hard": 1.0, "soft": 1.0, "seconds": 0.1},
    "model_called": {"role": "target", "stage": "rollout", "model": "m", "seconds": 0.1, "tries": 1, "ok": True},
    "checkpoint_saved": {"file": "runtime_state.json"},
}  # fmt: skip
"""One example of each event, as far as an observer may rely on it."""


def examples() -> list[Event]:
    """One event of each name, in the order of a run."""
    events = []
    for seq, name in enumerate((*EVENT_DATA, "attempt_finished"), start=1):
        data = EVENT_DATA[name]
        if seq > len(EVENT_DATA):  # an outcome that is missing has no scores
            data = {**_COMMON, "missing": "endpoint", "message": "no reply", "seconds": 0.1}
        stage = "rollout" if name.startswith("stage") else None
        events.append(Event(name, seq, "2026-01-01T00:00:00.000Z", "run", 1, 1, stage, data))
    return events


class HooksConformance(PluginConformance):
    """Subclass it and give `name`.

    skills  texts on which a score bonus is tried
    """

    kind = "hook"
    skills: ClassVar[tuple[str, ...]] = ("", "# Title\n\n- A rule.\n", "x" * 20_000, "日本語 🙂\n")

    @pytest.fixture
    def context(self, tmp_path: Path) -> DriverContext:
        return DriverContext(logger=logging.getLogger("skillopt.testkit"), seed=7, folder=tmp_path)

    @pytest.fixture
    def assembled(self, settings: Any, context: DriverContext, tmp_path: Path) -> Assembled:
        """The plugin alone, assembled as a run does it, its observers strict."""
        return self.assemble(settings, context, tmp_path)

    def assemble(self, settings: Any, context: DriverContext, folder: Path) -> Assembled:
        given = {} if settings is None else {self.name: settings}
        return assemble((), HooksSettings(plugins=(self.name,), settings=given, strict=True), folder, context=context)

    def test_implements_a_hook(self, assembled: Assembled) -> None:
        asked = [hook for hook in HOOKS if assembled.asked(hook)]
        assert asked, "it implements no hook"

    def test_can_be_assembled_twice(self, settings: Any, context: DriverContext, tmp_path: Path) -> None:
        first = self.assemble(settings, context, tmp_path)
        second = self.assemble(settings, context, tmp_path)
        assert [first.asked(hook) for hook in HOOKS] == [second.asked(hook) for hook in HOOKS]

    def test_observers_bear_every_event(self, assembled: Assembled) -> None:
        assert set(EVENT_DATA) == set(OBSERVERS)
        for event in examples():
            assembled.calls.observe(event)
        assert assembled.calls.observer_errors == 0

    def test_observers_leave_the_event_as_it_is(self, assembled: Assembled) -> None:
        for event in examples():
            before = json.dumps(event.as_json(), sort_keys=True)
            assembled.calls.observe(event)
            assert json.dumps(event.as_json(), sort_keys=True) == before

    def test_a_score_bonus_depends_on_the_text_only(self, assembled: Assembled) -> None:
        if not assembled.asked("skillopt_score_bonus"):
            pytest.skip("it gives no score bonus")
        for skill in self.skills:
            bonus = assembled.calls.score_bonus(None, skill)  # type: ignore[arg-type]
            assert math.isfinite(bonus)
            assert bonus == assembled.calls.score_bonus(None, skill)  # type: ignore[arg-type]
