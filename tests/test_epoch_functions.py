"""Slow update and meta skill as functions: the same calls as a run's, and what a caller can get wrong."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.errors import ModelError
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.models.asking import ModelOptimizer
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_kernel.records import Attempt, Missing, Outcome, Score, Task, Turn
from skillopt_kernel.stages.comparison import Pair, compare
from skillopt_testkit.project import Project, world
from skillopt_testkit.servers import ChatServer, Reply

import skillopt_core
from skillopt_core import run_meta_skill, run_slow_update

PREVIOUS, CURRENT = "# Skill\n\n- Be short.\n", "# Skill\n\n- Be short.\n- Name the unit.\n"
ROW = {
    "id": "q1",
    "task": "How far is it?",
    "prev": {"hard": 1, "predicted_answer": "3 km"},
    "curr": {"hard": 0.0, "soft": 0.5, "predicted_answer": "N/A", "fail_reason": "the number is missing"},
}
GUIDED = '{"reasoning": "why", "slow_update_content": " Name the unit first. ", "meta_skill_content": "Be brief. "}'


class Recorder:
    """A chat model that answers with a text and keeps what it was asked."""

    model = "recorder"

    def __init__(self, reply: str | Callable[[ChatRequest], str]) -> None:
        self.reply, self.requests = reply, list[ChatRequest]()

    def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        return ChatReply(self.reply if isinstance(self.reply, str) else self.reply(request))

    @property
    def message(self) -> str:
        return self.requests[-1].messages[1].text


class Spy:
    """Keeps what a run's own stage compared and was answered."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, Any, str]] = []

    @hookimpl(wrapper=True)
    def skillopt_slow_update(self, run: Any, epoch: Any) -> Any:
        made = yield
        whole = [Pair(one.task, run.whole(one.prev), run.whole(one.curr)) for one in compare(run, epoch).pairs]
        self.seen.append((epoch, whole, made.content))
        return made


