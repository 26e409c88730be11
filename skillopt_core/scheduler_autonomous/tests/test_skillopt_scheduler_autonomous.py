"""The scheduler `autonomous`: what it asks, how it reads the reply, and what it does without one."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from skillopt_kernel.errors import PassingError, PermanentError
from skillopt_kernel.interfaces import DriverContext, Moment
from skillopt_kernel.models.asking import ModelOptimizer
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_kernel.records import Edit, EditBudget, Update
from skillopt_scheduler_autonomous import plugin
from skillopt_scheduler_autonomous.scheduler import make_scheduler, whole_number

UPDATE = Update(items=tuple(Edit("append", f"- Rule {number}.") for number in range(5)))
EVIDENCE = {
    "skill": "# Skill\n", "items": ("append content='- a'", "delete target='- b'"), "item_kind": "edits",
    "memory": "Step 1 was rejected.", "meta": "Be bold.", "rollout_n": 40, "rollout_hard": 1 / 3, "rollout_soft": None,
}  # fmt: skip


class Model:
    """A model whose replies are given, or that raises; keeps the requests."""

    def __init__(self, *replies: str | Exception) -> None:
        self.replies, self.requests = list(replies), list[ChatRequest]()

    def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return ChatReply(reply)


def decide(model: Model, update: Update | None = UPDATE) -> EditBudget:
    scheduler = make_scheduler(None, DriverContext(logging.getLogger("test")))
    return scheduler.budget(Moment(3, 8, update, EVIDENCE, ModelOptimizer(model.complete, "lr_autonomous")))


def told(value: Any) -> EditBudget:
    return decide(Model(json.dumps({"learning_rate": value})))


def test_the_manifest_names_what_there_is() -> None:
    assert (plugin.kind, plugin.name, plugin.settings) == ("scheduler", "autonomous", "")
    assert plugin.factory == f"{make_scheduler.__module__}:{make_scheduler.__name__}"


def test_before_reflection_there_is_no_limit_and_nobody_is_asked() -> None:
    model = Model('{"learning_rate": 1}')
    made = decide(model, None)
    assert (made.limit, made.record) == (None, None)
    assert not model.requests


def test_a_decision_and_its_record() -> None:
    reply = {"reasoning": "two causes", "learning_rate": 2, "confidence": "high", "risk_notes": "none"}
    made = decide(Model(json.dumps(reply)))
    assert made.limit == 2
    assert made.record == {
        "learning_rate": 2, "raw_learning_rate": 2, "available_update_items": 5, "clamped": False, "fallback": False,
        "reasoning": "two causes", "confidence": "high", "risk_notes": "none", "raw_response": reply,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("value", "limit", "clamped"),
    [(0, 0, False), (3.0, 3, False), ("about 4 edits", 4, False), ("-2", 0, True), (-1, 0, True), (99, 5, True)],
)
def test_a_number_is_read_in_every_form_and_clamped(value: Any, limit: int, clamped: bool) -> None:
    made = told(value)
    assert made.limit == limit
    assert made.record is not None
    assert (made.record["raw_learning_rate"], made.record["clamped"], made.record["fallback"]) == (
        value, clamped, False,
    )  # fmt: skip


@pytest.mark.parametrize("value", [True, False, 2.5, "some", None, [3], {}, float("inf"), float("nan")])
def test_what_is_no_number_is_none(value: Any) -> None:
    assert whole_number(value) is None
    made = told(value) if value == value and value != float("inf") else told("none")
    assert made.limit == 0
    assert made.record is not None
    assert made.record["fallback"] is True
    assert made.record["error"].startswith("unusable_reply: ")


def test_it_reminds_once() -> None:
    model = Model('{"learning_rate": "many"}', '{"learning_rate": 2}')
    assert decide(model).limit == 2
    assert len(model.requests) == 2
    assert "must be a whole number" in model.requests[1].messages[-1].text


def test_a_failed_call_applies_nothing_and_a_permanent_one_ends_the_run() -> None:
    made = decide(Model(PassingError("no answer")))
    assert made.limit == 0
    assert made.record is not None
    assert made.record["error"] == "call_failed: PassingError: no answer"
    with pytest.raises(PermanentError):
        decide(Model(PermanentError("no key")))


def test_without_items_nobody_is_asked() -> None:
    model = Model('{"learning_rate": 1}')
    assert decide(model, Update()).limit == 0
    assert not model.requests


def test_what_is_asked_holds_the_evidence_and_no_default() -> None:
    model = Model('{"learning_rate": 1}')
    decide(model)
    (request,) = model.requests
    system, user = (message.text for message in request.messages)
    assert request.stage == "lr_autonomous"
    for part in ("# Skill", "Step 1 was rejected.", "Be bold.", "Step 3.\n", "with the current skill: 40.",
                 "Mean hard score: 0.333333.", "Candidate edits: 2 (edits).", "[0] append content='- a'",
                 "[1] delete target='- b'"):  # fmt: skip
        assert part in user
    assert "soft" not in user
    assert " 8" not in user, "how many steps there will be decides nothing"
    assert "one JSON object" in system
