"""The gate `soft`."""

import logging

from skillopt_gate_soft import plugin
from skillopt_gate_soft.gate import make_gate
from skillopt_kernel.gating import ScoreGate
from skillopt_kernel.interfaces import DriverContext


def test_the_soft_mean_decides_alone() -> None:
    gate = make_gate(None, DriverContext(logging.getLogger("test")))
    assert isinstance(gate, ScoreGate)
    assert gate.name == plugin.name == "soft"
    assert gate.score(hard=0.8, soft=0.4, skill="") == 0.4


def test_the_manifest_names_what_there_is() -> None:
    assert (plugin.kind, plugin.settings) == ("gate", "")
    assert plugin.factory == f"{make_gate.__module__}:{make_gate.__name__}"
