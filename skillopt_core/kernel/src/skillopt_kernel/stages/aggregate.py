"""Aggregate: merge the proposals in as few calls as they fit into, failures first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from skillopt_kernel.errors import ModelError
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Optimizer, Run, Step, UpdateMode
from skillopt_kernel.records import Proposal, Source, Update
from skillopt_kernel.stages.asking import failure_sentence, in_parallel, payload_problem, read_items
from skillopt_kernel.stages.evidence import items_as_json, joined, schema_text, section, skill_section

Group = Sequence[tuple[Source, Update]]
"""Patches, each with the side that it is from."""

SIDES: Mapping[Source, str] = {"failure": "failures", "success": "successes"}

Prompts = Callable[..., str]
"""`prompt(name, **values)`: one of the update mode's prompts with its variables filled."""


@hookimpl(trylast=True)
def skillopt_aggregate(run: Run, step: Step, proposals: tuple[Proposal, ...], skill: str) -> Update:
    return merge_patches(
        proposals,
        skill,
        mode=run.mode,
        optimizer=lambda key: run.optimizer("merge", key=key),
        prompt=run.prompt,
        batch_size=run.settings.gradient.merge_batch_size,
        workers=run.settings.gradient.analyst_workers,
        meta=step.meta,
        room=run.room(skill),
    )


def merge_patches(
    proposals: Sequence[Proposal],
    skill: str,
    *,
    mode: UpdateMode,
    optimizer: Callable[[str], Optimizer],
    prompt: Prompts,
    batch_size: int = 8,
    workers: int = 1,
    meta: str = "",
    room: str = "",
) -> Update:
    """Merge the items of all proposals into one update.

    What comes from failures and what comes from successes is merged by one call where all of it fits: at most
    `batch_size` proposals. While it does not, both sides are cut into groups of so many, each merged by a call of its
    own, all at the same time. One proposal alone costs no call. A merge that fails, or that answers with nothing where
    there was something, falls back to its inputs in order; `Update.errors` says so.
    Terminates for any `batch_size`: below 2 it counts as 2.
    """
    merger = Merger(skill, mode, optimizer, prompt, max(2, batch_size), workers, meta, room)
    patches = [(one.source, Update(one.items, one.reasoning)) for one in proposals if one.items]
    merged = merger.whole(sorted(patches, key=lambda patch: patch[0]))  # failures first, in the alphabet too
    return attrs.evolve(
        merged,
        reasoning="\n".join(proposal.reasoning for proposal in proposals if proposal.reasoning),
        set_aside=(*(report for proposal in proposals for report in proposal.set_aside), *merged.set_aside),
    )


@attrs.frozen
class Merger:
    """The merge calls of one step. What is merged are updates, so that what went wrong is handed on with them."""

    skill: str
    mode: UpdateMode
    optimizer: Callable[[str], Optimizer]
    prompt: Prompts
    batch_size: int
    workers: int
    meta: str
    room: str

    def whole(self, patches: Group, level: int = 1) -> Update:
        """Merge level by level until one call can merge what is left; groups keep their order, single ones pass."""
        size = self.batch_size
        if len(patches) <= size:
            return self.merge(patches, level, 0)
        sides = [[patch for patch in patches if patch[0] == source] for source in SIDES]
        groups = [side[at : at + size] for side in sides for at in range(0, len(side), size)]
        merged = in_parallel(self.workers, lambda one: self.merge(one[1], level, one[0]), list(enumerate(groups)))
        return self.whole([(group[0][0], one) for group, one in zip(groups, merged, strict=True)], level + 1)

    def merge(self, patches: Group, level: int, number: int) -> Update:
        """One merge call: the merged items, or the inputs in order and why. A patch beside empty ones costs no call."""
        group = [patch for _, patch in patches]
        errors = tuple(error for patch in group for error in patch.errors)
        aside = tuple(report for patch in group for report in patch.set_aside)
        given = Update(tuple(item for patch in group for item in patch.items), errors=errors, set_aside=aside)
        if sum(bool(patch.items) for patch in group) <= 1:
            return given
        sides = {source for source, _ in patches}
        prompt = f"merge_{sides.pop()}" if len(sides) == 1 else "merge_final"
        system = self.prompt(prompt, level=str(level), schema=schema_text(self.mode), payload=self.mode.payload)
        payload = self.mode.payload
        try:
            optimizer, message = self.optimizer(f"{prompt}-{level}-{number}"), self._message(patches)
            reply = optimizer.ask_json(system, message, check=lambda value: payload_problem(value, payload))
        except ModelError as error:
            return attrs.evolve(given, errors=(*errors, failure_sentence(error)))
        items, invalid = read_items(self.mode, reply[payload])
        if not items:
            kept = "unusable_reply: the merge answered with no readable item; its inputs were kept"
            return attrs.evolve(given, errors=(*errors, kept), set_aside=aside + invalid)
        return Update(tuple(_at_level(item, level) for item in items), errors=errors, set_aside=aside + invalid)

    def _message(self, patches: Group) -> str:
        blocks = [
            f"### Patch {at} (from {SIDES[source]}): {len(one.items)} items\n\n{items_as_json(self.mode, one.items)}"
            for at, (source, one) in enumerate(patches, 1)
        ]
        return joined(
            skill_section(self.skill),
            section("Room left", self.room),
            section("Advice from earlier epochs", self.meta),
            section(f"Patches ({len(patches)})", "\n\n".join(blocks)),
        )


def _at_level(item: Any, level: int) -> Any:
    if level and "merge_level" in {field.name for field in attrs.fields(type(item))}:
        return attrs.evolve(item, merge_level=level)
    return item
