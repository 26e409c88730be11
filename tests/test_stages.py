"""The plain functions behind the stages, with the update mode `patch` and an optimizer whose replies are given."""

import json
import logging
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from skillopt_kernel.config.schema import GradientSettings
from skillopt_kernel.loop.memory import failure_patterns, remember
from skillopt_kernel.models.asking import ModelOptimizer
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_kernel.stages.evidence import trajectory_block
from skillopt_kernel.stages.reflect import make_minibatches, read_reply

from skillopt_core import (
    ChatReply,
    ChatRequest,
    DriverContext,
    Edit,
    EditBudget,
    FailurePattern,
    GateDecision,
    Outcome,
    PassingError,
    PermanentError,
    Proposal,
    Score,
    Update,
    compute_score,
    evaluate_gate,
    merge_patches,
    rank_and_select,
)

SKILL = "# Answering\n\n- Be short.\n"
MODE = make_driver("update", "patch", None, DriverContext(logger=logging.getLogger("test")))


class Asked:
    """An optimizer for every call site; `answer` makes a reply of a request. Keeps what it was asked."""

    def __init__(self, answer: Callable[[ChatRequest], str]) -> None:
        self.answer, self.requests = answer, list[ChatRequest]()

    def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        return ChatReply(self.answer(request))

    def __call__(self, key: str) -> Any:
        return ModelOptimizer(self.complete, stage="merge")


def prompt(name: str, **values: str) -> str:
    return f"{name}: {values.get('budget', '')}"


def edits(*contents: str) -> tuple[Edit, ...]:
    return tuple(Edit("append", content) for content in contents)


def proposal(number: int, source: Any = "failure", *contents: str) -> Proposal:
    return Proposal(f"group_{number}", source, edits(*(contents or (f"- rule {number}",))))


def joined(request: ChatRequest) -> str:
    """Merges by keeping every edit that it was given, once."""
    found = [json.loads(line) for line in _objects(request.messages[-1].text)]
    kept = {one["content"]: one for one in found if one.get("op") == "append"}
    return json.dumps({"reasoning": "", "edits": list(kept.values())})


def _objects(text: str) -> list[str]:
    decoder, found, at = json.JSONDecoder(), [], text.find("## Patches")
    while (at := text.find("[", at)) >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
            found += [json.dumps(one) for one in value if isinstance(one, dict)]
            at = end
        except ValueError:
            at += 1
    return found


def merge(proposals: list[Proposal], asked: Asked, batch_size: int = 8) -> Update:
    return merge_patches(proposals, SKILL, mode=MODE, optimizer=asked, prompt=prompt, batch_size=batch_size, workers=3)


def contents(update: Update) -> list[str]:
    return [item.content for item in update.items]


def test_one_proposal_is_passed_on_without_a_call() -> None:
    asked = Asked(joined)
    assert contents(merge([proposal(1)], asked)) == ["- rule 1"]
    assert contents(merge([], asked)) == []
    assert not asked.requests


def merges(asked: Asked) -> list[str]:
    """Which prompts the merge calls had; those of one level are made at the same time."""
    return [request.messages[0].text.partition(":")[0] for request in asked.requests]


def test_two_sides_are_merged_by_one_call_failures_first_where_all_fits() -> None:
    asked = Asked(joined)
    update = merge([proposal(1), proposal(2, "success"), proposal(3), proposal(4, "success")], asked)
    assert contents(update) == ["- rule 1", "- rule 3", "- rule 2", "- rule 4"]
    assert merges(asked) == ["merge_final"]
    message = asked.requests[0].messages[-1].text
    sides = ["failures", "failures", "successes", "successes"]
    assert all(f"Patch {at} (from {side})" in message for at, side in enumerate(sides, 1))
    assert not update.errors


