"""Aggregate: merge the proposals hierarchically, failures first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from skillopt_kernel.errors import ModelError
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Optimizer, Run, Step, UpdateMode
from skillopt_kernel.records import Proposal, Update
from skillopt_kernel.stages.asking import failure_sentence, in_parallel, payload_problem, read_items
from skillopt_kernel.stages.evidence import items_as_json, joined, schema_text, section, skill_section

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

    Proposals of failures are merged in groups of `batch_size` until one is left, those of successes likewise,
    then both with each other, failures first. One proposal alone costs no call. A merge that fails, or that
    answers with nothing where there was something, falls back to its inputs in order; `Update.errors` says so.
    Terminates for any `batch_size`: below 2 it counts as 2.
    """
    merger = Merger(skill, mode, optimizer, prompt, max(2, batch_size), workers, meta, room)
    patches = [(p.source == "success", Update(p.items, p.reasoning)) for p in proposals if p.items]
    failures = merger.tree([patch for success, patch in patches if not success], "merge_failure")
    successes = merger.tree([patch for success, patch in patches if success], "merge_success")
    merged = merger.merge([failures, successes], "merge_final", 0, "merge_final")
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

    def tree(self, patches: list[Update], prompt: str, level: int = 1) -> Update:
        """Merge level by level until one patch is left; groups keep their order, single ones pass through."""
        if len(patches) <= 1:
            return patches[0] if patches else Update(())
        groups = [patches[at : at + self.batch_size] for at in range(0, len(patches), self.batch_size)]
        merged = in_parallel(
            self.workers,
            lambda group: self.merge(group[1], prompt, level, f"{prompt}-{level}-{group[0]}"),
            list(enumerate(groups)),
        )
        return self.tree(merged, prompt, level + 1)

    def merge(self, group: Sequence[Update], prompt: str, level: int, key: str) -> Update:
        """One merge call: the merged items, or the inputs in order and why. A patch beside empty ones costs no call."""
        errors = tuple(error for patch in group for error in patch.errors)
        aside = tuple(report for patch in group for report in patch.set_aside)
        given = Update(tuple(item for patch in group for item in patch.items), errors=errors, set_aside=aside)
        if sum(bool(patch.items) for patch in group) <= 1:
            return given
        system = self.prompt(prompt, level=str(level), schema=schema_text(self.mode), payload=self.mode.payload)
        payload = self.mode.payload
        try:
            reply = self.optimizer(key).ask_json(
                system, self._message(group, prompt), check=lambda value: payload_problem(value, payload)
            )
        except ModelError as error:
            return attrs.evolve(given, errors=(*errors, failure_sentence(error)))
        items, invalid = read_items(self.mode, reply[payload])
        if not items:
            kept = "unusable_reply: the merge answered with no readable item; its inputs were kept"
            return attrs.evolve(given, errors=(*errors, kept), set_aside=aside + invalid)
        return Update(tuple(_at_level(item, level) for item in items), errors=errors, set_aside=aside + invalid)

    def _message(self, group: Sequence[Update], prompt: str) -> str:
        names = [" (from failures)", " (from successes)"] if prompt == "merge_final" else [""] * len(group)
        blocks = [
            f"### Patch {number}{name}: {len(patch.items)} items\n\n{items_as_json(self.mode, patch.items)}"
            for number, (name, patch) in enumerate(zip(names, group, strict=True), 1)
        ]
        return joined(
            skill_section(self.skill),
            section("Room left", self.room),
            section("Advice from earlier epochs", self.meta),
            section(f"Patches ({len(group)})", "\n\n".join(blocks)),
        )


def _at_level(item: Any, level: int) -> Any:
    if level and "merge_level" in {field.name for field in attrs.fields(type(item))}:
        return attrs.evolve(item, merge_level=level)
    return item
