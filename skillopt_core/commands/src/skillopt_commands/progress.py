"""What a display knows of a run: numbers taken from events, for whichever display draws them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from attrs import define
from skillopt_kernel.store.events import Event


@define
class Progress:
    """The run so far. `take` is called with every event, in order; another run begins at nothing."""

    total_epochs: int = 0
    total_steps: int = 0
    steps_done: int = 0
    epoch: int = 0
    step: int = 0
    stage: str = "starting"
    attempts: int = 0
    running: int = 0
    missing: int = 0
    current: float | None = None
    best: float | None = None
    skill_tokens: int | None = None
    calls: int = 0
    failed_calls: int = 0
    unknown_calls: int = 0
    tokens: int = 0
    usd: float | None = None

    def take(self, event: Event) -> None:
        """Take in one event."""
        data = event.data
        if event.name == "run_started":
            for each in attrs.fields(Progress):
                setattr(self, each.name, each.default)
            self.total_epochs, self.total_steps = data["epochs"], data["total_steps"]
            self.step = self.steps_done = data["step_done"]
            self.current, self.best = data.get("current_score"), data.get("best_score")
        elif event.name == "epoch_started":
            self.epoch = event.epoch or 0
        elif event.name == "step_started":
            self.step, self.skill_tokens = event.step or 0, data["skill_tokens"]
        elif event.name == "step_finished":
            self.steps_done, self.current, self.best = self.step, data["current_score"], data["best_score"]
        elif event.name == "stage_started":
            of_tasks = f" of {data['tasks']} tasks" if "tasks" in data else ""
            self.stage = f"{event.stage}{of_tasks}"
        elif event.name == "attempt_started":
            self.running += 1
        elif event.name == "attempt_finished":
            self.running -= 1
            self.attempts += 1
            self.missing += "missing" in data
        elif event.name == "model_called":
            self._count_call(data)

    def _count_call(self, data: Any) -> None:
        self.calls += 1
        if not data["ok"]:
            self.failed_calls += 1
        elif data.get("prompt_tokens") is None and data.get("completion_tokens") is None:
            self.unknown_calls += 1
        self.tokens += (data.get("prompt_tokens") or 0) + (data.get("completion_tokens") or 0)
        if data.get("usd") is not None:
            self.usd = (self.usd or 0.0) + data["usd"]

    def spend(self) -> str:
        """The calls so far with their tokens and dollars."""
        if not self.calls:
            return "no model call"
        known = self.calls > self.unknown_calls + self.failed_calls
        text = told_spend(self.calls, self.tokens if known else None, self.unknown_calls, self.usd)
        return text + (f"; {self.failed_calls} failed" if self.failed_calls else "")


def told_spend(calls: int, tokens: int | None, unknown_calls: int, usd: float | None) -> str:
    """Calls, tokens and dollars as far as they are known; what is unknown is said, never shown as zero."""
    known = "tokens unknown" if tokens is None else f"{tokens:,} tokens"
    unknown = f" ({unknown_calls} calls did not tell)" if unknown_calls and tokens is not None else ""
    dollars = "" if usd is None else f", ${usd:.4f}"
    return f"{calls:,} model calls, {known}{unknown}{dollars}"


def spent_text(token_summary: Mapping[str, Any]) -> str:
    """Calls, tokens and dollars of a `token_summary`."""
    total = token_summary.get("_total", {})
    return told_spend(total.get("calls", 0), total.get("total_tokens"), total.get("unknown_calls", 0), total.get("usd"))
