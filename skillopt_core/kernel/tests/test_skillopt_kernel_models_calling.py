"""The one path of every call: retries, waits, limits, redaction, and what is recorded of it."""

from __future__ import annotations

import threading
import time
from typing import Any

import attrs
import pytest
from skillopt_kernel.errors import (
    CallTimeout,
    Cancelled,
    ContextTooLong,
    ModelError,
    PassingError,
    PermanentError,
    RefusedError,
)
from skillopt_kernel.models.calling import EndpointLimit, ModelCaller, RetryPolicy
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.models.requests import ChatRequest, ImagePart, Message, TextPart
from skillopt_kernel.records import ToolCall, Usage
from skillopt_kernel.store.redaction import Redactor
from skillopt_kernel_models_probes import ScriptedModel, ask, in_threads, reply

QUICK = RetryPolicy(tries=4, first_wait=0.001, longest_wait=2.0)


def caller(model: ScriptedModel, **options: Any) -> ModelCaller:
    return ModelCaller(model, role="target", **{"policy": QUICK, **options})


def total(ledger: Ledger) -> dict[str, Any]:
    (row,) = ledger.sums()
    return row


def test_what_passes_is_tried_again_and_recorded_once() -> None:
    events: list[dict[str, Any]] = []
    ledger = Ledger()
    model = ScriptedModel(PassingError("busy"), PassingError("busy", retry_after=0.05), "done")
    made = caller(model, ledger=ledger, emit=events.append)
    assert made.complete(ask(stage="rollout")).text == "done"
    assert len(model.requests) == 3
    (event,) = events
    # Of the 0.05 s that were asked for, what passed before the wait began is none of it.
    assert event["waited"] > 0
    assert {key: event[key] for key in ("role", "stage", "model", "tries", "ok", "prompt_tokens")} == {
        "role": "target", "stage": "rollout", "model": "scripted", "tries": 3, "ok": True, "prompt_tokens": 10,
    }  # fmt: skip
    assert "error" not in event
    assert total(ledger)["calls"] == 1


def test_tries_are_bounded_and_the_last_error_says_so() -> None:
    events: list[dict[str, Any]] = []
    ledger = Ledger()
    model = ScriptedModel(PassingError("busy"))
    with pytest.raises(PassingError, match=r"busy \(tried 4 times"):
        caller(model, ledger=ledger, emit=events.append).complete(ask())
    assert len(model.requests) == 4
    assert (events[0]["ok"], events[0]["error"], events[0]["tries"]) == (False, "PassingError", 4)
    assert (total(ledger)["calls"], total(ledger)["failed_calls"]) == (1, 1)


@pytest.mark.parametrize("kind", [PermanentError, ContextTooLong, RefusedError])
def test_what_does_not_pass_is_not_tried_again(kind: type[ModelError]) -> None:
    model = ScriptedModel(kind("no"))
    with pytest.raises(kind, match="no"):
        caller(model).complete(ask())
    assert len(model.requests) == 1


def test_a_defect_is_neither_hidden_nor_retried() -> None:
    model = ScriptedModel(ZeroDivisionError("a defect of the backend"))
    with pytest.raises(ZeroDivisionError):
        caller(model).complete(ask())
    assert len(model.requests) == 1


def test_no_wait_goes_beyond_the_deadline() -> None:
    model = ScriptedModel(PassingError("busy", retry_after=100.0))
    deadline = time.monotonic() + 60
    with pytest.raises(PassingError, match="busy"):
        caller(model, policy=RetryPolicy()).complete(ask(deadline=deadline))
    assert time.monotonic() < deadline - 20, "the wait could not have helped, so it is not begun"
    assert len(model.requests) == 1


def test_a_deadline_that_is_over_asks_nothing() -> None:
    ledger = Ledger()
    model = ScriptedModel("late")
    with pytest.raises(CallTimeout):
        caller(model, ledger=ledger).complete(ask(deadline=time.monotonic() - 1))
    assert not model.requests
    assert ledger.sums() == [], "a call that was not made is none"


def test_an_endpoint_that_asks_for_too_much_is_not_waited_for() -> None:
    model = ScriptedModel(PassingError("quota of the day", retry_after=3600))
    with pytest.raises(PassingError, match="asks to wait 3600 s, and a call waits 2 s"):
        caller(model).complete(ask())
    assert len(model.requests) == 1


