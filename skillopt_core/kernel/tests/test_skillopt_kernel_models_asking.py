"""The optimizer's calls: one reminder, then a typed failure that says what was wrong."""

from __future__ import annotations

from typing import Any

import pytest
from skillopt_kernel.errors import PassingError, UnusableReply
from skillopt_kernel.models.asking import ModelOptimizer
from skillopt_kernel.models.requests import ChatReply
from skillopt_kernel_models_probes import ScriptedModel, reply


def optimizer(*script: ChatReply | str | Exception, **options: Any) -> tuple[ModelOptimizer, ScriptedModel]:
    model = ScriptedModel(*script)
    return ModelOptimizer(model.complete, stage="analyst", **options), model


def test_a_good_reply_is_taken_at_once() -> None:
    asker, model = optimizer('{"edits": []}', effort="high")
    assert asker.ask_json("system", "user", schema={"type": "object"}, max_tokens=99) == {"edits": []}
    (request,) = model.requests
    assert [(message.role, message.text) for message in request.messages] == [("system", "system"), ("user", "user")]
    assert (request.stage, request.effort, request.max_tokens, request.schema) == (
        "analyst", "high", 99, {"type": "object"},
    )  # fmt: skip


def test_one_reminder_says_what_was_wrong() -> None:
    asker, model = optimizer("Sorry, here are my thoughts…", '{"edits": []}')
    assert asker.ask_json("system", "user") == {"edits": []}
    first, second = model.texts
    assert first == ["system", "user"]
    assert second[0] == "system"
    assert second[1].startswith("user\n")
    assert "JSON only" in second[1]
    assert "no JSON object" in second[1]


def test_prose_twice_is_a_typed_failure_even_if_a_third_try_would_do() -> None:
    asker, model = optimizer("Sorry, here are my thoughts…", "Sorry, more thoughts…", '{"edits": []}')
    with pytest.raises(UnusableReply) as caught:
        asker.ask_json("system", "user")
    assert len(model.requests) == 2
    assert caught.value.head == "Sorry, more thoughts…"
    assert "no JSON object" in caught.value.reason


def test_the_head_is_short_and_redacted_before_it_is_cut() -> None:
    text = "y" * 165 + " password=k3y-" + "x" * 60 + " " + "z" * 500
    asker, _ = optimizer(text)
    with pytest.raises(UnusableReply) as caught:
        asker.ask_json("system", "user")
    assert len(caught.value.head) <= 200
    assert "k3y" not in str(caught.value)


def test_what_looks_like_a_credential_is_not_shown() -> None:
    asker, _ = optimizer("401 Unauthorized: Authorization: Bearer abc123def456ghi789")
    with pytest.raises(UnusableReply) as caught:
        asker.ask_json("system", "user")
    assert "abc123" not in str(caught.value)
    assert "401 Unauthorized" in str(caught.value)


@pytest.mark.parametrize(
    ("bad", "word"),
    [
        (reply('{"edits": []}', finish="length"), "cut off"),
        (reply("", finish="filtered"), "content filter"),
        (reply("  "), "empty"),
        (reply("```json\n[1]\n```"), "no JSON object"),
        (reply('{"a": 1} {"b": 2}'), "more than one"),
    ],
)
def test_each_kind_of_bad_reply_has_its_reason(bad: ChatReply, word: str) -> None:
    asker, model = optimizer(bad)
    with pytest.raises(UnusableReply) as caught:
        asker.ask_json("system", "user")
    assert word in caught.value.reason
    assert word in model.texts[1][-1], "the reminder says it, too"


def test_a_cut_off_reply_is_asked_for_again_though_it_looks_whole() -> None:
    asker, model = optimizer(reply('{"edits": []}', finish="length"), '{"edits": [1]}')
    assert asker.ask_json("system", "user") == {"edits": [1]}
    assert len(model.requests) == 2


def test_a_check_is_reminded_of_once() -> None:
    def check(found: Any) -> str | None:
        return None if "edits" in found else "it has no key `edits`"

    asker, model = optimizer('{"changes": []}', '{"edits": []}')
    assert asker.ask_json("system", "user", check=check) == {"edits": []}
    assert "no key `edits`" in model.texts[1][-1]

    asker, _ = optimizer('{"changes": []}')
    with pytest.raises(UnusableReply, match="no key `edits`"):
        asker.ask_json("system", "user", check=check)


def test_a_failed_call_is_no_bad_reply() -> None:
    asker, model = optimizer(PassingError("the endpoint is down"))
    with pytest.raises(PassingError):
        asker.ask_json("system", "user")
    assert len(model.requests) == 1


def test_ask_hands_the_reply_on_as_it_is() -> None:
    asker, model = optimizer(reply("half a sent", finish="length"))
    assert asker.ask("system", "user").finish == "length"
    assert model.requests[0].max_tokens == 16_384
