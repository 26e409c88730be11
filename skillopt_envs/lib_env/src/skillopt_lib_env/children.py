"""A program run as a child: bounded in time and output, and ended with all that it has begun."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Literal

from attrs import define, field, frozen
from skillopt_kernel.config.fields import is_secret_name

_AFTER_ITS_END = 5.0
"""Seconds to wait for the last of a child's output, whose pipe something that left its group may still hold."""


@frozen
class ChildResult:
    """How a child ended.

    code    exit code, negative for a signal (on Windows as the system gives it)
    ended   "": by itself; "time": it ran out of time; "output": it wrote too much. In both cases it was killed.
    """

    code: int
    output: bytes
    errors: bytes
    ended: Literal["", "time", "output"] = ""


def plain_environment(keep: Sequence[str] = ()) -> dict[str, str]:
    """This process's environment without what is named like a credential, but for those that `keep` names."""
    return {name: value for name, value in os.environ.items() if name in keep or not is_secret_name(name)}


def run_child(
    command: Sequence[str],
    sent: bytes,
    *,
    seconds: float,
    most: int,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> ChildResult:
    """Run a program without a shell, send it `sent`, and wait for its end, at most `seconds`.

    most: bytes that it may write to its output, and as much to its errors. It leads a process group of its own, which
    is killed when it has ended, for whatever reason. Raises `OSError` when it cannot be started.
    """
    child = subprocess.Popen(
        list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder,
        env=None if environment is None else dict(environment), start_new_session=True,
    )  # fmt: skip
    assert child.stdin and child.stdout and child.stderr
    output, errors = _Kept(child, child.stdout, most), _Kept(child, child.stderr, most)
    threads = [
        threading.Thread(target=work, args=arguments, daemon=True)
        for work, arguments in ((output.read, ()), (errors.read, ()), (_send, (child.stdin, sent)))
    ]
    for thread in threads:
        thread.start()
    ended: Literal["", "time", "output"] = ""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        ended = "time"
    finally:
        kill_group(child)
        child.wait()
    for thread in threads:
        thread.join(_AFTER_ITS_END)
    return ChildResult(
        child.returncode, bytes(output.held), bytes(errors.held), "output" if output.over or errors.over else ended
    )


def kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that leads a process group, and what it has begun; where there are no groups, the child."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()


@define(eq=False)
class _Kept:
    """What one pipe brought, up to a limit; a child that writes more is killed."""

    child: subprocess.Popen[bytes]
    pipe: IO[bytes]
    most: int
    held: bytearray = field(factory=bytearray)
    over: bool = False

    def read(self) -> None:
        with self.pipe, contextlib.suppress(ValueError, OSError):
            while part := self.pipe.read1(65_536):  # type: ignore[attr-defined]
                self.held += part[: self.most - len(self.held)]
                if len(self.held) >= self.most and not self.over:
                    self.over = True
                    kill_group(self.child)


def _send(pipe: IO[bytes], sent: bytes) -> None:
    # A program need not read what it is sent.
    with contextlib.suppress(OSError):
        pipe.write(sent)
    with contextlib.suppress(OSError):
        pipe.close()
