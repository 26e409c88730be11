"""The one path of every model call: ledger, limit, retries, redaction, event. Backends do none of these."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import attrs
from attrs import define, field, frozen

from skillopt_kernel.errors import ModelError, PassingError, Pending, RejectedRequest
from skillopt_kernel.interfaces import AgentHarness, ChatModel
from skillopt_kernel.models.breaker import CircuitBreaker
from skillopt_kernel.models.call_text import Asked, CallKey, describe_request
from skillopt_kernel.models.ledger import OK, TOLD, CallRecord, Ledger
from skillopt_kernel.models.limits import EndpointLimit
from skillopt_kernel.models.pricing import NO_PRICES, Expense, most_prompt_tokens, usd_of
from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, ChatRequest
from skillopt_kernel.models.retrying import RetryPolicy
from skillopt_kernel.records import Usage
from skillopt_kernel.store.files import now
from skillopt_kernel.store.redaction import Redactor

if TYPE_CHECKING:
    from skillopt_kernel.config.schema import Price
    from skillopt_kernel.loop.budget import Account

Emit = Callable[[dict[str, Any]], None]

NOBODYS = CallKey()
"""Of a call that belongs to no scope."""

# stamina logs each retry as a warning; without any handler Python would write it to stderr, into the live display.
logging.getLogger("stamina").addHandler(logging.NullHandler())


@define
class _Call:
    """What is known of one call while it is made."""

    stage: str
    key: CallKey
    asked: Asked
    started: str = field(factory=now)
    began: float = field(factory=time.monotonic)
    tries: int = 0
    waited: float = 0.0
    not_before: float = 0.0
    asked_at: float = 0.0
    reserved: dict[int, bool] = field(factory=dict)
    warnings: list[str] = field(factory=list)


@frozen(eq=False)
class ModelCaller:
    """Calls one model in one role. Used from many threads at once.

    address    where the model is; its prices are looked up by it, after those given. backend: the name of its driver
    account    where each request is reserved; `None`: nowhere
    emit       gets the data of one `model_called` event after each call, failed ones included
    breaker    counts what the model rejects
    cancelled  once set, waits end at once with `Cancelled`, and no further try begins
    """

    _model: ChatModel | AgentHarness
    _role: str
    _address: str = ""
    _backend: str = ""
    _prices: Mapping[str, Price] = NO_PRICES
    _limit: EndpointLimit = field(factory=EndpointLimit)
    _policy: RetryPolicy = field(factory=RetryPolicy)
    _breaker: CircuitBreaker = field(factory=CircuitBreaker)
    _ledger: Ledger = field(factory=Ledger)
    _account: Account | None = None
    _emit: Emit = lambda _: None
    _redactor: Redactor = field(factory=Redactor)
    _cancelled: threading.Event = field(factory=threading.Event)

    def complete(self, request: ChatRequest, key: CallKey = NOBODYS) -> ChatReply:
        """The reply to a request, after retries of what passes; from the ledger where `key` has it already.

        Raises what the backend raises, with credentials taken out of the text: `PermanentError`, `ContextTooLong`
        and `RejectedRequest` at once (`PermanentError` after too many of these), `PassingError` when tries or time
        are used up (`CallTimeout` when it was the time); `Cancelled` when the run is stopped; `RunDirectoryError`
        when the ledger cannot be written.
        """
        return self._answer(request, key)  # type: ignore[no-any-return]

    def run(self, job: AgentJob, key: CallKey = NOBODYS) -> AgentResult:
        """The result of an agent's job, collected files included; otherwise as `complete`."""
        return self._answer(job, key)  # type: ignore[no-any-return]

    def _answer(self, request: ChatRequest | AgentJob, key: CallKey) -> Any:
        redact = self._redactor.redact_value
        request, key = redact(request), redact(key)
        call = _Call(request.stage, key, describe_request(self._backend, self._model.model, request))
        served = self._ledger.find(self._role, key, call.asked)
        if served is not None:
            return redact(served)
        try:
            reply = redact(self._with_retries(request, call))
        except BaseException as error:
            if isinstance(error, ModelError):
                error.args = (self._describe(error, call),)
            self._commit(call, None, error)
            if isinstance(error, RejectedRequest):
                self._breaker.rejected(error, self._role, call.asked.digest)
            raise
        self._breaker.answered()
        self._commit(call, reply, None)
        return reply

    def _with_retries(self, request: Any, call: _Call) -> Any:
        # stamina says whether and how often; the endpoint's limit says when: there every caller waits together,
        # and a wait ends when the run is stopped. So stamina itself is told to wait 0 seconds.
        def again(error: Exception) -> bool | float:
            return 0.0 if isinstance(error, PassingError) and self._plan_retry(error, request, call) else False

        make: Any = getattr(self._model, "run" if isinstance(request, AgentJob) else "complete")

        def once() -> Any:
            with self._limit.slot(call.not_before, request.deadline, self._cancelled) as waited:
                call.waited += waited
                reply = self._try(make, request, call)
                self._limit.served()
                return reply

        try:
            return once()
        except PassingError as error:
            if self._policy.tries == 1 or again(error) is False:
                raise
        import stamina  # most calls succeed at once

        return stamina.retry(on=again, attempts=self._policy.tries - 1, timeout=None)(once)()

    def _try(self, make: Callable[[Any], Any], request: Any, call: _Call) -> Any:
        """One request: reserved, sent and settled."""

        def send() -> Any:
            call.tries, call.asked_at = call.tries + 1, time.monotonic()
            return make(request)

        if self._account is None:
            return send()
        limits = (getattr(request, "max_tokens", None), getattr(self._model, "max_tokens", None))
        limit = min((limit for limit in limits if limit), default=None)
        asked = (self._role, call.stage, most_prompt_tokens(request), limit, self._usd, request.deadline)
        return self._account.spend(Expense(*asked, call.reserved, call.warnings), send)

    def _usd(self, usage: Usage) -> float | None:
        return usd_of(self._model.model, self._address, usage, self._prices)

    def _plan_retry(self, error: PassingError, request: Any, call: _Call) -> bool:
        """Set when the next try may begin; false when it would be too late, or has been stopped."""
        if error.overloaded:
            self._limit.overloaded(call.asked_at)
        wait = self._policy.wait_before(call.tries + 1, error.retry_after)
        if error.retry_after:
            self._limit.answered = True
            if wait is not None:
                self._limit.pause(error.retry_after)
        unanswered = call.tries >= self._policy.first_tries and not self._limit.answered
        if wait is None or unanswered or self._cancelled.is_set():
            return False
        call.not_before = time.monotonic() + wait
        return request.deadline is None or call.not_before < request.deadline

    def _describe(self, error: ModelError, call: _Call) -> str:
        """The error's text without credentials, and what was done about it."""
        text = str(error)
        if isinstance(error, PassingError):
            longest = self._policy.longest_wait
            if error.retry_after and error.retry_after > longest:
                text += f"; it asks to wait {error.retry_after:.0f} s, and a call waits {longest:.0f} s at most"
            elif call.tries > 1:
                text += f" (tried {call.tries} times, {call.waited:.0f} s of waiting)"
        return self._redactor.diagnostics(text)

    def _commit(self, call: _Call, reply: ChatReply | AgentResult | None, error: BaseException | None) -> None:
        """Commit the call to the ledger, and then tell observers."""
        if not call.tries or isinstance(error, Pending):  # it was given up before it was made, or has not ended
            self._ledger.settle(call.reserved)
            return
        usage = reply.usage if reply is not None else getattr(error, "usage", None)
        if usage is not None and (usd := self._usd(usage)) != usage.usd:
            usage = attrs.evolve(usage, usd=usd)
        about: dict[str, Any] = {"role": self._role, "stage": call.stage, "model": self._model.model}
        about |= {"seconds": round(time.monotonic() - call.began, 3), "tries": call.tries}
        status = OK if error is None else type(error).__name__
        said = None if error is None else self._redactor.diagnostics(str(error))
        known: dict[str, Any] = {"status": status, "error": said, "usage": usage, "reserved": call.reserved}
        record = CallRecord(**about, **known, backend=self._backend, started=call.started)
        number = self._ledger.record(record, call.key, call.asked, reply)
        data = {"call": number, "epoch": call.key.epoch, "step": call.key.step, **about}
        data |= {"waited": round(call.waited, 3), "at_once": self._limit.at_once, "ok": error is None}
        if isinstance(reply, ChatReply):
            data["finish"] = reply.finish
        if error is not None:
            data["error"] = status
        if call.warnings:
            data["warning"] = "; ".join(call.warnings)
        self._emit(data | {name: value for name in TOLD if (value := getattr(usage, name, None)) is not None})


@define(eq=False)
class ScopedCalls:
    """The calls of one scope, for one thread at a time: each has the next ordinal.

    open  gives the caller when a call is made, for "chat" or "agent"
    """

    _open: Callable[[str], ModelCaller]
    _scope: str
    _epoch: int | None = None
    _step: int | None = None
    _ordinals: Iterator[int] = field(factory=count)

    def complete(self, request: ChatRequest) -> ChatReply:
        """As `ModelCaller.complete`."""
        key = self._key()
        return self._open("chat").complete(attrs.evolve(request, call=f"{key.scope}/{key.ordinal}"), key)

    def run(self, job: AgentJob) -> AgentResult:
        """As `ModelCaller.run`."""
        return self._open("agent").run(job, self._key())

    def _key(self) -> CallKey:
        return CallKey(self._scope, next(self._ordinals), self._epoch, self._step)
