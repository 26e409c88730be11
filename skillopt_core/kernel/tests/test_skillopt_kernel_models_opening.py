"""The models of a run: opened when needed, refused with a sentence, closed once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from attrs import field, frozen
from skillopt_kernel.config.resolved import BackendChoice
from skillopt_kernel.errors import Cancelled, ConfigError
from skillopt_kernel.interfaces import DriverContext, Finding
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.models.opening import Models
from skillopt_kernel.models.requests import AgentJob
from skillopt_kernel_models_probes import ScriptedModel, ask, in_threads


class LabBackend:
    """A backend of the tests: what it can play is said by its name in `PLAYS`."""

    def __init__(self, plays: Mapping[str, frozenset[str]]) -> None:
        self.capabilities = plays
        self.chat_model = ScriptedModel('{"edits": []}')
        self.closed = 0

    def open_chat(self, role: str) -> ScriptedModel:
        return self.chat_model

    def open_agent(self, role: str) -> Any:
        raise NotImplementedError

    def endpoint(self, role: str) -> str:
        return "lab"

    def check(self, role: str) -> list[Finding]:
        return []

    def close(self) -> None:
        self.closed += 1


CHAT, AGENT = frozenset({"chat"}), frozenset({"agent"})
PLAYS = {
    "lab": {"optimizer": CHAT, "target": CHAT | AGENT, "judge": CHAT},
    "lab_exec": {"target": AGENT},
}


@frozen
class Maker:
    """Makes `LabBackend`s as the kernel's `make_driver` would; keeps what it made."""

    made: list[tuple[str, DriverContext, str, LabBackend]] = field(factory=list)

    def __call__(self, kind: str, name: str, settings: Any, context: DriverContext, where: str = "") -> LabBackend:
        assert kind == "backend"
        self.made.append((name, context, where, LabBackend(PLAYS[name])))
        return self.made[-1][-1]


def opened(**names: str) -> tuple[Models, Maker]:
    def context(role: str, choice: Any) -> DriverContext:
        return DriverContext(logger=logging.getLogger("lab"), role=role, model=choice.model)

    maker = Maker()
    choices = {role: BackendChoice(role, name, f"{role}-model", None, "lab.yaml:3") for role, name in names.items()}
    models = Models(choices, maker, context=context, effort="high")
    models.attach(Ledger(), lambda data: None, threading.Event())
    return models, maker


def test_a_backend_is_made_when_it_is_first_needed() -> None:
    models, maker = opened(optimizer="lab", target="lab", judge="lab")
    assert maker.made == []
    models.caller("target").complete(ask())
    models.caller("target").complete(ask())
    ((name, context, where, _),) = maker.made
    assert (name, context.role, context.model, where) == ("lab", "target", "target-model", "lab.yaml:3")


def test_many_threads_open_one_backend() -> None:
    models, maker = opened(target="lab")
    callers = in_threads(20, lambda: models.caller("target"))
    assert len(set(map(id, callers))) == 1
    assert len(maker.made) == 1


def test_the_optimizer_of_a_stage() -> None:
    models, maker = opened(optimizer="lab")
    assert models.optimizer("analyst", "fail_000").ask_json("s", "u") == {"edits": []}
    request = maker.made[0][-1].chat_model.requests[0]
    assert (request.stage, request.effort) == ("analyst", "high")
    (call,) = models.ledger.calls()
    assert (call["role"], call["stage"], call["backend"], call["scope"]) == (
        "optimizer", "analyst", "lab", "run/analyst/fail_000",
    )  # fmt: skip


def test_a_stage_may_have_an_effort_and_a_limit_of_its_own() -> None:
    models, maker = opened(optimizer="lab")
    models.optimizer("analyst").ask("s", "u")
    models.optimizer("rewrite", effort="low", max_tokens=64_000).ask("s", "u")
    requests = maker.made[0][-1].chat_model.requests
    assert [(request.effort, request.max_tokens) for request in requests] == [("high", 16_384), ("low", 64_000)]


def test_calls_of_one_site_are_counted_on_and_attempts_from_the_first() -> None:
    models, _ = opened(optimizer="lab", target="lab")
    for _ in range(2):
        models.optimizer("analyst", "fail_000", epoch=1, step=3).ask("s", "u")
        models.scoped("target", "attempt", epoch=2).complete(ask())
    models.optimizer("meta_skill", epoch=1).ask("s", "u")
    made = [(call["scope"], call["ordinal"], call["epoch"], call["step"]) for call in models.ledger.calls()]
    assert made == [
        ("step_0003/analyst/fail_000", 0, 1, 3),
        ("attempt", 0, 2, None),
        ("step_0003/analyst/fail_000", 1, 1, 3),
        ("epoch_01/meta_skill/", 0, 1, None),
    ], "an optimizer that is asked the same again is asked; an attempt that is made again is answered"


def test_a_role_that_a_backend_cannot_play_is_refused_with_the_key() -> None:
    models, _ = opened(optimizer="lab_exec", target="lab_exec")
    with pytest.raises(ConfigError) as caught:
        models.caller("optimizer")
    for part in ("'lab_exec'", "optimizer as chat", "target as agent", "model.optimizer_backend"):
        assert part in str(caught.value)
    with pytest.raises(ConfigError, match=r"model\.target_backend"):
        models.check_capabilities("target", CHAT)
    assert models.check_capabilities("target", CHAT | AGENT) == "agent"


def test_a_chat_model_is_given_no_agents_job() -> None:
    models, _ = opened(target="lab", judge="lab")
    with pytest.raises(ConfigError, match=r"'lab' cannot play the judge as agent.*model\.judge_backend"):
        models.scoped("judge", "attempt").run(AgentJob("work", "# Skill"))


def test_chat_is_preferred_where_both_are_possible() -> None:
    models, _ = opened(target="lab")
    assert models.check_capabilities("target", CHAT | AGENT) == "chat"
    assert models.check_capabilities("target", AGENT) == "agent"


def test_roles_with_one_endpoint_share_its_limit() -> None:
    models, _ = opened(optimizer="lab", target="lab")
    assert models.caller("optimizer")._limit is models.caller("target")._limit


def test_a_role_without_a_backend() -> None:
    models, _ = opened(target="lab")
    with pytest.raises(ConfigError, match=r"model\.judge_backend"):
        models.caller("judge")


def test_what_a_run_says_of_its_models() -> None:
    models, _ = opened(target="lab")
    assert models.describe() == {"target": {"backend": "lab", "model": "target-model", "endpoint": "lab"}}


def test_closed_models_are_not_opened_again() -> None:
    models, maker = opened(target="lab")
    models.caller("target")
    models.close()
    models.close()
    assert maker.made[0][-1].closed == 1
    with pytest.raises(Cancelled):
        models.caller("target")