def test_the_function_makes_the_call_that_a_run_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through real HTTP: the same request, but for what the environment adds, and the same result."""
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "key")
    project, received, numbers = Project.make(tmp_path), list[Any](), itertools.count()

    def answer(body: Any) -> Reply:
        system = body["messages"][0]["content"]
        if "slow_update_content" in system:
            received.append(body["messages"])
            return Reply(GUIDED)
        edits = [{"op": "append", "content": f"Rule {next(numbers)}.", "support_count": 3, "source_type": "failure"}]
        return Reply(json.dumps({"patch": {"reasoning": "", "edits": edits}, "reasoning": "", "edits": edits}))

    with ChatServer(answer) as server:
        config = {
            "_base_": str(project.folder / "config.yaml"),
            "train": {"num_epochs": 2},
            "optimizer": {"use_slow_update": True},
            "evaluation": {"use_gate": False, "deterministic_target": True},
            "env": {"split_dir": str(project.folder / "data"), "skill_init": str(project.folder / "skill.md")},
            "model": {
                "optimizer_backend": "openai_compatible", "optimizer": "m",
                "optimizer_openai_compatible_base_url": server.url,
                "target_backend": "simulated", "simulated_world": str(project.folder / "world.yaml"),
            },
        }  # fmt: skip
        spy = Spy()
        skillopt_core.train(config, out=tmp_path / "run", plugins=[("spy", spy)])
        epoch, pairs, content = spy.seen[-1]
        (of_run,) = received
        again = run_slow_update(epoch.first_skill, epoch.last_skill, pairs, optimizer=config)
        of_function = received[-1]
    assert again.content == content == "Name the unit first."
    assert of_function[0] == of_run[0], "the system prompt"
    folder = tmp_path / "run" / "slow_update" / "epoch_02"
    assert list(again.pairs) == json.loads((folder / "comparison_pairs.json").read_text())
    assert again.record["counts"] == json.loads((folder / "slow_result.json").read_text())["counts"]
    asked, without = of_run[1]["content"], of_function[1]["content"]
    assert without.count("#### Conversation with the current skill") > 0
    own = [part for part in asked.split("#### ") if part.startswith(("Accepted answers", "In the context"))]
    for part in own:
        asked = asked.replace(f"#### {part}", "", 1)
    assert own and asked == without


def test_a_configuration_opens_the_optimizer_and_names_its_prompt(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    project.write("world.yaml", world("{insight: 1.0, harmful: 0.0}"))
    assert run_meta_skill(PREVIOUS, CURRENT, [ROW], optimizer=tmp_path / "config.yaml")
    project.write("mine.md", "{{nothing}}")
    mine = {"_base_": str(tmp_path / "config.yaml"), "prompts": {"slow_update": str(tmp_path / "mine.md")}}
    with pytest.raises(skillopt_core.ConfigError, match=r"mine.md:1: the prompt 'slow_update' uses \{\{nothing\}\}"):
        run_slow_update(PREVIOUS, CURRENT, [ROW], optimizer=mine)


def test_rows_are_told_with_their_scores_answers_and_reasons() -> None:
    model = Recorder(GUIDED)
    made = run_slow_update(PREVIOUS, CURRENT, [ROW], optimizer=model)
    assert made.content == "Name the unit first."
    assert made.record["reasoning"] == "why" and made.record["n_pairs"] == 1
    assert made.pairs[0]["category"] == "regressed" and made.pairs[0]["curr"]["predicted_answer"] == "N/A"
    assert model.requests[0].stage == "slow_update"
    assert "Previous skill: PASS, soft 1.00, answer: 3 km" in model.message
    assert "Current skill: FAIL, soft 0.50, answer: N/A\nReason: the number is missing" in model.message
    assert "Conversation" not in model.message, "rows have none"
    run_slow_update(PREVIOUS, CURRENT, [ROW | {"curr": {"hard": 0.4}}], optimizer=model, failure_below=0.3)
    assert "1 stable_success" in model.message


def test_guidance_and_advice_are_replaced_and_opened_optimizers_are_used() -> None:
    model = Recorder(GUIDED)
    opened = ModelOptimizer(model.complete, "slow_update")
    guided = skillopt_core.with_region(CURRENT, "slow_update", "Keep calm.")
    run_slow_update(PREVIOUS, guided, [ROW], optimizer=opened)
    assert "## Previous guidance\n\nKeep calm.\n" in model.message
    run_slow_update(PREVIOUS, guided, [ROW], "Stay calm.", optimizer=opened)
    assert "## Previous guidance\n\nStay calm.\n" in model.message
    assert run_meta_skill(PREVIOUS, CURRENT, [ROW], "Be bold.", optimizer=model, memory="Step 1 failed.") == "Be brief."
    assert "## Advice from earlier epochs\n\nBe bold.\n" in model.message
    assert "## What was tried before\n\nStep 1 failed.\n" in model.message


def outcome(side: str, hard: float | None) -> Outcome:
    if hard is None:
        return Outcome("t1", "", "h", 0, missing=Missing("endpoint", "down"))
    turns = (Turn("user", f"the question, {side}"), Turn("assistant", f"the answer, {side}"))
    return Outcome("t1", "", "h", 0, Attempt("a", turns), Score(hard, hard))


def test_pairs_of_outcomes_bring_their_conversations_and_a_missing_score_is_left_out() -> None:
    model = Recorder(GUIDED)
    task = Task("t1", inputs={"question": "Which?"}, reference="the secret")
    whole, half = (outcome("before", 0.0), outcome("after", 1.0)), (outcome("x", None), outcome("y", 1.0))
    made = run_slow_update(PREVIOUS, CURRENT, [Pair(task, *whole), Pair(task, *half)], optimizer=model)
    assert made.record["n_missing"] == 1 and made.record["counts"]["improved"] == 1
    assert "[agent] the answer, before" in model.message and "[agent] the answer, after" in model.message
    assert "the secret" not in model.message


@pytest.mark.parametrize(
    ("skills", "pairs", "action"),
    [((CURRENT, CURRENT), [ROW], "skip_identical"), ((PREVIOUS, CURRENT), [], "skip_no_pairs")],
)
def test_nothing_to_compare_costs_no_call(skills: tuple[str, str], pairs: list[Any], action: str) -> None:
    model = Recorder(GUIDED)
    made = run_slow_update(*skills, pairs, optimizer=model)
    assert (made.content, made.record["action"]) == (None, action)
    assert run_meta_skill(*skills, pairs, optimizer=model) is None
    assert not model.requests


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"task": "x"}, "pair 2 cannot be used: 'id' is missing"),
        ({"id": "a", "prev": {"hard": 1}}, "'curr' is missing"),
        ({"id": "a", "prev": {"hard": 1}, "curr": {"soft": 1}}, "'hard' is missing"),
        ({"id": "a", "prev": {"hard": 2}, "curr": {"hard": 1}}, "must be a number from 0 to 1, not 2.0"),
        ({"id": "a", "prev": {"hard": "x"}, "curr": {"hard": 1}}, "could not convert"),
        ({"id": "a", "prev": 3, "curr": {"hard": 1}}, "pair 2 cannot be used"),
        (7, "pair 2 cannot be used"),
    ],
)
def test_a_bad_row_is_refused_by_number(row: Any, words: str) -> None:
    with pytest.raises(skillopt_core.SkillOptError, match=words):
        run_slow_update(PREVIOUS, CURRENT, [ROW, row], optimizer=Recorder(GUIDED))


def test_an_optimizer_that_cannot_be_asked_is_refused_and_a_failed_call_is_typed() -> None:
    with pytest.raises(skillopt_core.SkillOptError, match="optimizer is 7: give a configuration"):
        run_slow_update(PREVIOUS, CURRENT, [ROW], optimizer=7)
    with pytest.raises(skillopt_core.SkillOptError, match="overrides are for a configuration"):
        run_slow_update(PREVIOUS, CURRENT, [ROW], optimizer=Recorder(GUIDED), overrides=["a.b=1"])
    with pytest.raises(skillopt_core.ConfigError):
        run_slow_update(PREVIOUS, CURRENT, [ROW], optimizer="there-is-none.yaml")
    with pytest.raises(ModelError, match="could not be used"):
        run_slow_update(PREVIOUS, CURRENT, [ROW], optimizer=Recorder("I would rather talk."))
