"""Aggregate: merge the proposals hierarchically, failures first."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import attrs

from skillopt_kernel.errors import ModelError, SkillOptError
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Optimizer, Run, Step, UpdateMode
from skillopt_kernel.records import ItemReport, Proposal, Update
from skillopt_kernel.stages.asking import failure_sentence, in_parallel, payload_problem, read_items
from skillopt_kernel.stages.evidence import items_as_json, schema_text, section, skill_section

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
) -> Update:
    """Merge the items of all proposals into one update.

    Proposals of failures are merged in groups of `batch_size` until one is left, those of successes likewise,
    then both with each other, failures first. One proposal alone costs no call. A merge that fails, or that
    answers with nothing where there was something, falls back to its inputs in order; `Update.errors` says so.
    Terminates for any `batch_size`: below 2 it counts as 2.
    """
    merger = Merger(skill, mode, optimizer, prompt, max(2, batch_size), workers, meta)
    failures = merger.tree(_patches(proposals, "failure"), "merge_failure")
    successes = merger.tree(_patches(proposals, "success"), "merge_success")
    items = merger.pair(failures, successes)
    reasoning = "\n".join(proposal.reasoning for proposal in proposals if proposal.reasoning)
    aside = [report for proposal in proposals for report in proposal.set_aside] + merger.invalid
    return Update(items=tuple(items), reasoning=reasoning, errors=tuple(merger.errors), set_aside=tuple(aside))


def _patches(proposals: Sequence[Proposal], source: str) -> list[list[Any]]:
    return [list(p.items) for p in proposals if p.items and (p.source == "success") == (source == "success")]


@attrs.define
class Merger:
    """The merge calls of one step. `errors` and `invalid` collect what went wrong."""

    skill: str
    mode: UpdateMode
    optimizer: Callable[[str], Optimizer]
    prompt: Prompts
    batch_size: int
    workers: int
    meta: str
    errors: list[str] = attrs.field(factory=list)
    invalid: list[ItemReport] = attrs.field(factory=list)

    def tree(self, patches: list[list[Any]], prompt: str) -> list[Any]:
        """Merge level by level until one patch is left; groups keep their order, single ones pass through."""
        for level in itertools.count(1):
            if len(patches) <= 1:
                return patches[0] if patches else []
            groups = [patches[at : at + self.batch_size] for at in range(0, len(patches), self.batch_size)]
            merged = in_parallel(self.workers, partial(self._numbered, prompt, level), list(enumerate(groups)))
            patches = [items for items, _ in merged]
            self.errors += [error for _, error in merged if error]
        raise AssertionError("unreachable: the number of patches falls at every level")

    def _numbered(self, prompt: str, level: int, group: tuple[int, list[list[Any]]]) -> tuple[list[Any], str | None]:
        number, patches = group
        return self.merge(patches, prompt, level, f"{prompt}-{level}-{number}")

    def pair(self, failures: list[Any], successes: list[Any]) -> list[Any]:
        """Both sides in one last call, failures first; a side alone passes unchanged."""
        if not failures or not successes:
            return failures or successes
        items, error = self.merge([failures, successes], "merge_final", 0, "merge_final")
        self.errors += [error] if error else []
        return items

    def merge(self, group: list[list[Any]], prompt: str, level: int, key: str) -> tuple[list[Any], str | None]:
        """One merge call: the merged items and no error, or the inputs in order and why."""
        if len(group) == 1:
            return group[0], None
        given = [item for patch in group for item in patch]
        system = self.prompt(prompt, level=str(level), schema=schema_text(self.mode))
        try:
            reply = self.optimizer(key).ask_json(
                system, self._message(group, prompt), check=lambda value: payload_problem(value, self.mode.payload)
            )
        except SkillOptError:
            raise
        except ModelError as error:
            return given, failure_sentence(error)
        items, invalid = read_items(self.mode, reply[self.mode.payload])
        self.invalid += invalid
        if not items:
            return given, "unusable_reply: the merge answered with no readable item; its inputs were kept"
        return [_at_level(item, level) for item in items], None

    def _message(self, group: list[list[Any]], prompt: str) -> str:
        names = ["from failures", "from successes"] if prompt == "merge_final" else [""] * len(group)
        blocks = []
        for number, (name, patch) in enumerate(zip(names, group, strict=True), 1):
            title = f"### Patch {number}{f' ({name})' if name else ''}: {len(patch)} items"
            blocks.append(f"{title}\n\n{items_as_json(self.mode, patch)}")
        parts = [
            skill_section(self.skill),
            section("Advice from earlier epochs", self.meta),
            section(f"Patches ({len(group)})", "\n\n".join(blocks)),
        ]
        return "\n".join(part for part in parts if part)


def _at_level(item: Any, level: int) -> Any:
    if level and "merge_level" in {field.name for field in attrs.fields(type(item))}:
        return attrs.evolve(item, merge_level=level)
    return item
