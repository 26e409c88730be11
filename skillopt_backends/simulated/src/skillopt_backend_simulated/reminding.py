"""The optimizer where it is asked for notes: lapses told from defects, reminders, and notes that say the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

from skillopt_backend_simulated.asked import Asked
from skillopt_backend_simulated.draws import Draws
from skillopt_backend_simulated.items import payload_of
from skillopt_backend_simulated.world import World, plain

FORMS = ("Before you answer, remember: {}", "Do not forget what the skill says: {}", "Check each answer: {}")
"""How a reminder is worded, so that two analysts do not write the same one in the same words."""


def reminders(world: World, draws: Draws, asked: Asked, kinds: Counter[str]) -> list[str]:
    """A note for each rule that a kind of these trajectories needs and the skill states, but no note recalls."""
    stated, recalled = world.rules_in(asked.skill), world.rules_recalled(asked.skill)
    notes: dict[str, str] = {}
    for kind, count in kinds.most_common():
        for rule in world.file.kinds[kind].needs:
            if rule in stated and rule not in recalled and draws.happens(world.seen_in(count), "lapse", rule):
                notes[rule] = draws.pick(FORMS, "reminder", rule).format(world.file.rules[rule].sentence)
    return list(notes.values())


def with_reminders(
    world: World, draws: Draws, asked: Asked, kinds: Counter[str], reply: dict[str, Any]
) -> dict[str, Any]:
    """An analyst's reply with notes, and each failure under the word for its cause. Notes need no patch beside them."""
    stated = world.rules_in(asked.skill)
    for failure, (kind, _) in zip(reply.get("failure_summary", ()), kinds.most_common(), strict=False):
        lapse = all(rule in stated for rule in world.file.kinds[kind].needs)
        failure["description"] = f"{'EXECUTION_LAPSE' if lapse else 'SKILL_DEFECT'}: {failure['description']}"
    notes = reminders(world, draws, asked, kinds)
    if notes and not reply["patch"][payload_of(asked)]:
        del reply["patch"]
    return {**reply, "appendix_notes": notes}


def consolidate(world: World, draws: Draws, asked: Asked) -> dict[str, Any]:
    """The notes, the first of those that recall the same rules; a duplicate is seen with the chance `merging`."""
    kept: dict[str, str] = {}
    for number, note in enumerate(asked.notes):
        name = " ".join(world.rules_in(note)) or plain(note)
        if name in kept and not draws.happens(world.file.optimizer.merging, "merging", number):
            name = f"{name} {number}"
        kept.setdefault(name, note)
    return {"appendix_notes": list(kept.values())}