@pytest.mark.parametrize(
    ("failures", "successes", "batch_size", "calls"),
    [
        (2, 0, 8, ["merge_failure"]), (0, 3, 8, ["merge_success"]), (1, 1, 8, ["merge_final"]),
        (4, 4, 8, ["merge_final"]), (9, 0, 8, ["merge_failure", "merge_failure"]),
        (8, 1, 8, ["merge_failure", "merge_final"]), (9, 1, 8, ["merge_failure", "merge_final"]),
        (1, 2, 2, ["merge_final", "merge_success"]),
        (3, 3, 3, ["merge_failure", "merge_final", "merge_success"]),
        (4, 3, 2, ["merge_failure"] * 3 + ["merge_final"] + ["merge_success"] * 2),
    ],
)  # fmt: skip
def test_no_more_calls_are_made_than_the_size_of_a_merge_asks_for(
    failures: int, successes: int, batch_size: int, calls: list[str]
) -> None:
    asked = Asked(joined)
    given = [proposal(number) for number in range(failures)]
    given += [proposal(failures + number, "success") for number in range(successes)]
    update = merge(given, asked, batch_size)
    assert sorted(merges(asked)) == calls
    assert contents(update) == [f"- rule {number}" for number in range(failures + successes)]


@pytest.mark.parametrize("batch_size", [1, 0, -3, 2, 3, 8])
def test_merging_ends_for_any_batch_size_and_loses_nothing(batch_size: int) -> None:
    """O-M4."""
    update = merge([proposal(number) for number in range(5)], Asked(joined), batch_size)
    assert contents(update) == [f"- rule {number}" for number in range(5)]


@pytest.mark.parametrize(
    "reply",
    ['{"edits": null}', '{"edits": ["text"]}', '{"edits": []}', "no JSON at all", '{"edits": [{"op": "explode"}]}'],
)
def test_a_merge_that_comes_to_nothing_keeps_its_inputs_and_says_so(reply: str) -> None:
    update = merge([proposal(1), proposal(2)], Asked(lambda request: reply))
    assert contents(update) == ["- rule 1", "- rule 2"]
    assert [error.partition(":")[0] for error in update.errors] == ["unusable_reply"]


def test_a_failed_call_is_told_apart_from_a_bad_reply_and_a_permanent_one_ends_the_run() -> None:
    def fail(request: ChatRequest) -> str:
        raise PassingError("503 from the endpoint")

    update = merge([proposal(1), proposal(2)], Asked(fail))
    assert update.errors == ("call_failed: PassingError: 503 from the endpoint",)

    def refuse(request: ChatRequest) -> str:
        raise PermanentError("no key; set one")

    with pytest.raises(PermanentError):
        merge([proposal(1), proposal(2)], Asked(refuse))


def test_levels_are_recorded_and_unreadable_items_reported() -> None:
    def answer(request: ChatRequest) -> str:
        return json.dumps({"edits": [{"op": "append", "content": "- a"}, {"op": "explode"}]})

    update = merge([proposal(1), proposal(2)], Asked(answer))
    assert [item.merge_level for item in update.items] == [1]
    assert [report.status for report in update.set_aside] == ["invalid"]


def select(update: Update, limit: int | None, reply: str | Exception = "{}") -> tuple[Update, Asked]:
    def answer(request: ChatRequest) -> str:
        if isinstance(reply, Exception):
            raise reply
        return reply

    asked = Asked(answer)
    chosen = rank_and_select(update, EditBudget(limit), SKILL, mode=MODE, optimizer=asked("ranking"), prompt=prompt)
    return chosen, asked


SIX = Update(items=edits(*(f"- rule {number}" for number in range(6))))


def test_nothing_is_asked_when_all_fit_or_none_may_be_applied() -> None:
    for limit in (None, 6, 9, 0):
        chosen, asked = select(SIX, limit)
        assert not asked.requests
        assert len(chosen.items) == (0 if limit == 0 else 6)
        assert len(chosen.over_budget) == (6 if limit == 0 else 0)


