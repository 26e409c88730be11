"""How often a call that failed is made again, and how long is waited before."""

from __future__ import annotations

import random

from attrs import frozen


@frozen
class RetryPolicy:
    """How long a passing failure is borne.

    tries         calls of the backend at most, the first included
    first_tries   the same while the endpoint has not answered once in this run: more likely its address is wrong
    first_wait    seconds: the wait before try n is drawn from 0 .. first_wait * 2^(n-2) ("full jitter":
                  Marc Brooker, Exponential Backoff and Jitter, AWS Architecture Blog, 2015)
    longest_wait  seconds: the most that is waited before one try, and the most that an endpoint may ask for
    """

    tries: int = 8
    first_tries: int = 4
    first_wait: float = 1.0
    longest_wait: float = 120.0

    def wait_before(self, next_try: int, retry_after: float | None) -> float | None:
        """Seconds to wait before `next_try` (from 2); `None` when the endpoint asks for too much."""
        jitter = random.uniform(0.0, min(self.longest_wait, self.first_wait * 2.0 ** (next_try - 2)))
        if retry_after is None:
            return jitter
        # What was asked for is the least; the jitter spreads those who were all told the same.
        return None if retry_after > self.longest_wait else retry_after + min(jitter, 1.0)
