"""What ends a run whose every request is rejected, and lets one go on in which only some are."""

from __future__ import annotations

import re
import threading

from skillopt_kernel.errors import PermanentError, RejectedRequest

_VARYING = re.compile(r"\b[\w-]*\d[\w-]*\b")
"""Words with a digit: numbers of requests, positions and sizes, in which two equal reasons differ."""


class CircuitBreaker:
    """Counts the requests that one model rejected in a row, for many threads at once.

    `limit` different requests that are rejected for the same reason, with none answered between, are no matter of
    the single request: the model cannot be asked so at all. 0: there is no limit.
    """

    def __init__(self, limit: int = 5) -> None:
        self._limit = limit
        self._reason = ""
        self._requests: set[str] = set()
        self._lock = threading.Lock()

    def answered(self) -> None:
        """A request was answered: what was rejected before it was a matter of the single request."""
        with self._lock:
            self._requests.clear()

    def rejected(self, error: RejectedRequest, role: str, digest: str) -> None:
        """Count the request of this digest. Raises `PermanentError` when it is one too many."""
        reason = _VARYING.sub("#", str(error))
        with self._lock:
            if reason != self._reason:
                self._reason = reason
                self._requests.clear()
            self._requests.add(digest)
            count = len(self._requests)
        if self._limit and count >= self._limit:
            raise PermanentError(
                f"{str(error).rstrip('.')}. So ended the last {count} requests to the {role}, and none was answered "
                f"between them. What is finished is kept: put it right and run the same command again. How many are "
                f"borne says `model.max_rejections`."
            ) from error
