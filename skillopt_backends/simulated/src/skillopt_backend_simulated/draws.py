"""Every random draw of a simulated model: a hash of names, never a shared generator.

A generator gives its numbers in the order in which threads come to it. A hash gives the same number for the
same names whoever asks first, so that any order of threads ends in the same replies.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Sequence
from typing import TypeVar

from attrs import field, frozen

T = TypeVar("T")


@frozen
class Draws:
    """Draws that depend on `names` and on nothing else. `under` gives the draws of a narrower name."""

    names: tuple[str | int, ...]

    def under(self, *names: str | int) -> Draws:
        return Draws(self.names + names)

    def unit(self, *names: str | int) -> float:
        """A number from 0 (included) to 1 (not included), uniform over names."""
        text = "\x1f".join(str(name) for name in self.names + names)
        number = int.from_bytes(hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest(), "big")
        return (number >> 11) / 2**53

    def happens(self, chance: float, *names: str | int) -> bool:
        """Whether something of this chance happens. 0 never does, 1 always does."""
        return self.unit(*names) < chance

    def pick(self, choices: Sequence[T], *names: str | int) -> T:
        """One of `choices`, which must not be empty, each equally likely."""
        return choices[int(self.unit(*names) * len(choices))]

    def lognormal(self, mean: float, sigma: float, *names: str | int) -> float:
        """A lognormal number of that mean; `sigma` is the deviation of its logarithm (Box and Muller, 1958)."""
        if mean <= 0.0:
            return 0.0
        radius = math.sqrt(-2.0 * math.log(1.0 - self.unit(*names, "radius")))
        normal = radius * math.cos(2.0 * math.pi * self.unit(*names, "angle"))
        return math.exp(math.log(mean) - sigma * sigma / 2.0 + sigma * normal)


@frozen
class Ordinals:
    """How often each key has been asked for: 0 for the first time. Safe to share between threads."""

    _seen: dict[str, int] = field(factory=dict, init=False)
    _lock: threading.Lock = field(factory=threading.Lock, init=False)

    def next(self, key: str) -> int:
        with self._lock:
            ordinal = self._seen.get(key, 0)
            self._seen[key] = ordinal + 1
        return ordinal
