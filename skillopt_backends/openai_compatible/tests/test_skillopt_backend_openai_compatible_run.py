"""The backend as a run uses it: settings by role, one limit an endpoint, waits that every worker keeps."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from skillopt_backend_openai_compatible.backend import make_backend
from skillopt_backend_openai_compatible.settings import OpenAICompatibleSettings
from skillopt_kernel.errors import CallTimeout, ConfigError, PermanentError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.calling import EndpointLimit, ModelCaller, RetryPolicy
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.models.requests import ChatRequest, Message
from skillopt_testkit.servers import ChatServer, Reply

ROLES = ("optimizer", "target", "judge")


def backend(url: str, role_model: str | None = None, **told: Any) -> Any:
    context = DriverContext(logger=logging.getLogger("test"), role="target", model=role_model)
    return make_backend(OpenAICompatibleSettings(base_url=url, **told), context)


def ask(seconds: float | None = None) -> ChatRequest:
    deadline = None if seconds is None else time.monotonic() + seconds
    return ChatRequest((Message("user", "hello"),), stage="rollout", deadline=deadline)


def test_a_rate_limit_slows_all_workers_and_loses_no_call() -> None:
    """Three answers of status 429 with a time to wait, eight workers, one endpoint for two roles."""
    lock = threading.Lock()
    refused: list[float] = []
    arrived: list[float] = []

    def script(_: Mapping[str, Any]) -> Reply | str:
        with lock:
            if len(refused) < 3 and (not refused or time.monotonic() > refused[-1] + 1.9):
                refused.append(time.monotonic())
                return Reply("slow down", status=429, headers={"Retry-After": "2"})
            arrived.append(time.monotonic())
            return Reply("done", delay=0.05)

    events: list[dict[str, Any]] = []
    limit, ledger = EndpointLimit(), Ledger()
    with ChatServer(script) as server:
        made = {
            role: ModelCaller(
                backend(server.url, api_key="key").open_chat(role), role=role,
                limit=limit, policy=RetryPolicy(first_wait=0.05), ledger=ledger,
                emit=events.append,
            )
            for role in ("target", "optimizer")
        }  # fmt: skip
        with ThreadPoolExecutor(8) as pool:
            replies = list(pool.map(lambda n: made[("target", "optimizer")[n % 2]].complete(ask()).text, range(64)))
    assert replies == ["done"] * 64
    assert len(refused) == 3
    for moment in refused:
        # What had left before the answer came may still arrive; then nobody calls until the time is over.
        assert not [at for at in arrived if moment + 1.2 < at < moment + 1.95]
    assert [row["failed_calls"] for row in ledger.sums()] == [0]
    assert sum(event["tries"] - 1 for event in events) == 3
    assert max(event["waited"] for event in events) >= 1.9
    assert sum(event["waited"] > 0.5 for event in events) > 3, "others waited, too, and it is visible"


def test_a_timeout_of_one_second_is_one_second() -> None:
    with ChatServer([Reply("late", delay=30)]) as server:
        caller = ModelCaller(backend(server.url).open_chat("target"), role="target")
        began = time.monotonic()
        with pytest.raises(CallTimeout):
            caller.complete(ask(seconds=1.0))
        assert 0.9 < time.monotonic() - began < 20


def test_a_wrong_key_is_tried_once() -> None:
    with ChatServer([Reply("no", status=401)]) as server:
        caller = ModelCaller(backend(server.url, api_key="wrong-key").open_chat("judge"), role="judge")
        with pytest.raises(PermanentError, match="JUDGE_OPENAI_COMPATIBLE_API_KEY"):
            caller.complete(ask())
        assert len(server.requests) == 1


def test_usage_reaches_the_ledger() -> None:
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    ledger = Ledger()
    with ChatServer([Reply("a", usage=usage), Reply("b", usage=None)]) as server:
        caller = ModelCaller(backend(server.url).open_chat("target"), role="target", ledger=ledger)
        caller.complete(ask())
        caller.complete(ask())
    (total,) = ledger.sums("role")
    told = ("role", "calls", "prompt_tokens", "completion_tokens", "unknown_calls")
    assert tuple(total[name] for name in told) == ("target", 2, 11, 7, 1)


def test_the_role_s_model_wins_over_the_setting() -> None:
    with ChatServer(["hi"]) as server:
        for model, sent in ((None, "of-the-settings"), ("of-the-role", "of-the-role")):
            opened = backend(server.url, model, model="of-the-settings").open_chat("target")
            opened.complete(ask())
            assert opened.model == sent
            assert server.requests[-1].body["model"] == sent


def test_settings_reach_the_wire() -> None:
    told: dict[str, Any] = {"temperature": 0.5, "max_tokens": 64, "token_limit_field": "max_completion_tokens"}
    with ChatServer(["hi"]) as server:
        backend(server.url + "/chat/completions", **told).open_chat("target").complete(ask())
        body = server.requests[0].body
        assert server.requests[0].path == "/v1/chat/completions", "an address that was copied too far is understood"
    assert (body["temperature"], body["max_completion_tokens"]) == (0.5, 64)


@pytest.mark.parametrize(
    "told",
    [
        {"base_url": "localhost:8000/v1"},
        {"base_url": ""},
        {"base_url": "ftp://host/v1"},
        {"base_url": "http://host:port/v1"},
        {"base_url": "http://[::1/v1"},
        {"timeout_seconds": 0},
        {"timeout_seconds": -1},
        {"timeout_seconds": float("inf")},
        {"max_tokens": 0},
        {"temperature": 3},
        {"temperature": float("nan")},
    ],
)
def test_impossible_settings_are_refused(told: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be"):
        OpenAICompatibleSettings(**told)


def test_the_key_is_in_no_text() -> None:
    assert "s3cret" not in repr(OpenAICompatibleSettings(api_key="s3cret"))


def test_it_is_no_agent() -> None:
    made = backend("http://127.0.0.1:1/v1")
    assert all(made.capabilities[role] == {"chat"} for role in ROLES)
    with pytest.raises(ConfigError, match=r"model\.target_backend"):
        made.open_agent("target")


def test_the_endpoint_s_name_holds_no_login() -> None:
    assert backend("http://user:password@host:1/v1/").endpoint("target") == "http://host:1/v1"


def test_closing_closes_every_role() -> None:
    with ChatServer(["hi"]) as server:
        made = backend(server.url)
        models = [made.open_chat(role) for role in ROLES]
        models[0].complete(ask())
        made.close()
        for model in models:
            with pytest.raises(Exception, match="closed"):
                model.complete(ask())
