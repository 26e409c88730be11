"""The limit of an endpoint: it falls when the endpoint is overloaded and rises while it serves."""

from __future__ import annotations

import time
from typing import Any

from skillopt_kernel.errors import CallTimeout, PassingError
from skillopt_kernel.models.calling import ModelCaller
from skillopt_kernel.models.limits import EndpointLimit
from skillopt_kernel_models_probes import ScriptedModel, ask


def test_what_is_an_overload() -> None:
    assert PassingError("busy", retry_after=1.0).overloaded
    assert PassingError("busy", overloaded=True).overloaded
    assert CallTimeout("no reply").overloaded
    assert not PassingError("the connection was lost").overloaded


def test_it_falls_once_for_all_calls_that_were_under_way() -> None:
    limit = EndpointLimit(20)
    began = time.monotonic()
    for _ in range(6):
        limit.overloaded(began)
    assert limit.at_once == 14
    limit.overloaded(time.monotonic())
    assert limit.at_once == 9
    limit.overloaded(0.0)
    assert limit.at_once == 9, "a call that never began tells nothing"


def test_it_is_never_below_one_nor_above_what_was_configured() -> None:
    limit = EndpointLimit(4)
    for _ in range(20):
        limit.overloaded(time.monotonic())
    assert limit.at_once == 1
    for _ in range(500):
        limit.served()
    assert limit.at_once == 4


def test_it_rises_by_one_a_round_and_carefully_where_it_was_too_much() -> None:
    limit = EndpointLimit(30)
    limit.overloaded(time.monotonic())
    for _ in range(22):  # a round of 21 and a little
        limit.served()
    assert limit.at_once == 22
    rounds = [0]
    while limit.at_once != 30 and rounds[0] < 1000:
        limit.served()
        rounds[0] += 1
    plain = sum(range(22, 30))
    assert rounds[0] > plain + 8 * 29, "the last step takes ten rounds"


def test_no_limit_is_none_until_the_endpoint_sets_one() -> None:
    limit = EndpointLimit()
    limit.served()
    assert limit.at_once is None
    limit.overloaded(time.monotonic())
    assert limit.at_once == 1


def test_the_events_tell_the_limit() -> None:
    events: list[dict[str, Any]] = []
    model = ScriptedModel("done", PassingError("busy", 0.01), "done")
    made = ModelCaller(model, role="target", limit=EndpointLimit(10), emit=events.append)
    made.complete(ask())
    made.complete(ask())
    assert [event["at_once"] for event in events] == [10, 7]
