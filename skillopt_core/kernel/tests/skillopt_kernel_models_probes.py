"""A chat model for the kernel's own tests: a driver like any other, whose replies and errors come in order."""

from __future__ import annotations

import threading
import time

from skillopt_kernel.models.requests import ChatReply, ChatRequest, Message
from skillopt_kernel.records import Usage

USAGE = Usage(calls=1, prompt_tokens=10, completion_tokens=5)


class ScriptedModel:
    """Answers with the script's next entry, the last one for ever: a reply, a text, or an error to raise.

    requests: what it was sent. peak: how many calls it had at once. seconds: how long one takes.
    """

    model = "scripted"

    def __init__(self, *script: ChatReply | str | Exception, seconds: float = 0.0) -> None:
        self._script: list[ChatReply | str | Exception] = list(script)
        self._lock = threading.Lock()
        self._seconds, self._running = seconds, 0
        self.requests: list[ChatRequest] = []
        self.times: list[float] = []
        self.peak = 0

    def complete(self, request: ChatRequest) -> ChatReply:
        with self._lock:
            self.requests.append(request)
            self.times.append(time.monotonic())
            self._running += 1
            self.peak = max(self.peak, self._running)
            entry = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        try:
            if self._seconds:
                time.sleep(self._seconds)
            if isinstance(entry, Exception):
                raise entry
            return reply(entry) if isinstance(entry, str) else entry
        finally:
            with self._lock:
                self._running -= 1

    @property
    def texts(self) -> list[list[str]]:
        return [[message.text for message in request.messages] for request in self.requests]


def reply(text: str, usage: Usage = USAGE, **options: object) -> ChatReply:
    return ChatReply(text, usage=usage, **{"finish": "stop" if text.strip() else "empty", **options})  # type: ignore[arg-type]


def ask(text: str = "hello", *, stage: str = "rollout", deadline: float | None = None) -> ChatRequest:
    return ChatRequest((Message("user", text),), stage=stage, deadline=deadline)


def in_threads(count: int, work: object) -> list[object]:
    """`work()` in `count` threads at once; the results, or the exceptions, in order."""
    from concurrent.futures import ThreadPoolExecutor

    def one(_: int) -> object:
        try:
            return work()  # type: ignore[operator]
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))
