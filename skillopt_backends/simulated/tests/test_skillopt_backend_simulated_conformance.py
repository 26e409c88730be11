"""The public conformance suite of backends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from skillopt_backend_simulated.settings import SimulatedSettings
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_testkit import BackendConformance

PROVOKED = {
    "rate limit": {"rate_limits": 1.0},
    "server error": {"server_errors": 1.0},
    "refused": {"refusals": 1.0},
    "empty": {"empty_replies": 1.0},
    "hang": {"latency": 3600.0},
}
"""Fault -> the settings with which every call meets it."""


class TestSimulated(BackendConformance):
    name = "simulated"
    faults = tuple(PROVOKED)
    retry_after = 0.01

    @pytest.fixture(autouse=True)
    def _where(self, world_path: Path) -> None:
        self.world = world_path

    @pytest.fixture
    def settings(self) -> SimulatedSettings:
        return SimulatedSettings(world=self.world)

    @contextmanager
    def provoked(self, fault: str, context: Any) -> Iterator[Any]:
        settings = SimulatedSettings(world=self.world, **PROVOKED[fault])
        yield make_driver(self.kind, self.name, settings, context)
