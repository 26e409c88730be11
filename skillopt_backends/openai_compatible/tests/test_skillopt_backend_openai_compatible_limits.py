"""A server that serves only so many calls at once: found out, used as far as it goes, and no call lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from skillopt_kernel.models.calling import ModelCaller
from skillopt_kernel.models.limits import EndpointLimit
from skillopt_kernel.models.requests import ChatRequest, Message
from skillopt_kernel.models.retrying import RetryPolicy
from skillopt_lib_chat.model import OpenAIChatModel
from skillopt_lib_chat.options import ChatOptions
from skillopt_testkit.servers import ChatServer, Reply


def ask(text: str) -> ChatRequest:
    return ChatRequest((Message("user", text),), stage="rollout")


class Limited:
    """Serves so many requests at once, each in `SECONDS`, and turns the others away."""

    SECONDS = 0.04

    def __init__(self, limit: int) -> None:
        self.limit, self.now, self.peak, self.refused = limit, 0, 0, 0
        self.lock = threading.Lock()

    def __call__(self, _: Mapping[str, Any]) -> Reply | str:
        with self.lock:
            if self.now >= self.limit:
                self.refused += 1
                return Reply("too many at once", status=429)
            self.now += 1
            self.peak = max(self.peak, self.now)
        time.sleep(self.SECONDS)
        with self.lock:
            self.now -= 1
        return "done"


def calls_a_second(url: str, threads: int, count: int, limit: EndpointLimit, events: list[dict[str, Any]]) -> float:
    """Through one caller, as many threads as told; every call must be answered."""
    model = OpenAIChatModel(ChatOptions("test", url, "target", "openai_compatible_"))
    made = ModelCaller(
        model, role="target", limit=limit, policy=RetryPolicy(tries=20, first_wait=0.05), emit=events.append
    )
    began = time.monotonic()
    with ThreadPoolExecutor(threads) as pool:
        texts = list(pool.map(lambda number: made.complete(ask(f"{number}")).text, range(count)))
    assert texts == ["done"] * count, "no call is lost"
    model.close()
    return count / (time.monotonic() - began)


def test_a_server_with_a_limit_is_used_as_far_as_it_goes_and_wholly_once_the_limit_is_lifted() -> None:
    most, server_limit = 16, 4
    endpoint, limit, events = Limited(server_limit), EndpointLimit(most), list[dict[str, Any]]()
    with ChatServer(endpoint) as server:
        best = calls_a_second(server.url, server_limit, 80, EndpointLimit(server_limit), [])
        assert endpoint.refused == 0
        reached = calls_a_second(server.url, most, 240, limit, events)
        assert reached > 0.4 * best, f"{reached:.0f} calls a second where {best:.0f} are possible"
        assert 0 < endpoint.refused < 240, "fewer than one in two is turned away"
        later = [event["at_once"] for event in events[80:]]
        assert max(later) <= server_limit + 2
        assert endpoint.peak == server_limit
        endpoint.limit = 1_000
        calls_a_second(server.url, most, 500, limit, events)
    assert events[-1]["at_once"] == most
    assert endpoint.peak > 2 * server_limit
