"""What a program has started that may have left its process group, as shells of agents do."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

from attrs import frozen

_PROC = Path("/proc")


@frozen
class Descendant:
    """One process. `started`, in ticks since boot, tells it from a later one with the same number."""

    number: int
    started: str

    def kill(self) -> None:
        """End it, if it is still the same."""
        with contextlib.suppress(OSError):
            if _stat(self.number)[1] == self.started:
                os.kill(self.number, signal.SIGKILL)


def descendants(number: int) -> set[Descendant]:
    """All that a process has started, and what those have, as far as the system tells: Linux does."""
    children: dict[int, list[Descendant]] = {}
    for each in _numbers():
        with contextlib.suppress(OSError):  # it has ended meanwhile
            parent, started = _stat(each)
            children.setdefault(parent, []).append(Descendant(each, started))
    found: set[Descendant] = set()
    waiting = [number]
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child.number)
    return found


def _numbers() -> list[int]:
    try:
        return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()]
    except OSError:
        return []


def _stat(number: int) -> tuple[int, str]:
    """Parent and time of the start. The program's name, in brackets, may hold anything, brackets included."""
    fields = (_PROC / str(number) / "stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    return int(fields[1]), fields[19]
