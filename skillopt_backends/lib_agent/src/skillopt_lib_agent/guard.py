"""Who ends programs when this process is killed: a small one that notices that nobody talks to it any more.

Behind a wall nobody is needed: bubblewrap ends with whoever started it.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import weakref
from typing import Any

from attrs import define, field

_WATCH = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    number = int(line[1:])
    groups.add(number) if line[0] == "+" else groups.discard(number)
for number in groups:
    try:
        os.killpg(number, signal.SIGKILL)
    except OSError:
        pass
"""


@define(eq=False, weakref_slot=True)
class Guard:
    """Told of each program that begins and ends. Used from many threads at once."""

    _process: subprocess.Popen[bytes] | None = field(init=False, default=None)
    _lock: Any = field(init=False, factory=threading.Lock)

    def begins(self, number: int) -> None:
        """The program with this process group is to be ended when this process is."""
        if os.name == "posix":
            with self._lock:
                if self._process is None:
                    self._process = subprocess.Popen(
                        [sys.executable, "-IS", "-c", _WATCH],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                    weakref.finalize(self, _dismiss, self._process)
                self._tell(f"+{number}\n")

    def ended(self, number: int) -> None:
        """The program has ended; its number may soon be somebody else's."""
        with self._lock:
            if self._process is not None:
                self._tell(f"-{number}\n")

    def _tell(self, line: str) -> None:
        assert self._process is not None and self._process.stdin is not None
        with contextlib.suppress(OSError):  # it was ended from outside; programs go on without it
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()


def _dismiss(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(OSError):
        process.stdin.close()
    process.wait()
