"""What the run's process and a worker say to each other: pairs of a word and pickled bytes, over two pipes.

To the worker: "job" (an `AttemptJob`), "reply" (to a call: whether it succeeded, and the reply or the error), "stop"
(end soon), "end" (after this job). From the worker: "ready" or "unfit" (an error), "call" (role and request),
"attempted" (the attempt, before it is scored), "result" (an `AttemptResult`).

The payload is pickled by itself, so that what cannot be pickled, or not be read on the other side, spoils one
message and not the pipe.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
from typing import Any, BinaryIO

from attrs import define, field
from skillopt_kernel import errors

LOST = (EOFError, OSError, ValueError, pickle.UnpicklingError)
"""What reading or writing raises once the other side is gone. `ValueError`: the file was closed here."""


class NotSendable(Exception):
    """Something cannot be pickled; nothing was written."""


def packed(content: Any) -> bytes:
    """Raises `NotSendable`, whatever an object raises when it is pickled."""
    try:
        return pickle.dumps(content)
    except Exception as error:
        raise NotSendable(f"{type(error).__name__}: {error}") from error


@define(eq=False)
class Pipe:
    """Both directions of one side. `send` may be called from any thread, `receive` from one."""

    _incoming: BinaryIO
    _outgoing: BinaryIO
    _lock: Any = field(init=False, factory=threading.Lock)

    def send(self, word: str, content: Any = None) -> None:
        """Raises `NotSendable` before anything is written, and one of `LOST` once nobody reads."""
        self.send_packed(word, packed(content))

    def send_packed(self, word: str, content: bytes) -> None:
        message = pickle.dumps((word, content))
        with self._lock:
            self._outgoing.write(message)
            self._outgoing.flush()

    def receive(self) -> tuple[str, bytes]:
        """The next message. Raises one of `LOST` at the end."""
        word, content = pickle.load(self._incoming)
        return word, content

    def close(self) -> None:
        """Close both directions, once the other side has ended."""
        for file in (self._outgoing, self._incoming):
            with contextlib.suppress(OSError):  # what was still to be written has no reader
                file.close()


def portable(error: BaseException) -> BaseException:
    """The error itself if the other side can read it; else the nearest error of the kernel with the same text."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # whatever an author's class raises when it is pickled
        pass
    text = str(error)
    for kind in type(error).__mro__:
        if kind.__module__ == errors.__name__ and kind not in (errors.HookError, errors.UnusableReply):
            made: BaseException = kind(text)
            return made
    return errors.EnvironmentFailure(f"{type(error).__name__}: {text}")
