"""The models of one run: one caller a role, opened when it is first needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from skillopt_kernel.errors import Cancelled, ConfigError
from skillopt_kernel.interfaces import Backend, DriverContext
from skillopt_kernel.models.asking import ModelOptimizer
from skillopt_kernel.models.calling import Emit, ModelCaller, RetryPolicy
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.models.limits import EndpointLimits
from skillopt_kernel.models.pricing import usd_of
from skillopt_kernel.store.redaction import Redactor


class Choice(Protocol):
    """What the configuration chose for one role: the backend's name and settings, the model, and in which line."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def settings(self) -> Any: ...
    @property
    def where(self) -> str: ...


class Models:
    """The backends of one run by role ("optimizer", "target", "judge"). Used from many threads at once."""

    def __init__(
        self,
        choices: Mapping[str, Choice],
        make_driver: Callable[..., Any],
        *,
        context: Callable[[str, Choice], DriverContext],
        limit: int | None = None,
        policy: RetryPolicy | None = None,
        ledger: Ledger | None = None,
        emit: Emit | None = None,
        redactor: Redactor | None = None,
        cancelled: threading.Event | None = None,
        effort: str | None = None,
    ) -> None:
        self._choices, self._make_driver, self._context = dict(choices), make_driver, context
        self.ledger = ledger or Ledger()
        self.limits = EndpointLimits(limit)
        self._policy, self._emit, self._redactor = policy, emit, redactor
        self._cancelled, self._effort = cancelled, effort
        self._backends: dict[str, Backend] = {}
        self._callers: dict[str, ModelCaller] = {}
        self._lock = threading.RLock()
        self._closed = False

    def attach(self, emit: Emit, cancelled: threading.Event) -> None:
        """Before the first call: where events go, and what ends waits. Making a backend needs neither."""
        self._emit, self._cancelled = emit, cancelled

    def backend(self, role: str) -> Backend:
        """The backend of a role, made at the first request. Raises `ConfigError` when the role has none."""
        with self._lock:
            if self._closed:
                raise Cancelled("the run is over and its models are closed")
            if role not in self._backends:
                choice = self._choice(role)
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
        able = backend.capabilities.get(role, frozenset())
        common = able & kinds
        if common:
            return "chat" if "chat" in common else "agent"
        plays = "; ".join(f"{name} as {' or '.join(sorted(can))}" for name, can in sorted(backend.capabilities.items()))
        raise ConfigError(
            f"the backend {self._choice(role).name!r} cannot play the {role} as {' or '.join(sorted(kinds))}. It can "
            f"play: {plays or 'no role'}. Name another backend in `model.{role}_backend`."
        )

    def chat(self, role: str) -> ModelCaller:
        """The caller of a role. Raises `ConfigError` when its backend cannot play the role as a chat model."""
        with self._lock:
            if role not in self._callers:
                self.check_capabilities(role)
                backend = self.backend(role)
                address = backend.endpoint(role)
                self._callers[role] = ModelCaller(
                    backend.open_chat(role),
                    role=role,
                    address=address,
                    limit=self.limits.of(address),
                    policy=self._policy,
                    ledger=self.ledger,
                    emit=self._emit,
                    redactor=self._redactor,
                    cancelled=self._cancelled,
                    price=usd_of,
                )
            return self._callers[role]

    def optimizer(self, stage: str, key: str = "") -> ModelOptimizer:
        """The optimizer for one call site. `key` names the call within its stage (a minibatch, a merge)."""
        complete = self.chat("optimizer").complete
        return ModelOptimizer(complete, stage=stage, effort=self._effort, redactor=self._redactor)

    def describe(self) -> dict[str, dict[str, str]]:
        """Backend, model and endpoint of each role, for the start of a run."""
        return {
            role: {
                "backend": choice.name,
                "model": self.chat(role).model if role in self._callers else choice.model or "",
                "endpoint": self.backend(role).endpoint(role),
            }
            for role, choice in self._choices.items()
        }

    def close(self) -> None:
        """Close every backend that has something to close. Calls in flight end within their own time."""
        with self._lock:
            self._closed = True
            backends, self._backends, self._callers = list(self._backends.values()), {}, {}
        for backend in backends:
            close = getattr(backend, "close", None)
            if close is not None:
                close()

    def _choice(self, role: str) -> Choice:
        if role not in self._choices:
            raise ConfigError(f"no backend is chosen for the {role}. Name one in `model.{role}_backend`.")
        return self._choices[role]
