"""The optimizer: which kind of call a request is, and what the reply holds."""

from __future__ import annotations

import json
import re
from typing import Any

from skillopt_backend_simulated.analyst import analyse
from skillopt_backend_simulated.asked import Asked
from skillopt_backend_simulated.draws import Draws
from skillopt_backend_simulated.epoch_end import advise, guide
from skillopt_backend_simulated.items import PAYLOADS, identity_of, payload_of, worth
from skillopt_backend_simulated.reminding import consolidate
from skillopt_backend_simulated.rewriting import combined, rewrite
from skillopt_backend_simulated.world import World


def optimizer_reply(world: World, draws: Draws, asked: Asked) -> str:
    """The reply to one optimizer call as JSON text, by the stage that the request names.

    A stage that is not known gets an object with every key that a stage may look for.
    """
    calls = {
        "analyst": analyse, "merge": merge, "ranking": rank, "rewrite": rewrite,
        "slow_update": guide, "meta_skill": advise, "appendix_consolidate": consolidate,
    }  # fmt: skip
    reply = calls.get(asked.stage, other)(world, draws, asked)
    return json.dumps(reply, ensure_ascii=False, indent=1)


def merge(world: World, draws: Draws, asked: Asked) -> dict[str, Any]:
    """The items of all patches: what says the same once, its support added up, the best supported first."""
    payload = payload_of(asked)
    if payload == "skill_candidates":
        return {"reasoning": "All changes were taken over.", payload: [combined(asked.skill, asked.items("new_skill"))]}
    kept: dict[str, dict[str, Any]] = {}
    for number, item in enumerate(asked.items(PAYLOADS[payload])):
        name = identity_of(world, item)
        if name in kept and not draws.happens(world.file.optimizer.merging, "merging", number):
            name = f"{name} {number}"
        earlier = kept.get(name)
        if earlier is None:
            kept[name] = dict(item)
        else:
            earlier["support_count"] = (earlier.get("support_count") or 1) + (item.get("support_count") or 1)
    items = sorted(kept.values(), key=lambda item: -(item.get("support_count") or 0))
    return {"reasoning": "Items that say the same were joined.", payload: items}


def rank(world: World, draws: Draws, asked: Asked) -> dict[str, Any]:
    """The indices of the candidates from the most useful to the least, as far as the optimizer sees it."""
    judged = _judged(world, draws, asked)
    best = sorted(range(len(judged)), key=lambda index: (-judged[index], index))
    return {"reasoning": "Rules that more tasks lack come first.", "selected_indices": best[: asked.budget]}


def _judged(world: World, draws: Draws, asked: Asked) -> list[float]:
    """What each candidate seems worth: seen rightly with the chance `ranking`, else guessed."""
    present = world.rules_in(asked.skill)
    values = []
    for index, text in enumerate(asked.candidates):
        deletes = re.match(r"\[\d+\] (?:op=)?(?:delete|remove_rule)\b", text) is not None
        support = re.search(r"\bsupport=(\d+)", text)
        seen = draws.happens(world.file.optimizer.ranking, "ranking", index)
        value = worth(world, text, deletes, present) if seen else 3.0 * draws.unit("guess", index) - 1.0
        values.append(value + (min(int(support.group(1)), 99) / 1000 if support else 0.0))
    return values


def other(world: World, draws: Draws, asked: Asked) -> dict[str, Any]:
    """Guidance, advice and a number of edits, from the rules that the text calls for."""
    worthy = sum(value > 1.0 for value in _judged(world, draws, asked))
    return {
        **guide(world, draws, asked),
        **advise(world, draws, asked),
        "learning_rate": worthy,
        "confidence": "medium",
        "risk_notes": "",
        "appendix_notes": [],
    }
