"""Items of an update as a simulated optimizer writes and reads them, in the form that a prompt asks for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from skillopt_backend_simulated.asked import Asked
from skillopt_backend_simulated.draws import Draws
from skillopt_backend_simulated.world import World, plain

PAYLOADS = {"revise_suggestions": "instruction", "skill_candidates": "new_skill", "edits": "op"}
"""Key of the list that a prompt asks for -> a key that each of its items has. The first one named wins."""

_PROTECTED = re.compile(r"<!-- (\w+)_START -->.*?<!-- \1_END -->", re.DOTALL)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def payload_of(asked: Asked) -> str:
    return next((payload for payload in PAYLOADS if payload in asked.system), "edits")


def add_rule(world: World, rule: str, support: int, source: str, asked: Asked, draws: Draws) -> dict[str, Any]:
    """An item that adds the rule. An edit is appended or set behind a line of the skill, as the draw falls."""
    sentence = world.file.rules[rule].sentence
    told = {"support_count": support, "source_type": source}
    payload = payload_of(asked)
    if payload == "revise_suggestions":
        return {
            "type": "add_rule",
            "title": f"Add the rule {rule}",
            "motivation": f"{support} tasks lacked it.",
            "instruction": f"- {sentence}",
            "priority_hint": "high" if support > 1 else "medium",
            **told,
        }
    if payload == "skill_candidates":
        text = f"{asked.skill.rstrip()}\n- {sentence}\n"
        return {"title": f"With {rule}", "change_summary": [f"added {rule}"], "new_skill": text, **told}
    edit: dict[str, Any] = {"op": "append", "content": f"- {sentence}", **told}
    anchors = anchors_of(asked.skill)
    if draws.happens(world.file.optimizer.bad_anchors, "bad anchor", rule):
        edit |= {"op": "insert_after", "target": f"## What is known about {rule}"}
    elif anchors and draws.happens(0.5, "anchored", rule):
        edit |= {"op": "insert_after", "target": draws.pick(anchors, "anchor", rule)}
    return edit


def remove_rule(world: World, rule: str, support: int, asked: Asked) -> dict[str, Any] | None:
    """An item that takes out the line with the rule; `None` where no line of its own holds it."""
    sentence = plain(world.file.rules[rule].sentence).rstrip(".")
    lines = [line for line in anchors_of(asked.skill) if sentence in plain(line)]
    if not lines:
        return None
    told = {"support_count": support, "source_type": "failure"}
    payload = payload_of(asked)
    if payload == "revise_suggestions":
        title, motivation = f"Remove the rule {rule}", f"{support} tasks were harmed by it."
        return {"type": "remove_rule", "title": title, "motivation": motivation, "instruction": lines[0], **told}
    if payload == "skill_candidates":
        kept = [line for line in asked.skill.splitlines() if line != lines[0]]
        text = "\n".join(kept) + "\n"
        return {"title": f"Without {rule}", "change_summary": [f"removed {rule}"], "new_skill": text, **told}
    return {"op": "delete", "target": lines[0], **told}


def anchors_of(skill: str) -> list[str]:
    """The lines of lists that stand once in the skill, outside front matter and protected regions."""
    body = _PROTECTED.sub("", _FRONT_MATTER.sub("", skill))
    return [line for line in body.splitlines() if line.startswith("- ") and skill.count(line) == 1]


def text_of(item: Mapping[str, Any]) -> str:
    """What an item says, whatever its form."""
    return "\n".join(str(item.get(key) or "") for key in ("content", "instruction", "new_skill", "target"))


def identity_of(world: World, item: Mapping[str, Any]) -> str:
    """Equal for two items that say the same: what is done, and the rules or else the words."""
    deletes = "delete" if item.get("op") == "delete" or item.get("type") == "remove_rule" else "write"
    said = text_of(item) if deletes == "delete" else text_of({**item, "target": ""})
    return f"{deletes} {' '.join(world.rules_in(said)) or plain(said)}"


def worth(world: World, text: str, deletes: bool, present: tuple[str, ...]) -> float:
    """What an item is worth: 2 a rule that is lacking or a harm removed, 0 nothing new, -1 a harm."""
    rules = world.rules_in(text)
    if deletes:
        return 2.0 if rules and all(rule in world.harmful for rule in rules) else -1.0
    values = [
        -1.0 if rule in world.harmful else 2.0 if rule in world.helpful and rule not in present else 0.0
        for rule in rules
    ]
    return sum(values) / len(values) if values else 0.5
