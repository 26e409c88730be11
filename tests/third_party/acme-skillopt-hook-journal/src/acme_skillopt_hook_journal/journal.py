"""Observers write the diary; a wrapper around the gate counts its decisions in the run's saved state."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

from attrs import frozen
from skillopt_kernel import DriverContext, Event, GateDecision, Run, hookimpl


@frozen
class JournalSettings:
    """Where the diary is.

    file  the Markdown file, made anew when a run begins
    """

    file: str = "journal.md"


class Journal:
    def __init__(self, settings: JournalSettings, context: DriverContext) -> None:
        self.path = Path(settings.file)

    @hookimpl
    def skillopt_run_started(self, event: Event) -> None:
        if not event.data.get("resumed"):
            self.path.write_text(f"# {event.run}\n\n", encoding="utf-8")

    @hookimpl
    def skillopt_step_finished(self, event: Event) -> None:
        self._write(f"- step {event.step}: {event.data['action']}")

    @hookimpl
    def skillopt_run_finished(self, event: Event) -> None:
        self._write(f"\nThe end: {event.data['status']}.")

    @hookimpl(wrapper=True)
    def skillopt_gate(self, run: Run) -> Generator[None, GateDecision, GateDecision]:
        decision = yield
        counts = run.state["journal"]
        counts[decision.action] = counts.get(decision.action, 0) + 1
        return decision

    def _write(self, line: str) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
