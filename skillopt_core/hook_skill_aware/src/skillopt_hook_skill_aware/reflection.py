"""The plugin: analysts are asked for reminders, and these join the step's candidate before the gate."""

from __future__ import annotations

from collections.abc import Generator
from importlib.resources import files
from typing import Any

import attrs
from skillopt_kernel.errors import RefuseRun
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import DriverContext, Run, Step
from skillopt_kernel.records import Applied, Proposal

from skillopt_hook_skill_aware.consolidation import consolidated
from skillopt_hook_skill_aware.notes import distinct, notes_in, short, with_notes, without
from skillopt_hook_skill_aware.settings import SkillAwareSettings
from skillopt_hook_skill_aware.waiting import Waiting, digest

NAME = "skill_aware"
SWITCH = "optimizer.use_skill_aware_reflection"
MODE = "optimizer.skill_update_mode"
REFUSED = ("rewrite_from_suggestions", "full_rewrite_minibatch")
"""Update modes that write the skill's text anew: there a lapse and a defect would have one cure."""


class SkillAware:
    """The hook plugin `skill_aware`. It keeps what it knows in `run.state` alone."""

    def __init__(self, settings: SkillAwareSettings, context: DriverContext) -> None:
        sources = ("failure", "success") if settings.skill_aware_appendix_source == "both" else ("failure",)
        self._instructions = {source: _prompt(source) for source in sources}
        self._threshold = settings.skill_aware_consolidate_threshold
        self._consolidate = _prompt("consolidate")

    @hookimpl
    def skillopt_configure(self, run: Run) -> None:
        mode = run.settings.optimizer.skill_update_mode
        if mode in REFUSED:
            where = {key: run.settings.origins.get(key) for key in (SWITCH, MODE)}
            by = f"{SWITCH} ({where[SWITCH]})" if where[SWITCH] else "the plugin skill_aware (hooks.plugins)"
            raise RefuseRun(
                f"{where[MODE]}: {MODE} is {mode}, and {by} works with edits only: a lapse gets a reminder in place of "
                f"an edit. Set {MODE} to patch, or {SWITCH} to false."
            )

    @hookimpl(wrapper=True)
    def skillopt_reflect(self, step: Step, skill: str) -> Generator[None, Any, Any]:
        if step.batch == 0:
            for source, text in self._instructions.items():
                told = step.instructions.get(source)
                step.instructions[source] = f"{told}\n{text}" if told else text
            step.counters |= _counters(total=len(notes_in(skill)))
        return (yield)

    @hookimpl(wrapper=True)
    def skillopt_update(self, run: Run, step: Step, skill: str) -> Generator[None, Applied | None, Applied | None]:
        applied = yield
        if applied is None:
            return None
        raw = _raw_notes(step.proposals)
        existing, before = notes_in(skill), Waiting.read(run.state.setdefault(NAME, {}))
        waiting, given_up = before.settled(existing)
        carried = tuple(waiting.notes)
        new = without(distinct(map(short, raw)), (*existing, *carried))
        waiting = waiting.with_notes(new)
        notes = joined = (*existing, *carried, *new)
        if applied.error is None and notes != existing:
            if waiting.grown(len(notes), self._threshold):
                joined = consolidated(run, step, notes, self._consolidate)
                waiting = attrs.evolve(waiting, asked=len(notes), merged=len(joined))
            waiting = attrs.evolve(waiting, tried=digest(joined))
            applied = attrs.evolve(applied, candidate=with_notes(applied.candidate, joined))
        elif applied.error is not None:
            joined = existing  # there is no candidate that the notes could join
        run.state[NAME] = waiting.as_json()
        added = without(joined, existing)
        step.counters |= _counters(len(raw), len(added), len(joined), len(notes) - len(joined))
        record = {
            "step_notes": list(raw),
            "waited": list(carried),
            "given_up": list(given_up),
            "added": list(added),
            "appendix_after": list(joined),
        }
        return attrs.evolve(applied, record={**applied.record, "appendix_notes": record})


def _raw_notes(proposals: tuple[Proposal, ...]) -> tuple[str, ...]:
    return tuple(note for proposal in proposals for note in proposal.notes)


def _counters(lapses: int = 0, added: int = 0, total: int = 0, consolidated: int = 0) -> dict[str, int]:
    """The step record's numbers: notes that analysts gave, and of the candidate's appendix how many are new, how many
    there are, and by how many consolidation made it shorter. Without a candidate `total` is the current skill's.
    """
    return {
        "n_execution_lapse_notes": lapses,
        "n_appendix_notes_added": added,
        "n_appendix_notes_total": total,
        "n_appendix_notes_consolidated": consolidated,
    }


def _prompt(name: str) -> str:
    return (files("skillopt_hook_skill_aware") / f"prompts/{name}.md").read_text(encoding="utf-8")