def test_the_ranking_is_taken_in_its_order_and_the_budget_binds() -> None:
    """O-E7."""
    chosen, _ = select(SIX, 4, '{"selected_indices": [5, 5, 2, true, 99, -1, 0, "3", 1, 4]}')
    assert contents(chosen) == ["- rule 5", "- rule 2", "- rule 0", "- rule 1"]
    assert [item.content for item in chosen.over_budget] == ["- rule 3", "- rule 4"]
    fewer, _ = select(SIX, 4, '{"selected_indices": [3]}')
    assert contents(fewer) == ["- rule 3"]


@pytest.mark.parametrize(
    "reply", ["prose", '{"selected_indices": []}', '{"selected_indices": null}', PassingError("x")]
)
def test_a_ranking_that_fails_leaves_the_first_items_and_says_so(reply: str | Exception) -> None:
    chosen, _ = select(SIX, 2, reply)
    assert contents(chosen) == ["- rule 0", "- rule 1"]
    assert len(chosen.errors) == 1


def test_scores_are_never_cut_to_zero_or_one() -> None:
    """O-G4, O-G6."""
    assert compute_score([{"hard": h, "soft": h} for h in (0.75, 0.2, 1.0, 0)]) == (0.4875, 0.4875)
    assert [
        evaluate_gate(*numbers) for numbers in ((0.5, 0.5, 0.5), (0.6, 0.5, 0.6), (0.7, 0.5, 0.6), (0.4, 0.5, 0.6))
    ] == [
        "reject",
        "accept",
        "accept_new_best",
        "reject",
    ]


@pytest.mark.parametrize(
    ("candidate", "current", "best", "action"),
    [
        (0.9, 0.5, 0.5, "accept_new_best"), (0.6, 0.4, 0.8, "accept"), (0.8, 0.5, 0.8, "accept"),
        (0.5, 0.5, 0.5, "reject"), (0.2, 0.5, 0.5, "reject"),
    ],
)  # fmt: skip
def test_the_vectors_of_the_gate(candidate: float, current: float, best: float, action: str) -> None:
    assert evaluate_gate(candidate, current, best) == action


def outcome(name: str, hard: float | None) -> Outcome:
    return Outcome(name, "", "h", 1, score=None if hard is None else Score(hard, hard))


def test_groups_hold_only_scored_outcomes_failures_apart_from_successes() -> None:
    outcomes = [outcome(f"t{n}", hard) for n, hard in enumerate([0, 1, 0.2, 0, None, 1, 0])]
    groups = make_minibatches(outcomes, size=2, seed=43, failure_only=False)
    assert [(group.name, len(group.outcomes)) for group in groups] == [
        ("fail_000", 2), ("fail_001", 1), ("succ_000", 2), ("succ_001", 1),
    ]  # fmt: skip
    assert {one.task_id for group in groups for one in group.outcomes} == {"t0", "t1", "t2", "t3", "t5", "t6"}
    assert all(one.hard == 0 for group in groups[:2] for one in group.outcomes)
    only = make_minibatches(outcomes, size=2, seed=43, failure_only=True)
    assert [group.name for group in only] == ["fail_000", "fail_001"]
    shuffled = random.Random(43)
    order = [o for o in outcomes if o.scored and o.hard == 0]
    shuffled.shuffle(order)
    assert [one.task_id for group in groups[:2] for one in group.outcomes] == [one.task_id for one in order]


def test_attempts_at_one_task_stand_side_by_side_and_tell_how_many_were_solved() -> None:
    outcomes = [outcome(f"t{n}", hard) for n in range(4) for hard in (0, 1 if n else 0, None if n == 3 else 0)]
    groups = make_minibatches(outcomes, size=3, seed=5, failure_only=False)
    failed = [one.task_id for group in groups if group.source == "failure" for one in group.outcomes]
    assert sorted(failed) == ["t0"] * 3 + ["t1"] * 2 + ["t2"] * 2 + ["t3"]
    assert failed == [task for task in dict.fromkeys(failed) for _ in range(failed.count(task))]
    assert groups[0].solved == {"t0": (0, 3), "t1": (1, 3), "t2": (1, 3), "t3": (1, 2)}
    assert all(len(set(group.task_ids)) == len(group.task_ids) for group in groups)
    assert groups[0].halves()[1].solved == groups[0].solved
    assert make_minibatches([outcome("t", 0)], size=3, seed=5, failure_only=True)[0].solved == {}


