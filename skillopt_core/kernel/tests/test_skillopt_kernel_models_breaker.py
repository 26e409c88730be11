"""Rejected requests: some are borne, and too many in a row for one reason are a matter of the model."""

from __future__ import annotations

from typing import Any

import pytest
from skillopt_kernel.errors import PassingError, PermanentError, RejectedRequest
from skillopt_kernel.models.breaker import CircuitBreaker
from skillopt_kernel.models.calling import ModelCaller
from skillopt_kernel.models.retrying import RetryPolicy
from skillopt_kernel_models_probes import ScriptedModel, ask, in_threads


def no(text: str = "invalid. Change it.") -> RejectedRequest:
    return RejectedRequest(text)


def outcomes(script: list[Any], texts: list[str], limit: int = 3) -> list[str]:
    """What becomes of one request after the other: "done", or the kind of its error."""
    policy = RetryPolicy(tries=1, first_tries=1)
    made = ModelCaller(ScriptedModel(*script), role="target", breaker=CircuitBreaker(limit), policy=policy)
    found = []
    for text in texts:
        try:
            found.append(made.complete(ask(text)).text)
        except (PermanentError, RejectedRequest, PassingError) as error:
            found.append(type(error).__name__)
    return found


@pytest.mark.parametrize(
    ("script", "texts", "found"),
    [
        ([no()], "abcd", ["RejectedRequest", "RejectedRequest", "PermanentError", "PermanentError"]),
        ([no()], "aaab", ["RejectedRequest"] * 4),
        ([no(), no(), "done", no(), no()], "abcde", ["RejectedRequest"] * 2 + ["done"] + ["RejectedRequest"] * 2),
        ([no(), no(), no("another reason"), no("another reason")], "abcd", ["RejectedRequest"] * 4),
        ([no("image 7 of r-12ab"), no("image 31 of r-99"), no("image 2 of r-1")], "abc",
         ["RejectedRequest"] * 2 + ["PermanentError"]),
        ([no(), PassingError("busy"), no(), no()], "abcd",
         ["RejectedRequest", "PassingError", "RejectedRequest", "PermanentError"]),
    ],
    ids=["in a row", "one request again and again", "an answer between", "different reasons", "different numbers",
         "a passing failure between"],
)  # fmt: skip
def test_what_ends_a_run(script: list[Any], texts: str, found: list[str]) -> None:
    assert outcomes(script, list(texts)) == found


def test_no_limit() -> None:
    assert outcomes([no()], [f"text {number}" for number in range(40)], limit=0) == ["RejectedRequest"] * 40


def test_the_sentence_says_what_happened_and_what_to_do() -> None:
    made = ModelCaller(ScriptedModel(no()), role="optimizer", breaker=CircuitBreaker(2))
    with pytest.raises(RejectedRequest):
        made.complete(ask("a"))
    with pytest.raises(PermanentError) as caught:
        made.complete(ask("b"))
    for part in ("invalid. Change it. So ended", "last 2 requests to the optimizer", "model.max_rejections"):
        assert part in str(caught.value)


def test_threads_count_together() -> None:
    made = ModelCaller(ScriptedModel(no(), seconds=0.01), role="target", breaker=CircuitBreaker(5))
    texts = iter(range(100))
    kinds = [type(error).__name__ for error in in_threads(12, lambda: made.complete(ask(f"{next(texts)}")))]
    assert sorted(kinds) == ["PermanentError"] * 8 + ["RejectedRequest"] * 4
