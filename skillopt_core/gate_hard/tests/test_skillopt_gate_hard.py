"""The gate `hard`."""

import logging

from skillopt_gate_hard import plugin
from skillopt_gate_hard.gate import make_gate
from skillopt_kernel.gating import ScoreGate
from skillopt_kernel.interfaces import DriverContext


def test_the_hard_mean_decides_alone() -> None:
    gate = make_gate(None, DriverContext(logging.getLogger("test")))
    assert isinstance(gate, ScoreGate)
    assert gate.name == plugin.name == "hard"
    assert gate.score(hard=0.8, soft=0.4, skill="") == 0.8


def test_the_manifest_names_what_there_is() -> None:
    assert (plugin.kind, plugin.settings) == ("gate", "")
    assert plugin.factory == f"{make_gate.__module__}:{make_gate.__name__}"
