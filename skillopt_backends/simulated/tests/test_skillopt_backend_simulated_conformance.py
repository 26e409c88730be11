"""The public conformance suite of backends."""

from __future__ import annotations

from pathlib import Path

import pytest
from skillopt_backend_simulated.settings import SimulatedSettings
from skillopt_testkit import BackendConformance


class TestSimulated(BackendConformance):
    name = "simulated"

    @pytest.fixture
    def settings(self, world_path: Path) -> SimulatedSettings:
        return SimulatedSettings(world=world_path)