def test_a_stop_ends_a_wait_at_once() -> None:
    stop = threading.Event()
    model = ScriptedModel(PassingError("busy", retry_after=100.0))
    made = caller(model, cancelled=stop, policy=RetryPolicy())
    threading.Timer(0.1, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        made.complete(ask())
    assert time.monotonic() - began < 50
    assert len(model.requests) == 1
    with pytest.raises(Cancelled):
        made.complete(ask())
    assert len(model.requests) == 1


def test_one_who_is_told_to_wait_pauses_all_of_the_endpoint() -> None:
    limit = EndpointLimit()
    told = caller(ScriptedModel(PassingError("busy", retry_after=0.4), "done"), limit=limit)
    other_model = ScriptedModel("done")
    other = caller(other_model, limit=limit)
    thread = threading.Thread(target=lambda: told.complete(ask()))
    began = time.monotonic()
    thread.start()
    time.sleep(0.1)
    other.complete(ask())
    thread.join()
    assert other_model.times[0] - began >= 0.39


def test_callers_of_one_endpoint_share_its_limit() -> None:
    limit, model = EndpointLimit(3), ScriptedModel("done", seconds=0.02)
    roles = [ModelCaller(model, role=role, limit=limit) for role in ("target", "optimizer")]
    calls = iter(range(100))
    results = in_threads(16, lambda: roles[next(calls) % 2].complete(ask()).text)
    assert results == ["done"] * 16
    assert 1 < model.peak <= 3


def test_a_failed_call_gives_its_place_back() -> None:
    made = caller(ScriptedModel(PermanentError("no"), "done"), limit=EndpointLimit(1))
    with pytest.raises(PermanentError):
        made.complete(ask())
    assert made.complete(ask(deadline=time.monotonic() + 30)).text == "done"


def test_an_endpoint_that_never_answered_is_not_tried_for_long() -> None:
    limit, patient = EndpointLimit(), RetryPolicy(tries=8, first_tries=3, first_wait=0.001)
    model = ScriptedModel(PassingError("no connection"))
    with pytest.raises(PassingError, match="tried 3 times"):
        caller(model, limit=limit, policy=patient).complete(ask())
    caller(ScriptedModel("done"), limit=limit).complete(ask())
    with pytest.raises(PassingError, match="tried 8 times"):
        caller(model, limit=limit, policy=patient).complete(ask())


def test_one_that_says_when_to_come_back_has_answered() -> None:
    busy = PassingError("busy", retry_after=0.001)
    model = ScriptedModel(busy, busy, busy, busy, "done")
    policy = RetryPolicy(first_tries=2, first_wait=0.001)
    assert caller(model, policy=policy).complete(ask()).text == "done"


def test_the_jitter_is_full_and_bounded() -> None:
    policy = RetryPolicy(first_wait=1.0, longest_wait=5.0)
    waits = [policy.wait_before(4, None) or 0.0 for _ in range(500)]
    assert max(waits) <= 4.0
    assert min(waits) < 0.5
    assert max(policy.wait_before(40, None) or 0.0 for _ in range(200)) <= 5.0
    told = [policy.wait_before(2, 2.0) or 0.0 for _ in range(200)]
    assert min(told) >= 2.0, "what was asked for is the least"
    assert max(told) > min(told)
    assert policy.wait_before(2, 6.0) is None


def test_credentials_are_replaced_on_both_ways_and_in_errors() -> None:
    key = "s3cret-credential"
    call = ToolCall("1", "tool", f'{{"key": "{key}"}}')
    model = ScriptedModel(attrs.evolve(reply(f"it is {key}"), reasoning=key, tool_calls=(call,)))
    made = caller(model, redactor=Redactor([key]))
    image = ImagePart(b"\x89", "image/png")
    content = (TextPart(f"my {key}"), image)
    answer = made.complete(ChatRequest((Message("system", key), Message("user", content))))
    assert key not in f"{answer}"
    assert key not in f"{model.requests}"
    assert model.requests[0].messages[1].content[1] == image

    failing = caller(ScriptedModel(PermanentError(f"rejected {key}; Authorization: Bearer abcdefghijk")),
                     redactor=Redactor([key]))  # fmt: skip
    with pytest.raises(PermanentError) as caught:
        failing.complete(ask())
    assert key not in str(caught.value)
    assert "abcdefghijk" not in str(caught.value)
    assert "rejected" in str(caught.value)


def test_a_reply_cut_inside_an_emoji_can_be_written_as_utf_8() -> None:
    answer = caller(ScriptedModel("half \ud83d")).complete(ask("whole \U0001f600"))
    answer.text.encode("utf-8")
    assert answer.text == "half \ufffd"


def test_unknown_usage_and_prices_are_not_zero() -> None:
    ledger, events = Ledger(), list[dict[str, Any]]()
    model = ScriptedModel(reply("a", Usage(calls=1)), reply("b"))
    made = caller(model, ledger=ledger, emit=events.append, address="http://a")
    made.complete(ask())
    assert "prompt_tokens" not in events[0]
    assert total(ledger)["prompt_tokens"] is None
    made.complete(ask())
    told = total(ledger)
    assert (told["prompt_tokens"], told["unknown_calls"], told["usd"]) == (10, 1, None)


def test_each_call_has_the_price_of_its_endpoint() -> None:
    ledger, events = Ledger(), list[dict[str, Any]]()
    model = ScriptedModel("a")
    model.model = "gpt-4o-mini"
    made = caller(model, ledger=ledger, emit=events.append, address="https://api.openai.com/v1")
    made.complete(ask())
    made.complete(ask())
    assert 0 < events[0]["usd"] < 0.001
    assert total(ledger)["usd"] == pytest.approx(2 * events[0]["usd"])


def test_a_hundred_threads_lose_no_call() -> None:
    ledger, model = Ledger(), ScriptedModel("done")
    made = caller(model, ledger=ledger)
    results = in_threads(100, lambda: [made.complete(ask()).text for _ in range(5)])
    assert results == [["done"] * 5] * 100
    assert (total(ledger)["calls"], total(ledger)["prompt_tokens"]) == (500, 5000)


def test_retries_write_nothing_to_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    caller(ScriptedModel(PassingError("busy"), "done")).complete(ask())
    captured = capfd.readouterr()
    assert captured.out + captured.err == ""
