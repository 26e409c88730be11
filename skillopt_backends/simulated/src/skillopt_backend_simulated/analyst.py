"""The optimizer as an analyst: it reads a group of trajectories and proposes items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from skillopt_backend_simulated.asked import Asked
from skillopt_backend_simulated.draws import Draws
from skillopt_backend_simulated.items import add_rule, payload_of, remove_rule
from skillopt_backend_simulated.reminding import with_reminders
from skillopt_backend_simulated.rewriting import combined
from skillopt_backend_simulated.world import World


def analyse(world: World, draws: Draws, asked: Asked) -> dict[str, Any]:
    """The reply of a failure or a success analyst: {batch_size, what was seen, patch}."""
    trajectories = asked.trajectories
    kinds = Counter(kind for kind in (kind_in(world, text) for text in trajectories) if kind is not None)
    success = "success_patterns" in asked.system
    proposed = [] if success else list(missing_rules(world, draws, asked, kinds))
    proposed += slips(world, draws, asked, [rule for rule, _ in proposed])
    source = "success" if success else "failure"
    items = [add_rule(world, rule, support, source, asked, draws) for rule, support in _shuffled(proposed, draws)]
    items = ([] if success else _removals(world, draws, asked, kinds)) + items
    items = _within_budget(world, draws, asked, items, source)
    if payload_of(asked) == "skill_candidates" and items:
        items = [combined(asked.skill, items)]
    seen: dict[str, Any] = (
        {"success_patterns": [f"questions about {kind} are answered as asked" for kind in kinds]}
        if success
        else {"failure_summary": [_failure(kind, count) for kind, count in kinds.most_common()]}
    )
    reasoning = "Each item states what a kind of question needs." if items else "Nothing new is to be learnt here."
    reply = {"batch_size": len(trajectories), **seen, "patch": {"reasoning": reasoning, payload_of(asked): items}}
    return with_reminders(world, draws, asked, kinds, reply) if "appendix_notes" in asked.system else reply


def kind_in(world: World, text: str) -> str | None:
    question = world.question_in(text)
    return question.kind if question is not None else world.kind_of(text)


def _failure(kind: str, count: int) -> dict[str, Any]:
    return {
        "failure_type": f"rule missing: {kind}",
        "count": count,
        "description": f"the skill does not say enough about questions of the kind {kind}",
    }


def missing_rules(world: World, draws: Draws, asked: Asked, kinds: Counter[str]) -> Iterator[tuple[str, int]]:
    """The rules that failing kinds lack and that the optimizer sees, with how many failures call for each."""
    present = world.rules_in(asked.skill)
    for kind, count in kinds.most_common():
        for rule in world.file.kinds[kind].needs:
            if rule not in present and draws.happens(world.seen_in(count), "insight", rule):
                yield rule, count


def _removals(world: World, draws: Draws, asked: Asked, kinds: Counter[str]) -> list[dict[str, Any]]:
    """Edits that take out a rule by which failing kinds are harmed."""
    found = []
    for rule in world.rules_in(asked.skill):
        harmed = sum(count for kind, count in kinds.items() if world.harm(rule, kind) > 0.0)
        if rule in world.harmful and harmed and draws.happens(world.seen_in(harmed), "removal", rule):
            found.append(remove_rule(world, rule, harmed, asked))
    return [edit for edit in found if edit is not None]


def slips(world: World, draws: Draws, asked: Asked, wanted: list[str]) -> list[tuple[str, int]]:
    """What a good optimizer would not propose: harmful and useless rules, and rules a second time."""
    quality, present, tried = world.file.optimizer, world.rules_in(asked.skill), world.rules_in(asked.tried)
    found = []
    for name, chance, rules in (
        ("harmful", quality.harmful, world.harmful),
        ("distractor", quality.distractors, world.distractors),
    ):
        open_to = [
            rule
            for rule in rules
            if rule not in present and not (rule in tried and draws.happens(quality.memory, "remembered", rule))
        ]
        if open_to and draws.happens(chance, name):
            found.append((draws.pick(open_to, name, "which"), 1))
    again = [*wanted, *present]
    if again and draws.happens(quality.duplicates, "duplicate"):
        found.append((draws.pick(again, "duplicate", "which"), 1))
    return found


def _shuffled(proposed: list[tuple[str, int]], draws: Draws) -> list[tuple[str, int]]:
    order = sorted(range(len(proposed)), key=lambda index: draws.unit("place", index))
    return [proposed[index] for index in order]


def _within_budget(
    world: World, draws: Draws, asked: Asked, items: list[dict[str, Any]], source: str
) -> list[dict[str, Any]]:
    """At most as many items as the prompt allows, unless the optimizer overruns: then one or two more."""
    budget = asked.budget
    if budget is None or not draws.happens(world.file.optimizer.over_budget, "over budget"):
        return items[:budget]
    fillers = world.distractors or tuple(world.file.rules)
    while len(items) <= budget:
        items = [*items, add_rule(world, draws.pick(fillers, "filler", len(items)), 1, source, asked, draws)]
    return items[: budget + 2]
