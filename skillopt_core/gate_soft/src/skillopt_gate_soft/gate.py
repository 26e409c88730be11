"""The mean soft score decides: partial credit counts, which helps where few tasks are passed whole."""

from __future__ import annotations

from typing import Any

from skillopt_kernel.gating import ScoreGate
from skillopt_kernel.interfaces import DriverContext


class SoftGate(ScoreGate):
    """Gate score: `soft`, the mean over the tasks compared, 0..1."""

    name = "soft"

    def score(self, hard: float, soft: float, skill: str) -> float:
        return soft


def make_gate(settings: Any, context: DriverContext) -> SoftGate:
    """The gate `soft`; it has no settings."""
    return SoftGate()
