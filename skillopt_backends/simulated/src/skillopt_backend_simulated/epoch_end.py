"""The optimizer at an epoch's end: guidance for the target and advice to itself, from a comparison of two skills."""

from __future__ import annotations

from collections import Counter
from typing import Any

from skillopt_backend_simulated.analyst import kind_in, missing_rules, slips
from skillopt_backend_simulated.asked import Asked
from skillopt_backend_simulated.draws import Draws
from skillopt_backend_simulated.world import World


def guide(world: World, draws: Draws, asked: Asked) -> dict[str, Any]:
    """The reply of a slow update: what the earlier guidance had right, and what failing kinds lack.

    It slips as an analyst does: a harmful or useless rule may be in it.
    """
    quality, useless = world.file.optimizer, {*world.harmful, *world.distractors}
    texts = asked.pairs("regressed", "persistent_fail")
    kinds = Counter(kind for kind in (kind_in(world, text) for text in texts) if kind is not None)
    earlier = world.rules_in(asked.section("Previous guidance"))
    kept = [rule for rule in earlier if rule not in useless or not draws.happens(quality.insight, "dropped", rule)]
    wanted = [rule for rule, _ in missing_rules(world, draws, asked, kinds)]
    slipped = [rule for rule, _ in slips(world, draws, asked, wanted)]
    sentences = [world.file.rules[rule].sentence for rule in dict.fromkeys((*kept, *wanted, *slipped))]
    failing = ", ".join(kinds) or "no kind of question"
    return {
        "reasoning": f"What still fails: {failing}.",
        "slow_update_content": "\n".join(f"- {sentence}" for sentence in sentences),
    }


def advise(world: World, draws: Draws, asked: Asked) -> dict[str, Any]:
    """The reply of a meta skill: which rules not to propose again, those of the earlier advice included."""
    useless = {*world.harmful, *world.distractors}
    earlier = world.rules_in(asked.section("Advice from earlier epochs"))
    seen = world.rules_in(f"{asked.skill}\n{asked.tried}")
    blamed = [
        world.file.rules[rule].sentence
        for rule in seen
        if rule in useless and (rule in earlier or draws.happens(world.file.optimizer.insight, "blamed", rule))
    ]
    lines = ["Edits that state one rule for one kind of question help most."]
    return {
        "reasoning": f"{len(blamed)} rules help no kind of question.",
        "meta_skill_content": "\n".join([*lines, *(f"- Do not propose again: {sentence}" for sentence in blamed)]),
    }
