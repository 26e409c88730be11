"""The displays of a run, each an observer plugin: live, plain lines, JSON lines, or nothing."""

from __future__ import annotations

import json
import sys
from typing import Any

from skillopt_kernel.console import echo, error, texts
from skillopt_kernel.console.progress import Progress
from skillopt_kernel.hookspecs import OBSERVERS, hookimpl
from skillopt_kernel.store.events import Event


def display_for(*, quiet: bool, as_json: bool) -> Any:
    """The display that fits: what was asked for, else live on a terminal and plain lines elsewhere."""
    if quiet:
        return QuietDisplay()
    if as_json:
        return JsonDisplay()
    if sys.stdout.isatty():
        from skillopt_kernel.console.live import LiveDisplay

        return LiveDisplay()
    return PlainDisplay()


class _Display:
    """The base: `show` gets every event. `close` is called once at the end, however the run ended."""

    def show(self, event: Event) -> None:
        raise NotImplementedError

    def close(self) -> None:
        return None


def _observing(name: str) -> Any:
    def observer(self: _Display, event: Event) -> None:
        self.show(event)

    observer.__name__ = observer.__qualname__ = f"skillopt_{name}"
    return hookimpl(observer)


for _name in OBSERVERS:
    setattr(_Display, f"skillopt_{_name}", _observing(_name))


class QuietDisplay(_Display):
    """Nothing but failures."""

    def show(self, event: Event) -> None:
        return None


class JsonDisplay(_Display):
    """Each event as one line of JSON on standard output, as in `events.jsonl`."""

    def show(self, event: Event) -> None:
        echo(json.dumps(event.as_json(), ensure_ascii=True))


class PlainDisplay(_Display):
    """A line for each stage, step and epoch; the first few missing outcomes are named."""

    MISSING_NAMED = 5

    def __init__(self) -> None:
        self.progress = Progress()

    def show(self, event: Event) -> None:
        self.progress.take(event)
        if event.name == "run_started":
            for line in texts.start_lines(event.data):
                echo(line)
        elif event.name == "epoch_started":
            echo(f"Epoch {event.epoch} of {self.progress.total_epochs}")
        elif event.name == "stage_finished":
            echo(texts.stage_line(event))
        elif event.name == "step_finished":
            echo(texts.step_line(event))
        elif event.name == "epoch_finished":
            echo(f"{texts.epoch_line(event)}; {self.progress.spend()}")
        elif event.name == "attempt_finished" and "missing" in event.data:
            self._missing()

    def _missing(self) -> None:
        if self.progress.missing <= self.MISSING_NAMED:
            error(f"  no score for {self.progress.last_missing}")
        if self.progress.missing == self.MISSING_NAMED:
            error("  further attempts without a score are counted and not named here; results.jsonl names them")
