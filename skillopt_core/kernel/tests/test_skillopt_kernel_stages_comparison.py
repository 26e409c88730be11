"""Slow update and meta skill by themselves: which pairs, in which order, what is asked, what a failure comes to."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, evolve, field
from skillopt_kernel.config.schema import GradientSettings, OptimizerSettings
from skillopt_kernel.errors import ContextTooLong, ModelError, PassingError, PermanentError
from skillopt_kernel.models.asking import ModelOptimizer
from skillopt_kernel.models.requests import ChatReply, ChatRequest
from skillopt_kernel.records import Ask, Attempt, Missing, Outcome, Score, Task, Turn
from skillopt_kernel.skill import shown, skill_hash, with_region
from skillopt_kernel.splits import sample_tasks
from skillopt_kernel.stages.comparison import CATEGORIES, Comparison, compare, comparison_text, details_in
from skillopt_kernel.stages.meta_skill import skillopt_meta_skill
from skillopt_kernel.stages.slow_update import skillopt_slow_update

PREVIOUS, CURRENT = "# Skill\n\n- Be short.\n", "# Skill\n\n- Be short.\n- Name the unit.\n"
TASKS = tuple(Task(f"t{number}", "sum", {"question": f"What is {number}+1?"}) for number in range(12))
FATES = ((1, 0), (0, 0), (0, 1), (1, 1))
"""Task tN has the fate N modulo 4: hard under the previous and under the current skill."""
EPOCH = SimpleNamespace(number=2, steps=(3, 4), first_skill=PREVIOUS, last_skill=CURRENT, memory="", meta="")
GUIDED = '{"reasoning": "why", "slow_update_content": " Name the unit first. "}'


@define
class Lab:
    """The part of a run that these stages use. `reply` answers the optimizer; `missing`: (task, side) unscored."""

    optimizer_settings: Mapping[str, Any] = field(factory=dict)
    gradient: GradientSettings = field(factory=GradientSettings)
    reply: Callable[[ChatRequest], str] = lambda _: GUIDED
    missing: frozenset[tuple[str, int]] = frozenset()
    deterministic: bool = False
    train: tuple[Task, ...] = TASKS
    fate: Callable[[int], tuple[float, float]] = lambda number: FATES[number % 4]
    seed: int = 42
    room_left: str = ""
    written: dict[str, Any] = field(factory=dict)
    evaluated: list[list[Ask]] = field(factory=list)
    requests: list[ChatRequest] = field(factory=list)

    @property
    def settings(self) -> Any:
        return SimpleNamespace(optimizer=OptimizerSettings(**self.optimizer_settings), gradient=self.gradient)

    def sample(self, epoch: int) -> int:
        return 0 if self.deterministic else epoch

    def prefetch(self, asks: Sequence[Ask], part: str) -> None:
        self.evaluated.append(list(asks))
        assert part == "curr"

    def evaluate(self, asks: Sequence[Ask], part: str) -> Iterator[Outcome]:
        """Both sides of a batch are one entry of `evaluated`: the current one was begun before this was asked."""
        if part == "prev":
            self.evaluated[-1][:0] = asks
        return iter([self.outcome(ask) for ask in asks])

    def write(self, name: str, value: Any) -> None:
        self.written[name] = value

    def outcome(self, ask: Ask) -> Outcome:
        side = int(ask.skill == CURRENT)
        task, digest = ask.task, skill_hash(ask.skill)
        if (task.id, side) in self.missing:
            return Outcome(task.id, task.kind, digest, ask.sample, missing=Missing("endpoint", "down"))
        hard = self.fate(int(task.id[1:]))[side]
        score = Score(hard, hard, "" if hard else "the unit is missing")
        return Outcome(task.id, task.kind, digest, ask.sample, Attempt("4" if hard else ""), score)

    def whole(self, outcome: Outcome) -> Outcome:
        skill = CURRENT if outcome.skill_hash == skill_hash(CURRENT) else PREVIOUS
        turns = (Turn("system", f"Follow this:\n{skill}"), Turn("assistant", f"answer to {outcome.task_id}"))
        assert outcome.attempt is not None
        return evolve(outcome, attempt=evolve(outcome.attempt, trajectory=turns))

    def evidence(self, outcome: Outcome) -> Mapping[str, str]:
        return {"Accepted answers": f"accepted for {outcome.task_id}"}

    def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        return ChatReply(self.reply(request))

    def optimizer(self, stage: str, key: str = "") -> ModelOptimizer:
        return ModelOptimizer(self.complete, stage=stage)

    def room(self, skill: str) -> str:
        return self.room_left

    def prompt(self, name: str) -> str:
        return f"the prompt {name}"


def compared(lab: Lab) -> Comparison:
    return compare(lab, EPOCH)  # type: ignore[arg-type]


def slow_update(lab: Lab, **epoch: Any) -> Any:
    return skillopt_slow_update(lab, SimpleNamespace(**{**vars(EPOCH), **epoch}))  # type: ignore[arg-type]


def text_of(lab: Lab, found: Comparison) -> str:
    return comparison_text(found, found.pairs, details_in(lab, found))  # type: ignore[arg-type]


def user_text(lab: Lab, number: int = -1) -> str:
    return lab.requests[number].messages[1].text


@pytest.mark.parametrize(
    ("policy", "categories"),
    [
        ("mixed", {"regressed", "persistent_fail", "improved", "stable_success"}),
        ("changed", {"regressed", "improved"}),
        ("unchanged", {"persistent_fail", "stable_success"}),
    ],
)
def test_the_policy_keeps_its_categories_in_the_order_of_importance(policy: str, categories: set[str]) -> None:
    found = compared(Lab({"longitudinal_pair_policy": policy}))
    order = [pair.category for pair in found.pairs]
    assert set(order) == categories
    assert order == sorted(order, key=list(CATEGORIES).index)
    assert len(found.compared) == 12
    assert found.record()["counts"] == dict.fromkeys(CATEGORIES, 3)
    assert (found.record()["prev_hard"], found.record()["curr_hard"]) == (0.5, 0.5)
    assert found.record()["n_pairs"] == len(order)


def test_what_counts_as_failed_is_configured_and_scores_stay_as_they_are() -> None:
    """O-G4."""

    def halves(number: int) -> tuple[float, float]:
        return (0.75, 0.5) if number % 2 else (0.5, 0.75)

    assert {pair.category for pair in compared(Lab(fate=halves)).pairs} == {"stable_success"}
    lab = Lab(fate=halves, gradient=GradientSettings(failure_below=0.75))
    found = compared(lab)
    assert found.record()["counts"] == {"regressed": 6, "persistent_fail": 0, "improved": 6, "stable_success": 0}
    assert (found.record()["prev_hard"], found.pairs[0].as_json()["curr"]["hard"]) == (0.625, 0.5)
    text = text_of(lab, found)
    assert text.count("Current skill: FAIL") == text.count("Current skill: PASS") == 6


def test_the_sample_is_drawn_by_seed_and_epoch_and_both_sides_are_asked_at_once() -> None:
    lab = Lab({"slow_update_samples": 5})
    compared(lab)
    tasks = list(sample_tasks(TASKS, 5, 42 + 2000 * 2))
    assert [[(ask.skill, ask.task, ask.sample) for ask in asks] for asks in lab.evaluated] == [
        [(PREVIOUS, task, 2) for task in tasks] + [(CURRENT, task, 2) for task in tasks]
    ]


def test_a_deterministic_target_is_asked_for_the_sample_that_is_stored() -> None:
    lab = Lab(deterministic=True)
    compared(lab)
    assert {ask.sample for ask in lab.evaluated[0]} == {0}


def test_too_few_changed_pairs_are_topped_up_a_sample_at_a_time() -> None:
    lab = Lab({"longitudinal_pair_policy": "changed", "slow_update_samples": 4})
    found = compared(lab)
    assert [len(asks) for asks in lab.evaluated] == [8] * len(lab.evaluated)
    assert 1 < len(lab.evaluated) <= 3
    assert len(found.pairs) == 4
    ids = [ask.task.id for asks in lab.evaluated for ask in asks if ask.skill == CURRENT]
    assert ids == [task.id for task in sample_tasks(TASKS, len(ids), 42 + 4000)]
    nothing_changes = Lab({"longitudinal_pair_policy": "changed", "slow_update_samples": 5}, fate=lambda _: (1, 1))
    found = compared(nothing_changes)
    assert [len(asks) for asks in nothing_changes.evaluated] == [10, 10, 4]
    assert not found.pairs and found.record()["action"] == "skip_no_pairs"


def test_the_other_policies_are_never_topped_up() -> None:
    lab = Lab({"longitudinal_pair_policy": "unchanged", "slow_update_samples": 4})
    compared(lab)
    assert len(lab.evaluated) == 1


def test_a_pair_without_a_score_on_a_side_is_left_out_and_counted() -> None:
    found = compared(Lab(missing=frozenset({("t0", 0), ("t1", 1), ("t2", 0), ("t2", 1)})))
    assert {pair.task.id for pair in found.compared} == {task.id for task in TASKS} - {"t0", "t1", "t2"}
    assert found.record()["n_missing"] == 3


@pytest.mark.parametrize(
    ("epoch", "samples", "action"),
    [
        ({"number": 1}, 20, "skip_first_epoch"),
        ({"last_skill": PREVIOUS}, 20, "skip_identical"),
        ({"last_skill": PREVIOUS + "<!-- SLOW_UPDATE_START -->\n<!-- SLOW_UPDATE_END -->\n"}, 20, "skip_identical"),
        ({}, 0, "skip_no_samples"),
    ],
)
def test_nothing_to_compare_costs_no_rollout_and_no_call(epoch: dict[str, Any], samples: int, action: str) -> None:
    lab = Lab({"slow_update_samples": samples})
    made = slow_update(lab, **epoch)
    assert (made.content, made.pairs, made.record) == (None, (), {"action": action})
    assert skillopt_meta_skill(lab, SimpleNamespace(**{**vars(EPOCH), **epoch})) is None  # type: ignore[arg-type]
    assert not lab.evaluated and not lab.requests


def test_no_scored_pair_costs_no_call() -> None:
    lab = Lab(missing=frozenset((task.id, 1) for task in TASKS))
    made = slow_update(lab)
    assert (made.content, made.record["action"], made.record["n_missing"]) == (None, "skip_no_pairs", 12)
    assert made.record["curr_hard"] is None and not lab.requests


def test_the_text_tells_what_became_of_each_task_and_shows_what_went_wrong() -> None:
    lab = Lab({"slow_update_samples": 12})
    found = compared(lab)
    text = text_of(lab, found)
    assert text.startswith("Of 12 tasks: 3 regressed, 3 persistent_fail, 3 improved, 3 stable_success\n")
    parts = [text.index(f"### {category} (3): ") for category in CATEGORIES]
    assert parts == sorted(parts)
    broken, stable = text[: parts[-1]], text[parts[-1] :]
    assert broken.count("#### Conversation with the previous skill\n[system] Follow this:\n(the previous skill)") == 9
    assert broken.count("#### Conversation with the current skill\n[system] Follow this:\n(the current skill)") == 9
    assert broken.count("accepted for ") == 9
    assert "Name the unit" not in text, "a skill stands in the message once, not in every conversation"
    assert "Conversation" not in stable and "accepted for" not in stable
    assert "Previous skill: PASS, soft 1.00, answer: 4" in stable
    assert "Current skill: FAIL, soft 0.00, answer: N/A\nReason: the unit is missing" in broken
    assert "Task: What is 0+1?\nTask type: sum" in broken


def test_the_file_of_pairs_has_scores_and_answers_and_no_conversation() -> None:
    made = slow_update(Lab())
    assert [pair["category"] for pair in made.pairs] == [name for name in CATEGORIES for _ in range(3)]
    first = next(pair for pair in made.pairs if pair["id"] == "t0")
    assert first == {
        "id": "t0",
        "task": "What is 0+1?",
        "category": "regressed",
        "prev": {"hard": 1.0, "soft": 1.0, "predicted_answer": "4", "fail_reason": ""},
        "curr": {"hard": 0.0, "soft": 0.0, "predicted_answer": "N/A", "fail_reason": "the unit is missing"},
    }
    nameless = Lab(train=(Task("t0"),), missing=frozenset())
    assert slow_update(nameless).pairs[0]["task"] == "t0"


def test_the_optimizer_is_asked_once_with_both_skills_and_the_earlier_guidance() -> None:
    lab = Lab()
    made = slow_update(lab)
    assert (made.content, made.record["reasoning"]) == ("Name the unit first.", "why")
    assert "action" not in made.record
    (request,) = lab.requests
    assert (request.stage, request.messages[0].text) == ("slow_update", "the prompt slow_update")
    headings = [line for line in user_text(lab).split("\n") if line.startswith("## ")]
    assert headings == ["## Previous skill", "## Current skill", "## Previous guidance", "## Comparison"]
    assert "(There is none yet.)" in user_text(lab)
    guided = with_region(CURRENT, "slow_update", "Keep calm.")
    slow_update(lab, last_skill=guided)
    assert "## Previous guidance\n\nKeep calm.\n" in user_text(lab)
    assert "Room left" not in user_text(lab)
    limited = Lab(room_left="20 tokens")
    slow_update(limited)
    assert "## Room left\n\n20 tokens\n" in user_text(limited)
    assert shown(guided) != guided and guided.rstrip() in user_text(lab)


def test_the_meta_skill_is_told_of_the_steps_and_of_earlier_advice() -> None:
    lab = Lab(reply=lambda _: '{"reasoning": "", "meta_skill_content": "Prefer rules to examples.\\n"}')
    epoch = SimpleNamespace(**{**vars(EPOCH), "memory": "Step 3 was rejected.", "meta": "Be brief."})
    assert skillopt_meta_skill(lab, epoch) == "Prefer rules to examples."  # type: ignore[arg-type]
    assert lab.requests[0].stage == "meta_skill"
    assert "## Advice from earlier epochs\n\nBe brief.\n" in user_text(lab)
    assert "## What was tried before\n\nStep 3 was rejected.\n" in user_text(lab)
    assert "## Comparison\n\nOf 12 tasks:" in user_text(lab)
    skillopt_meta_skill(lab, EPOCH)  # type: ignore[arg-type]
    assert "What was tried before" not in user_text(lab) and "(There is none yet.)" in user_text(lab)


def test_pairs_that_do_not_fit_the_context_are_halved_the_most_important_kept() -> None:
    def short(request: ChatRequest) -> str:
        if request.messages[1].text.count("#### Pair") > 3:
            raise ContextTooLong("too long")
        return GUIDED

    lab = Lab(reply=short)
    assert slow_update(lab).content == "Name the unit first."
    assert [user_text(lab, number).count("#### Pair") for number in range(3)] == [12, 6, 3]
    assert "### regressed (3)" in user_text(lab) and "### persistent_fail" not in user_text(lab)
    assert "3 stable_success" in user_text(lab), "the totals stay those of all tasks"


def too_long(_: ChatRequest) -> str:
    raise ContextTooLong("too long")


def down(_: ChatRequest) -> str:
    raise PassingError("the server is down")


@pytest.mark.parametrize(
    ("reply", "error", "asked"),
    [
        (too_long, "context_too_long: ", 4),
        (down, "call_failed: PassingError: the server is down", 1),
        (lambda _: "I would rather talk.", "unusable_reply: ", 2),
        (lambda _: '{"reasoning": "x"}', "unusable_reply: ", 2),
        (lambda _: '{"slow_update_content": ["a"], "meta_skill_content": 3}', "unusable_reply: ", 2),
    ],
)
def test_a_failed_call_is_typed_and_the_pairs_are_kept(
    reply: Callable[[ChatRequest], str], error: str, asked: int
) -> None:
    lab = Lab(reply=reply)
    made = slow_update(lab)
    assert made.content is None and len(made.pairs) == 12
    assert made.record["error"].startswith(error)
    assert len(lab.requests) == asked
    with pytest.raises(ModelError):
        skillopt_meta_skill(lab, EPOCH)  # type: ignore[arg-type]


def test_an_empty_text_is_an_answer_and_no_failure() -> None:
    made = slow_update(Lab(reply=lambda _: '{"reasoning": "all is well", "slow_update_content": " "}'))
    assert made.content is None and "error" not in made.record
    advice = Lab(reply=lambda _: '{"meta_skill_content": ""}')
    assert skillopt_meta_skill(advice, EPOCH) == ""  # type: ignore[arg-type]


def test_a_permanent_error_passes() -> None:
    def refused(_: ChatRequest) -> str:
        raise PermanentError("no key")

    with pytest.raises(PermanentError):
        slow_update(Lab(reply=refused))
