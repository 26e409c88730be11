"""The models of one run: one caller a role, opened when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import attrs
from attrs import define, field

from skillopt_kernel.config.resolved import BackendChoice
from skillopt_kernel.config.schema import Price
from skillopt_kernel.errors import Cancelled, ConfigError
from skillopt_kernel.interfaces import Backend, DriverContext
from skillopt_kernel.models.asking import DEFAULT_MAX_TOKENS, ModelOptimizer
from skillopt_kernel.models.breaker import CircuitBreaker
from skillopt_kernel.models.calling import Emit, ModelCaller, ScopedCalls
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.models.limits import EndpointLimit
from skillopt_kernel.models.pricing import NO_PRICES, usd_of
from skillopt_kernel.records import Usage
from skillopt_kernel.store.redaction import Redactor

if TYPE_CHECKING:
    from skillopt_kernel.loop.budget import Account


@define(eq=False)
class Models:
    """The backends of one run by role ("optimizer", "target", "judge"). Used from many threads at once.

    limit   calls that one endpoint has at once, whichever roles ask it; effort: of the optimizer's calls
    max_rejections  requests in a row that a model may reject for the same reason before the run ends; 0: any number
    ledger  the record of their calls; there is one once `attach` was called
    limits  by endpoint; runs in one process may share them
    """

    _choices: Mapping[str, BackendChoice]
    _make_driver: Callable[..., Any]
    _context: Callable[[str, BackendChoice], DriverContext]
    _limit: int | None = None
    _redactor: Redactor = field(factory=Redactor)
    _effort: str | None = None
    _max_rejections: int = 5
    _prices: Mapping[str, Price] = NO_PRICES
    ledger: Ledger = field(init=False)
    _attached: dict[str, Any] = field(init=False, factory=dict)
    _backends: dict[str, Backend] = field(init=False, factory=dict)
    _callers: dict[tuple[str, str], ModelCaller] = field(init=False, factory=dict)
    limits: dict[str, EndpointLimit] = field(init=False, factory=dict)
    _ordinals: dict[str, Iterator[int]] = field(init=False, factory=dict)
    _lock: Any = field(init=False, factory=threading.RLock)
    _closed: bool = field(init=False, default=False)

    def attach(self, ledger: Ledger, emit: Emit, cancelled: threading.Event, account: Account | None = None) -> None:
        """Before the first call: where calls and events go, what ends waits, and where requests are reserved."""
        self.ledger, self._attached = ledger, {"emit": emit, "cancelled": cancelled, "account": account}

    def backend(self, role: str) -> Backend:
        """The backend of a role, made at the first request. Raises `ConfigError` when the role has none."""
        with self._lock:
            if self._closed:
                raise Cancelled("the run is over and its models are closed")
            if role not in self._choices:
                raise ConfigError(f"no backend is chosen for the {role}. Name one in `model.{role}_backend`.")
            if role not in self._backends:
                choice = self._choices[role]
                context = self._context(role, choice)
                self._backends[role] = self._make_driver(
                    "backend", choice.name, choice.settings, context, where=choice.where
                )
            return self._backends[role]

    def check_capabilities(self, role: str, kinds: frozenset[str] = frozenset({"chat"})) -> str:
        """The kind, "chat" or "agent", in which the role's backend does what `kinds` asks for; chat if both.

        Raises `ConfigError` naming the key when the backend cannot play the role so.
        """
        backend = self.backend(role)
        if common := backend.capabilities.get(role, frozenset()) & kinds:
            return "chat" if "chat" in common else "agent"
        plays = "; ".join(f"{name} as {' or '.join(sorted(can))}" for name, can in sorted(backend.capabilities.items()))
        raise ConfigError(
            f"the backend {self._choices[role].name!r} cannot play the {role} as {' or '.join(sorted(kinds))}. It can "
            f"play: {plays or 'no role'}. Name another backend in `model.{role}_backend`."
        )

    def caller(self, role: str, kind: str = "chat") -> ModelCaller:
        """The caller of a role as "chat" or "agent". Raises `ConfigError` when its backend cannot play it so."""
        with self._lock:
            backend = self.backend(role)
            if (role, kind) not in self._callers:
                self.check_capabilities(role, frozenset({kind}))
                getattr(backend, "enter", lambda _: None)(self.ledger.path.parent)
                address, name = backend.endpoint(role), self._choices[role].name
                limit = self.limits.setdefault(address, EndpointLimit(self._limit))
                self._callers[role, kind] = ModelCaller(
                    backend.open_chat(role) if kind == "chat" else backend.open_agent(role),
                    *(role, address, name, self._prices, limit),
                    breaker=CircuitBreaker(self._max_rejections),
                    ledger=self.ledger,
                    redactor=self._redactor,
                    **self._attached,
                )
            return self._callers[role, kind]

    def scoped(self, role: str, scope: str, epoch: int | None = None, step: int | None = None) -> ScopedCalls:
        """The calls of one attempt, counted from the first: asked again, it finds what was answered before.

        epoch and step: where their cost belongs.
        """
        return ScopedCalls(lambda kind: self.caller(role, kind), scope, epoch, step)

    def optimizer(
        self,
        stage: str,
        key: str = "",
        epoch: int | None = None,
        step: int | None = None,
        *,
        effort: str | None = None,
        max_tokens: int | None = None,
    ) -> ModelOptimizer:
        """The optimizer for one call site. `key` names the call within its stage (a minibatch, a merge).

        epoch and step say where the loop is. effort and max_tokens, where they are given, take the place of what
        its calls otherwise have.
        """
        moment = f"step_{step:04d}" if step is not None else f"epoch_{epoch:02d}" if epoch is not None else "run"
        scope = f"{moment}/{stage}/{key}"
        with self._lock:  # a site that asks again in this process asks anew, so its count goes on
            ordinals = self._ordinals.setdefault(scope, count())
        caller = self.caller("optimizer")
        calls = ScopedCalls(lambda _: caller, scope, epoch, step, ordinals)
        limit = max_tokens or DEFAULT_MAX_TOKENS
        return ModelOptimizer(calls.complete, stage, effort or self._effort, limit)

    def describe(self) -> dict[str, dict[str, str]]:
        """Backend, model and endpoint of each role, for the start of a run."""
        return {
            role: {"backend": choice.name, "model": self.model(role), "endpoint": self.backend(role).endpoint(role)}
            for role, choice in self._choices.items()
        }

    def model(self, role: str) -> str:
        """The model of a role, "" where not even its backend knows."""
        backend = self.backend(role)
        speaks = "chat" in backend.capabilities.get(role, frozenset())
        return self._choices[role].model or (backend.open_chat(role).model if speaks else "") or ""

    def sample(self, role: str) -> Usage:
        """What is going to be told of a role's calls, as of one that uses next to nothing; `None`: that is not told."""
        backend = self.backend(role)
        told = getattr(backend, "tells", ("tokens",))
        tokens, usd = 1 if "tokens" in told else None, 0.0 if "usd" in told else None
        usage = Usage(1, tokens, tokens, usd=usd)
        return attrs.evolve(usage, usd=usd_of(self.model(role), backend.endpoint(role), usage, self._prices))

    def waiting(self) -> str:
        """What the backends say of calls that are answered later; "" where they say nothing."""
        said = (getattr(backend, "waiting", str)() for backend in self._backends.values())
        return "\n".join(filter(None, said))

    def close(self) -> None:
        """Close every backend that has something to close. Calls in flight end within their own time."""
        with self._lock:
            self._closed = True
            for backend in self._backends.values():
                getattr(backend, "close", lambda: None)()
            self._backends.clear()
