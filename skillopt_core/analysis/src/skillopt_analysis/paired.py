"""The difference of two skills over the same tasks, with its interval."""

from __future__ import annotations

from collections.abc import Mapping

from skillopt_kernel.statistics import Interval, bootstrap_interval


def paired_bootstrap(
    first: Mapping[str, float],
    second: Mapping[str, float],
    *,
    seed: int = 0,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> Interval | None:
    """The percentile bootstrap of the mean difference `second - first`, resampling the tasks that both have.

    Each mapping holds one number a task, by task id. Pairing takes the difficulty of the tasks out of the
    comparison: Miller, "Adding error bars to evals", arXiv 2411.00640. `None` for fewer than two tasks.
    """
    differences = [second[task] - value for task, value in first.items() if task in second]
    return bootstrap_interval(differences, seed=seed, confidence=confidence, resamples=resamples)
