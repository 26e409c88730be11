"""What every backend must keep."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
from skillopt_kernel.errors import (
    CallTimeout,
    ContextTooLong,
    ModelError,
    PassingError,
    PermanentError,
    RefusedError,
    RejectedRequest,
)
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Message

from skillopt_testkit.conformance.common import PluginConformance

ROLES = ("optimizer", "target", "judge")
FINDINGS = ("ok", "warning", "error")


FAULTS: Mapping[str, type[ModelError] | None] = {
    "rejected": RejectedRequest,
    "wrong key": PermanentError,
    "unknown model": PermanentError,
    "rate limit": PassingError,
    "server error": PassingError,
    "too long": ContextTooLong,
    "refused": RefusedError,
    "empty": None,
    "malformed": PassingError,
    "hang": CallTimeout,
    "dropped": PassingError,
    "killed child": PassingError,
    "missing program": PermanentError,
    "old program": PermanentError,
    "not signed in": PermanentError,
}
"""What may go wrong with a call -> the error that a backend makes of it; `None`: a reply with the finish "empty"."""

SECONDS_OF_HANG = 1.0
"""How long a call may take that meets the fault "hang"."""


class BackendConformance(PluginConformance):
    """Subclass it, give `name`, and in the fixture `settings` whatever lets it answer without spending.

    role      the role that is tried; messages: a request that it answers with text
    parallel  how many calls are made at the same time
    faults    the names in `FAULTS` that can befall it; then `provoked` says how
    retry_after  the seconds that the fault "rate limit" asks to wait; `None`: they are not handed on
    secret    a credential that the settings hold, which no error may show
    """

    kind = "backend"
    role: ClassVar[str] = "target"
    messages: ClassVar[Sequence[Message]] = (Message("system", "Answer in few words."), Message("user", "Say ok."))
    parallel: ClassVar[int] = 8
    faults: ClassVar[Sequence[str]] = ()
    retry_after: ClassVar[float | None] = 3.0
    secret: ClassVar[str] = ""

    @contextmanager
    def provoked(self, fault: str, context: Any) -> Iterator[Any]:
        """A driver whose calls meet the fault: "rate limit" asks to wait `retry_after` seconds, "hang" never ends."""
        raise NotImplementedError(f"say how to provoke {fault!r}")
        yield

    def request(self, **options: Any) -> ChatRequest:
        return ChatRequest(tuple(self.messages), **{"stage": "rollout", **options})

    def test_says_what_it_can_play(self, driver: Any) -> None:
        assert driver.capabilities, "it can play no role"
        assert set(driver.capabilities) <= set(ROLES)
        for role, ways in driver.capabilities.items():
            assert ways, f"{role}: no way to play it"
            assert set(ways) <= {"chat", "agent"}

    def test_names_its_endpoint(self, driver: Any) -> None:
        for role in driver.capabilities:
            endpoint = driver.endpoint(role)
            assert endpoint.strip()
            assert endpoint == driver.endpoint(role)

    def test_checks_say_what_they_found(self, driver: Any) -> None:
        for role in driver.capabilities:
            for severity, sentence in driver.check(role):
                assert severity in FINDINGS
                assert sentence.strip()

    def test_opening_a_model_is_cheap(self, driver: Any) -> None:
        began = time.monotonic()
        for role, ways in driver.capabilities.items():
            model = driver.open_chat(role) if "chat" in ways else driver.open_agent(role)
            assert isinstance(model.model, str)
        assert time.monotonic() - began < 5, "a client opens at its first call, not before"

    def test_answers_with_text_and_usage(self, driver: Any) -> None:
        self.chat_only(driver)
        reply = driver.open_chat(self.role).complete(self.request())
        assert isinstance(reply, ChatReply), f"complete() returned a {type(reply).__name__}"
        assert reply.text.strip()
        assert reply.finish == "stop"
        assert reply.usage.calls == 1

    def test_many_calls_at_once(self, driver: Any) -> None:
        self.chat_only(driver)
        model = driver.open_chat(self.role)
        with ThreadPoolExecutor(self.parallel) as pool:
            replies = list(pool.map(lambda _: model.complete(self.request()), range(self.parallel * 2)))
        assert all(isinstance(reply, ChatReply) and reply.text.strip() for reply in replies)

    def test_every_stage_is_answered(self, driver: Any) -> None:
        self.chat_only(driver)
        for stage in ("rollout", "selection", "test", "a_stage_of_a_plugin", ""):
            assert driver.open_chat(self.role).complete(self.request(stage=stage)).text.strip()

    def test_errors_are_typed(self, driver: Any) -> None:
        """A request that nothing can answer ends in a reply or in an error that the kernel understands."""
        self.chat_only(driver)
        for request in (ChatRequest(()), ChatRequest((Message("user", ""),)), self.request(max_tokens=1)):
            try:
                assert isinstance(driver.open_chat(self.role).complete(request), ChatReply)
            except ModelError as error:
                assert str(error).strip()

    @pytest.mark.parametrize("fault", FAULTS)
    def test_a_fault_is_told_apart(self, fault: str, context: Any) -> None:
        if fault not in self.faults:
            pytest.skip("it cannot befall this backend")
        deadline = time.monotonic() + SECONDS_OF_HANG if fault == "hang" else None
        with self.provoked(fault, context) as driver:
            kind = FAULTS[fault]
            if kind is None:
                assert self.ending(driver) == "empty"
                return
            with pytest.raises(kind) as caught:
                self.ending(driver, deadline)
        assert len(str(caught.value).split()) > 3, "an error is a sentence"
        if fault == "rate limit":
            error = caught.value
            assert isinstance(error, PassingError) and error.retry_after == self.retry_after and error.overloaded
        if self.secret:
            shown = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
            assert self.secret not in shown, "the error shows the credential"

    def ending(self, driver: Any, deadline: float | None = None) -> str:
        """How one call ended: the `finish` of its reply."""
        return str(driver.open_chat(self.role).complete(self.request(deadline=deadline)).finish)

    def chat_only(self, driver: Any) -> None:
        if "chat" not in driver.capabilities.get(self.role, ()):
            pytest.skip(f"it does not play the {self.role} as a chat model")
