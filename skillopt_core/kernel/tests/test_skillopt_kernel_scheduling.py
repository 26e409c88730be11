"""What schedulers share."""

from typing import Any

import pytest
from skillopt_kernel.scheduling import LearningRateSettings, decay_position


def test_the_position_runs_from_one_share_to_one() -> None:
    assert [decay_position(step, 4) for step in (1, 2, 3, 4, 5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert decay_position(1, 1) == decay_position(3, 0) == 0.0


def test_defaults() -> None:
    assert LearningRateSettings() == LearningRateSettings(learning_rate=4, min_learning_rate=2)


@pytest.mark.parametrize("value", [-1, 2.5, "4", True, None])
def test_a_range_that_is_no_count_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"optimizer\.learning_rate must be a whole number"):
        LearningRateSettings(learning_rate=value)
    with pytest.raises(ValueError, match=r"optimizer\.min_learning_rate"):
        LearningRateSettings(min_learning_rate=value)