def test_failures_are_those_below_the_configured_score() -> None:
    """O-G4."""
    outcomes = [outcome(f"t{n}", hard) for n, hard in enumerate((0.75, 0.2, 1.0, 0))]

    def failed(below: float) -> set[str]:
        groups = make_minibatches(outcomes, size=4, seed=1, failure_only=True, failure_below=below)
        return {one.task_id for group in groups for one in group.outcomes}

    assert [failed(below) for below in (GradientSettings().failure_below, 0.2, 0.5, 0.75, 1.0)] == [
        {"t3"}, {"t3"}, {"t1", "t3"}, {"t1", "t3"}, {"t0", "t1", "t3"},
    ]  # fmt: skip
    step = SimpleNamespace(outcomes=outcomes, applied=None, proposals=(), number=3)
    entry = remember(step, MODE, GateDecision("skip_no_patches", SKILL), 0.5)
    assert (entry.n_fail, entry.n_total) == (2, 4)


def test_an_analyst_is_told_why_a_partial_success_is_a_failure() -> None:
    def told(hard: float, **gradient: Any) -> str:
        run = SimpleNamespace(
            whole=lambda one: one,
            evidence=lambda _: {},
            settings=SimpleNamespace(gradient=GradientSettings(**gradient)),
        )
        return trajectory_block(run, 1, outcome("t", hard), SKILL)

    assert "Score: hard 0.5, soft 0.50 (a failure: hard is below 0.6)\n" in told(0.5, failure_below=0.6)
    assert all("a failure" not in text for text in (told(0.5), told(0.6, failure_below=0.6), told(0.0)))


def test_a_failure_pattern_keeps_the_tasks_of_its_own_group() -> None:
    first = Proposal("fail_000", "failure", failures=(FailurePattern("timeout", 2, "stalled", ("a", "b")),))
    second = Proposal(
        "fail_001", "failure",
        failures=(FailurePattern("format", 1, "", ("c",)), FailurePattern("timeout", 1, "later", ("c",))),
    )  # fmt: skip
    assert failure_patterns([first, second]) == (
        {"pattern": "timeout", "description": "stalled", "count": 3, "task_ids": ["a", "b", "c"]},
        {"pattern": "format", "description": "", "count": 1, "task_ids": ["c"]},
    )


def test_failures_that_no_analyst_named_are_told_by_the_beginning_of_their_feedback() -> None:
    """A step whose analysts gave nothing usable still tells what failed."""
    unread = Proposal("fail_000", "failure", task_ids=("a", "b", "d"), error="unusable_reply: no JSON")
    named = Proposal("fail_001", "failure", task_ids=("c",), failures=(FailurePattern("timeout", 1, "", ("c",)),))
    told = {"a": "timeout: command stalled", "b": "wrong unit", "c": "other: x", "d": ""}
    failed = [Outcome(name, "", "h", 1, score=Score(0.0, 0.0, text)) for name, text in told.items()]
    assert failure_patterns([unread, named], failed) == (
        {"pattern": "timeout", "description": "", "count": 2, "task_ids": ["c", "a"]},
        {"pattern": "wrong unit", "description": "", "count": 1, "task_ids": ["b"]},
    )


@pytest.mark.parametrize("patch", [{}, {"patch": None}, {"patch": {}}, {"patch": {"edits": []}}, {"edits": []}])
def test_notes_need_no_patch_where_they_were_asked_for_and_are_passed_over_elsewhere(patch: dict[str, Any]) -> None:
    reply = {**patch, "appendix_notes": [" a ", {"note": "b"}, {"content": "c"}, "", 5]}
    empty = Proposal("fail_000", "failure")
    read = read_reply(MODE, empty, reply, 4, with_notes=True)
    assert (read.items, read.notes) == ((), ("a", "b", "c"))
    if patch.get("patch", patch):
        assert read_reply(MODE, empty, reply, 4).notes == ()
