"""The setting of the gate `mixed`."""

from __future__ import annotations

from typing import Any

import attrs
from attrs import field, frozen


def _weight(_: object, attribute: attrs.Attribute[float], value: Any) -> None:
    # NaN fails the comparison too.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(
            f"evaluation.{attribute.name} must be a number from 0 (hard only) to 1 (soft only), not {value!r}"
        )


@frozen
class MixedGateSettings:
    """How the two scores are mixed.

    gate_mixed_weight  the weight of the soft score, 0..1; the hard score has the rest
    """

    gate_mixed_weight: float = field(default=0.5, validator=_weight)
