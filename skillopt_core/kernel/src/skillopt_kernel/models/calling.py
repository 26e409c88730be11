"""The one path of every model call: limit, retries, redaction, ledger, event. Backends do none of these."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import attrs
from attrs import define, frozen

from skillopt_kernel.errors import ModelError, PassingError
from skillopt_kernel.interfaces import ChatModel
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.models.limits import EndpointLimit
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Message, TextPart
from skillopt_kernel.records import ToolCall, Usage
from skillopt_kernel.store.redaction import Redactor

Emit = Callable[[dict[str, Any]], None]
Price = Callable[[str, str, Usage], float | None]


@frozen
class RetryPolicy:
    """How long a passing failure is borne.

    tries         calls of the backend at most, the first included
    first_wait    seconds: the wait before try n is drawn from 0 .. first_wait * 2^(n-2) ("full jitter":
                  Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015)
    longest_wait  seconds: the most that is waited before one try, and the most that an endpoint may ask for
    seconds       after so long no further try is begun
    """

    tries: int = 8
    first_wait: float = 1.0
    longest_wait: float = 120.0
    seconds: float = 1800.0

    def wait_before(self, next_try: int, retry_after: float | None) -> float | None:
        """Seconds to wait before `next_try` (from 2); `None` when the endpoint asks for too much."""
        jitter = random.uniform(0.0, min(self.longest_wait, self.first_wait * 2.0 ** (next_try - 2)))
        if retry_after is None:
            return jitter
        # What was asked for is the least; the jitter spreads those who were all told the same.
        return None if retry_after > self.longest_wait else retry_after + min(jitter, 1.0)


@define
class _Call:
    """What is known of one call while it is made."""

    began: float
    tries: int = 0
    waited: float = 0.0
    not_before: float = 0.0


class ModelCaller:
    """Calls one model in one role. Used from many threads at once.

    emit       gets the data of one `model_called` event after each call, failed ones included
    cancelled  once set, waits end at once with `Cancelled`, and no further try begins
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        role: str,
        address: str = "",
        limit: EndpointLimit | None = None,
        policy: RetryPolicy | None = None,
        ledger: Ledger | None = None,
        emit: Emit | None = None,
        redactor: Redactor | None = None,
        cancelled: threading.Event | None = None,
        price: Price | None = None,
    ) -> None:
        self._model, self._role, self._address = model, role, address
        self._limit = limit or EndpointLimit()
        self._policy = policy or RetryPolicy()
        self._ledger = ledger or Ledger()
        self._emit, self._redactor, self._cancelled = emit, redactor, cancelled
        self._price = price

    @property
    def model(self) -> str:
        return self._model.model

    def complete(self, request: ChatRequest) -> ChatReply:
        """The reply to a request, after retries of what passes.

        Raises what the backend raises, with credentials taken out of the text: `PermanentError` and
        `ContextTooLong` at once, `PassingError` when tries or time are used up (`CallTimeout` when it was the
        time); `Cancelled` when the run is stopped.
        """
        call = _Call(began=time.monotonic())
        try:
            reply = self._with_retries(self._redact_request(request), call)
        except BaseException as error:
            if isinstance(error, ModelError):
                error.args = (self._describe(error, call),)
            self._account(request, call, None, error)
            raise
        reply = self._clean(reply)
        self._account(request, call, reply, None)
        return reply

    def _with_retries(self, request: ChatRequest, call: _Call) -> ChatReply:
        import stamina

        # stamina says whether and how often; the endpoint's limit says when: there every caller waits together,
        # and a wait ends when the run is stopped. So stamina itself is told to wait 0 seconds.
        def again(error: Exception) -> bool | float:
            return 0.0 if isinstance(error, PassingError) and self._plan_retry(error, request, call) else False

        _keep_retries_off_the_terminal()
        for attempt in stamina.retry_context(again, attempts=self._policy.tries, timeout=self._policy.seconds):
            with (
                attempt,
                self._limit.slot(
                    not_before=call.not_before, deadline=request.deadline, cancelled=self._cancelled
                ) as waited,
            ):
                call.tries, call.waited = attempt.num, call.waited + waited
                return self._model.complete(request)
        raise AssertionError("unreachable: the last try returns or raises")

    def _plan_retry(self, error: PassingError, request: ChatRequest, call: _Call) -> bool:
        """Set when the next try may begin; false when it would be too late, or has been stopped."""
        if error.retry_after:
            self._limit.pause(min(error.retry_after, self._policy.longest_wait))
        wait = self._policy.wait_before(call.tries + 1, error.retry_after)
        if wait is None or (self._cancelled is not None and self._cancelled.is_set()):
            return False
        call.not_before = time.monotonic() + wait
        return request.deadline is None or call.not_before < request.deadline

    def _account(self, request: ChatRequest, call: _Call, reply: ChatReply | None, error: BaseException | None) -> None:
        seconds = time.monotonic() - call.began
        usage = None if reply is None else reply.usage
        if usage is not None and self._price is not None:
            usage = attrs.evolve(usage, usd=self._price(self.model, self._address, usage))
        if call.tries:  # a call that was given up before it was made is none
            self._ledger.record(self._role, request.stage, usage, seconds)
        if self._emit is None:
            return
        data: dict[str, Any] = {
            "role": self._role,
            "stage": request.stage,
            "model": self.model,
            "seconds": round(seconds, 3),
            "tries": call.tries,
            "waited": round(call.waited, 3),
            "ok": error is None,
        }
        if error is not None:
            data["error"] = type(error).__name__
        if reply is not None and usage is not None:
            data["finish"] = reply.finish
            for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "reasoning_tokens", "usd"):
                value = getattr(usage, name)
                if value is not None:
                    data[name] = value
        self._emit(data)

    def _describe(self, error: ModelError, call: _Call) -> str:
        """The error's text without credentials, and what was done about it."""
        text = str(error)
        if isinstance(error, PassingError):
            if error.retry_after and error.retry_after > self._policy.longest_wait:
                text += (
                    f"; it asks to wait {error.retry_after:.0f} s, and a call waits {self._policy.longest_wait:.0f} s "
                    "at most"
                )
            elif call.tries > 1:
                text += f" (tried {call.tries} times, {call.waited:.0f} s of waiting)"
        return self._redactor.diagnostics(text) if self._redactor else text

    # What goes out and what comes back -----------------------------------------------------------------------

    def _text(self, text: str) -> str:
        # Half of a surrogate pair (a reply cut inside an emoji) cannot be written to a file as UTF-8.
        if not text.isascii():
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return self._redactor.redact(text) if self._redactor else text

    def _redact_request(self, request: ChatRequest) -> ChatRequest:
        return attrs.evolve(request, messages=tuple(self._redact_message(message) for message in request.messages))

    def _redact_message(self, message: Message) -> Message:
        if isinstance(message.content, str):
            content: Any = self._text(message.content)
        else:
            content = tuple(
                TextPart(self._text(part.text)) if isinstance(part, TextPart) else part for part in message.content
            )
        return attrs.evolve(message, content=content, tool_calls=self._redact_calls(message.tool_calls))

    def _redact_calls(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        return tuple(attrs.evolve(call, arguments=self._text(call.arguments)) for call in calls)

    def _clean(self, reply: ChatReply) -> ChatReply:
        return attrs.evolve(
            reply,
            text=self._text(reply.text),
            reasoning=self._text(reply.reasoning),
            tool_calls=self._redact_calls(reply.tool_calls),
        )


def _keep_retries_off_the_terminal() -> None:
    # stamina logs each retry as a warning; without any handler Python would write it to stderr, into the live
    # display. An application that wants these lines attaches its own handler and gets them.
    logger = logging.getLogger("stamina")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
