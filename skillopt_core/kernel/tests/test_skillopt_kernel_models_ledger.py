"""The tally of calls: by role and stage, unknown never zero, restored after a stop."""

from __future__ import annotations

import json

import pytest
from skillopt_kernel.models.ledger import Ledger, Tally, token_summary, tokens_by_stage
from skillopt_kernel.models.pricing import estimate_tokens, usd_of
from skillopt_kernel.records import Usage


def used(prompt: int | None, completion: int | None, **more: float) -> Usage:
    return Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, **more)  # type: ignore[arg-type]


def filled() -> Ledger:
    ledger = Ledger()
    ledger.record("target", "rollout", used(10, 5))
    ledger.record("target", "rollout", used(None, None))
    ledger.record("target", "rollout", None)
    ledger.record("optimizer", "analyst", used(100, 50, cached_tokens=40, usd=0.02))
    return ledger


def test_tokens_have_the_names_of_a_step_record() -> None:
    assert tokens_by_stage(filled().tallies()) == {
        "analyst": {"calls": 1, "prompt_tokens": 100, "completion_tokens": 50, "cached_tokens": 40, "usd": 0.02},
        "rollout": {
            "calls": 3, "prompt_tokens": 10, "completion_tokens": 5, "failed_calls": 1, "unknown_calls": 1,
        },
    }  # fmt: skip


def test_a_stage_that_told_nothing_is_unknown() -> None:
    ledger = Ledger()
    ledger.record("target", "rollout", used(None, None))
    assert tokens_by_stage(ledger.tallies())["rollout"] == {
        "calls": 1, "prompt_tokens": None, "completion_tokens": None, "unknown_calls": 1,
    }  # fmt: skip
    summary = token_summary(ledger)
    assert summary["rollout"]["total_tokens"] is None
    assert summary["_total"]["prompt_tokens"] is None


def test_the_summary_has_totals() -> None:
    summary = token_summary(filled())
    assert summary["_total"]["total_tokens"] == 165
    assert (summary["_total"]["calls"], summary["_total"]["unknown_calls"]) == (4, 1)
    assert summary["rollout"]["total_tokens"] == 15


def test_totals_by_role() -> None:
    assert filled().total("optimizer").usage.usd == 0.02
    assert filled().total("target").usage.usd is None
    assert filled().total("judge") == Tally()


def test_the_difference_is_what_came_since() -> None:
    ledger = filled()
    before = ledger.tallies()
    assert ledger.since(before) == {}
    ledger.record("target", "rollout", used(7, 0))
    ledger.record("optimizer", "merge", used(1, 2))
    since = tokens_by_stage(ledger.since(before))
    assert since == {
        "rollout": {"calls": 1, "prompt_tokens": 7, "completion_tokens": 0},
        "merge": {"calls": 1, "prompt_tokens": 1, "completion_tokens": 2},
    }


def test_a_difference_in_which_nobody_told_is_unknown() -> None:
    ledger = filled()
    before = ledger.tallies()
    ledger.record("target", "rollout", used(None, None))
    assert tokens_by_stage(ledger.since(before))["rollout"]["prompt_tokens"] is None


def test_a_snapshot_restores_the_same_tallies() -> None:
    ledger = filled()
    snapshot = json.loads(json.dumps(ledger.snapshot()))
    restored = Ledger()
    restored.record("target", "rollout", used(1, 1))
    restored.restore(snapshot)
    assert restored.tallies() == ledger.tallies()
    restored.record("target", "rollout", used(1, 1))
    assert restored.total().calls == ledger.total().calls + 1


def test_the_provider_s_own_price_wins() -> None:
    assert usd_of("anything", "simulated", used(1, 1, usd=0.5)) == 0.5


def test_a_known_model_at_its_provider_has_a_price() -> None:
    price = usd_of("gpt-4o-mini", "https://api.openai.com/v1", used(1_000_000, 0))
    assert price is not None
    assert 0 < price < 10
    cached = usd_of("gpt-4o-mini", "https://api.openai.com/v1", used(1_000_000, 0, cached_tokens=900_000))
    assert cached is not None
    assert cached < price


@pytest.mark.parametrize(
    ("model", "endpoint", "usage"),
    [
        ("gpt-4o-mini", "http://127.0.0.1:8000/v1", used(10, 10)),
        ("no-such-model", "https://api.openai.com/v1", used(10, 10)),
        ("gpt-4o-mini", "https://api.openai.com/v1", used(None, 10)),
        ("gpt-4o-mini", "https://api.openai.com/v1", used(10, 10, cached_tokens=20)),
        ("simulated", "simulated", used(10, 10)),
    ],
)
def test_what_nobody_prices_costs_an_unknown_sum(model: str, endpoint: str, usage: Usage) -> None:
    assert usd_of(model, endpoint, usage) is None


def test_token_estimate() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "\u00e9" * 4)] == [0, 1, 1, 2, 2]
