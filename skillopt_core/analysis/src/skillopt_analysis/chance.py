"""How far from chance a count is. Standard library only."""

from __future__ import annotations

import math
from collections.abc import Sequence


def tails(successes: int, chances: Sequence[float]) -> tuple[float, float]:
    """P(X >= successes) and P(X <= successes), where X counts independent events with these `chances`.

    The Poisson binomial distribution, by convolution: Hodges and Le Cam, "The Poisson approximation to the Poisson
    binomial distribution", Annals of Mathematical Statistics 31 (1960), define it. Equal chances are the binomial.
    """
    distribution = [1.0]
    for chance in chances:
        grown = [0.0] * (len(distribution) + 1)
        for count, probability in enumerate(distribution):
            grown[count] += probability * (1 - chance)
            grown[count + 1] += probability * chance
        distribution = grown
    return math.fsum(distribution[successes:]), math.fsum(distribution[: successes + 1])
