"""The gate `mixed`."""

import logging
import math
from typing import Any

import pytest
from skillopt_gate_mixed import plugin
from skillopt_gate_mixed.gate import MixedGate, make_gate
from skillopt_gate_mixed.settings import MixedGateSettings
from skillopt_kernel.interfaces import DriverContext


def gate(weight: float) -> MixedGate:
    return make_gate(MixedGateSettings(weight), DriverContext(logging.getLogger("test")))


@pytest.mark.parametrize(("weight", "score"), [(0.25, 0.7), (0.5, 0.6), (0, 0.8), (1, 0.4)])
def test_the_weight_is_the_soft_scores(weight: float, score: float) -> None:
    assert gate(weight).score(hard=0.8, soft=0.4, skill="") == pytest.approx(score, abs=1e-15)


def test_the_default_weighs_both_alike() -> None:
    assert MixedGateSettings().gate_mixed_weight == 0.5


@pytest.mark.parametrize("weight", [-2, 5, 1.0001, math.nan, math.inf, "0.5", None, True])
def test_a_weight_outside_its_range_is_an_error(weight: Any) -> None:
    with pytest.raises(ValueError, match=r"evaluation\.gate_mixed_weight must be a number from 0 .* to 1"):
        MixedGateSettings(weight)


def test_the_manifest_names_what_there_is() -> None:
    assert (plugin.kind, plugin.name, plugin.section) == ("gate", "mixed", "evaluation")
    assert plugin.factory == f"{make_gate.__module__}:{make_gate.__name__}"
    assert plugin.settings == f"{MixedGateSettings.__module__}:{MixedGateSettings.__name__}"
