"""The optimizer as a writer of whole skills: what several versions come to, and a rewrite by suggestions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from skillopt_backend_simulated.asked import Asked
from skillopt_backend_simulated.draws import Draws
from skillopt_backend_simulated.world import World


def combined(skill: str, versions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One version of the skill that drops what any of them drops and has what any of them adds."""
    lines = skill.rstrip().splitlines()
    texts = [str(version["new_skill"]).rstrip().splitlines() for version in versions]
    kept = [line for line in lines if all(line in text for text in texts)]
    added = dict.fromkeys(line for text in texts for line in text if line not in lines)
    sources = {version.get("source_type") for version in versions}
    return {
        "title": " and ".join(str(version.get("title") or "a version") for version in versions),
        "change_summary": [change for version in versions for change in version.get("change_summary") or ()],
        "new_skill": _text((*kept, *added)),
        "support_count": sum(version.get("support_count") or 1 for version in versions),
        "source_type": sources.pop() if len(sources) == 1 else "mixed",
    }


def rewrite(world: World, draws: Draws, asked: Asked) -> dict[str, Any]:
    """The skill with the rules that suggestions bring, and without the lines of those that they want removed."""
    present, added, removed = world.rules_in(asked.skill), dict[str, None](), set[str]()
    for suggestion in asked.items("instruction"):
        rules = world.rules_in(str(suggestion["instruction"]))
        if suggestion.get("type") == "remove_rule":
            removed.update(rules)
        else:
            added.update(dict.fromkeys(rule for rule in rules if rule not in present))
    sentences = [world.file.rules[rule].sentence for rule in added]
    lines = [line for line in asked.skill.rstrip().splitlines() if removed.isdisjoint(world.rules_in(line))]
    changes = [f"added: {sentence}" for sentence in sentences]
    changes += [f"removed: {world.file.rules[rule].sentence}" for rule in sorted(removed)]
    return {
        "reasoning": "Every suggestion was followed.",
        "change_summary": changes,
        "new_skill": _text((*lines, *(f"- {sentence}" for sentence in sentences))),
    }


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"
