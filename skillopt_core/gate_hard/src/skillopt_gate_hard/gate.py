"""The mean hard score decides: how many of the tasks were passed."""

from __future__ import annotations

from typing import Any

from skillopt_kernel.gating import ScoreGate
from skillopt_kernel.interfaces import DriverContext


class HardGate(ScoreGate):
    """Gate score: `hard`, the mean over the tasks compared, 0..1."""

    name = "hard"

    def score(self, hard: float, soft: float, skill: str) -> float:
        return hard


def make_gate(settings: Any, context: DriverContext) -> HardGate:
    """The gate `hard`; it has no settings."""
    return HardGate()
