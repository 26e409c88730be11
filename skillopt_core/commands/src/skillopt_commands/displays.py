"""The displays of a run, each an observer plugin: live, plain lines, JSON lines, or nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from skillopt_kernel.console import echo, error
from skillopt_kernel.hookspecs import OBSERVERS, hookimpl
from skillopt_kernel.store.events import Event

from skillopt_commands import texts
from skillopt_commands.progress import Progress


class Display:
    """The base, which shows nothing: `show` gets every event, `close` ends it, however the run ended."""

    def show(self, event: Event) -> None:
        return None

    def close(self) -> None:
        return None


def _observing(name: str) -> Any:
    def observer(self: Display, event: Event) -> None:
        self.show(event)

    observer.__name__ = observer.__qualname__ = f"skillopt_{name}"
    return hookimpl(observer)


for _name in OBSERVERS:
    setattr(Display, f"skillopt_{_name}", _observing(_name))


class JsonDisplay(Display):
    """Each event as one line of JSON on standard output, as in `events.jsonl`."""

    def show(self, event: Event) -> None:
        echo(json.dumps(event.as_json(), ensure_ascii=True))


class PlainDisplay(Display):
    """A line for each stage, step and epoch, begun with `name` if there is one; first missing outcomes are named."""

    MISSING_NAMED = 5

    def __init__(self, *, training: bool = True, name: str = "") -> None:
        self.progress = Progress()
        self._training = training
        self._name = name

    def show(self, event: Event) -> None:
        self.progress.take(event)
        for line in texts.event_lines(event, training=self._training):
            self._say(line)
        if event.name == "stage_finished":
            self._say(texts.stage_line(event))
        elif event.name == "epoch_finished":
            self._say(f"  {self.progress.spend()}")
        elif event.name == "attempt_finished" and "missing" in event.data:
            self._name_missing(event.data)

    def _name_missing(self, data: Mapping[str, Any]) -> None:
        if self.progress.missing <= self.MISSING_NAMED:
            self._say(f"  no score for {data['task']}: {data['missing']}: {data.get('message', '')}", error)
        if self.progress.missing == self.MISSING_NAMED:
            further = "  further attempts without a score are counted and not named here; results.jsonl names them"
            self._say(further, error)

    def _say(self, line: str, write: Callable[[str], None] = echo) -> None:
        if line or not self._name:
            write(f"[{self._name}] {line}" if self._name else line)
