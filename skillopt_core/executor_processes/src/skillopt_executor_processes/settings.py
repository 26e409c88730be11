"""The settings of the executor `processes`."""

from __future__ import annotations

from attrs import frozen
from skillopt_kernel.config.fields import at_least, option


@frozen
class ProcessesSettings:
    """What worker processes are given, and how long they live. How many there are is `env.workers`."""

    worker_variables: tuple[str, ...] = option((), "further environment variables that workers get, by name", free=True)
    worker_attempts: int = option(0, "attempts after which a worker is renewed; 0: never", at_least(0), free=True)
