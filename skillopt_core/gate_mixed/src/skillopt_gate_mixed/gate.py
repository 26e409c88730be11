"""A weighted mix of the mean hard and the mean soft score decides."""

from __future__ import annotations

from skillopt_kernel.gating import ScoreGate
from skillopt_kernel.interfaces import DriverContext

from skillopt_gate_mixed.settings import MixedGateSettings


class MixedGate(ScoreGate):
    """Gate score: `(1 - w) * hard + w * soft`, 0..1, where `w` is `gate_mixed_weight`."""

    name = "mixed"

    def __init__(self, weight: float) -> None:
        self.weight = weight

    def score(self, hard: float, soft: float, skill: str) -> float:
        return (1 - self.weight) * hard + self.weight * soft


def make_gate(settings: MixedGateSettings, context: DriverContext) -> MixedGate:
    """The gate `mixed` with the weight that the settings give."""
    return MixedGate(settings.gate_mixed_weight)
