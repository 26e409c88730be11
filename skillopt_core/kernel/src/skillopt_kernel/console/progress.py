"""What a display knows of a run: numbers taken from events, for whichever display draws them."""

from __future__ import annotations

from typing import Any

from attrs import define, field

from skillopt_kernel.console import score
from skillopt_kernel.store.events import Event


@define
class Progress:
    """The run so far. `take` is called with every event, in order."""

    total_epochs: int = 0
    total_steps: int = 0
    epoch: int = 0
    step: int = 0
    stage: str = ""
    stage_total: int = 0
    stage_done: int = 0
    attempts: int = 0
    missing: int = 0
    running: int = 0
    current: float | None = None
    best: float | None = None
    skill_tokens: int | None = None
    calls: int = 0
    failed_calls: int = 0
    tokens: int = 0
    untold_calls: int = 0
    usd: float | None = None
    last_missing: str = ""
    lines: list[str] = field(factory=list)

    def take(self, event: Event) -> None:
        handler = getattr(self, f"_{event.name}", None)
        if handler is not None:
            handler(event, event.data)

    def _run_started(self, event: Event, data: Any) -> None:
        self.total_epochs, self.total_steps = data["epochs"], data["total_steps"]
        self.step = data["step_done"]

    def _epoch_started(self, event: Event, data: Any) -> None:
        self.epoch = event.epoch or 0

    def _step_started(self, event: Event, data: Any) -> None:
        self.step, self.skill_tokens = event.step or 0, data.get("skill_tokens")

    def _step_finished(self, event: Event, data: Any) -> None:
        self.current, self.best = data["current_score"], data["best_score"]

    def _stage_started(self, event: Event, data: Any) -> None:
        self.stage, self.stage_total, self.stage_done = event.stage or "", data.get("tasks", 0), 0

    def _attempt_started(self, event: Event, data: Any) -> None:
        self.running += 1

    def _attempt_finished(self, event: Event, data: Any) -> None:
        self.running -= 1
        self.attempts += 1
        self.stage_done += 1
        if "missing" in data:
            self.missing += 1
            self.last_missing = f"{data['task']}: {data['missing']}: {data.get('message', '')}"

    def _model_called(self, event: Event, data: Any) -> None:
        self.calls += 1
        if not data["ok"]:
            self.failed_calls += 1
        elif data.get("prompt_tokens") is None and data.get("completion_tokens") is None:
            self.untold_calls += 1
        self.tokens += (data.get("prompt_tokens") or 0) + (data.get("completion_tokens") or 0)
        if data.get("usd") is not None:
            self.usd = (self.usd or 0.0) + data["usd"]

    def spend(self) -> str:
        """Tokens and dollars as far as they are known; what is unknown is said, never shown as zero."""
        if not self.calls:
            return "nothing yet"
        known = f"{self.tokens:,} tokens" if self.calls > self.untold_calls + self.failed_calls else "tokens unknown"
        if self.untold_calls and self.tokens:
            known += f" ({self.untold_calls} calls did not tell)"
        dollars = "" if self.usd is None else f", ${self.usd:.4f}"
        failed = f", {self.failed_calls} failed" if self.failed_calls else ""
        return f"{self.calls:,} calls{failed}, {known}{dollars}"

    def where(self) -> str:
        return f"epoch {self.epoch}/{self.total_epochs}  step {self.step}/{self.total_steps}"

    def scores(self) -> str:
        return f"score {score(self.current)}  best {score(self.best)}"
