"""Reflect: one optimizer call for each minibatch of failures, and one for each of successes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from skillopt_kernel.errors import ContextTooLong, ModelError, SkillOptError
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Run, Step
from skillopt_kernel.records import FailurePattern, Outcome, Proposal, Source
from skillopt_kernel.splits import minibatches
from skillopt_kernel.stages.asking import failure_sentence, in_parallel, payload_problem, read_items
from skillopt_kernel.stages.evidence import evidence_message, schema_text

FAILURE_BELOW = 1e-9
"""An outcome whose hard score is below this is a failure; any partial success counts as a success."""


@attrs.frozen
class Minibatch:
    """One analyst's group. `name` is also its file: "fail_000" -> `patches/minibatch_fail_000.json`."""

    name: str
    source: Source
    outcomes: tuple[Outcome, ...]

    def halves(self) -> tuple[Minibatch, Minibatch]:
        middle = len(self.outcomes) // 2
        first = Minibatch(f"{self.name}a", self.source, self.outcomes[:middle])
        return first, Minibatch(f"{self.name}b", self.source, self.outcomes[middle:])


@hookimpl(trylast=True)
def skillopt_reflect(run: Run, step: Step, outcomes: tuple[Outcome, ...], skill: str) -> tuple[Proposal, ...]:
    groups = make_minibatches(
        outcomes,
        size=run.settings.gradient.minibatch_size,
        seed=step.batch_seed,
        failure_only=run.settings.gradient.failure_only,
    )
    workers = run.settings.gradient.analyst_workers
    answers = in_parallel(workers, lambda group: analyse(run, step, group, skill), groups)
    return tuple(proposal for proposals in answers for proposal in proposals)


def make_minibatches(outcomes: Sequence[Outcome], *, size: int, seed: int, failure_only: bool) -> list[Minibatch]:
    """Failures, then successes, each shuffled by its own seed and cut; outcomes without a score are left out."""
    scored = [outcome for outcome in outcomes if outcome.scored]
    failures = [outcome for outcome in scored if outcome.hard < FAILURE_BELOW]
    successes = [] if failure_only else [outcome for outcome in scored if outcome.hard >= FAILURE_BELOW]
    groups = [
        Minibatch(f"fail_{number:03d}", "failure", tuple(group))
        for number, group in enumerate(minibatches(failures, size, seed))
    ]
    groups += [
        Minibatch(f"succ_{number:03d}", "success", tuple(group))
        for number, group in enumerate(minibatches(successes, size, seed + 1))
    ]
    return groups


def analyse(run: Run, step: Step, group: Minibatch, skill: str) -> list[Proposal]:
    """Ask one analyst. A group that does not fit the model's context is halved and asked again."""
    limit = step.planned_budget.limit
    system = run.prompt(
        f"analyst_{group.source}",
        budget="no limit" if limit is None else str(limit),
        schema=schema_text(run.mode),
    )
    user = evidence_message(run, step, group.outcomes, skill)
    optimizer = run.optimizer("analyst", key=group.name)
    try:
        reply = optimizer.ask_json(system, user, check=lambda value: _problem(value, run.mode.payload))
    except SkillOptError:
        raise
    except ContextTooLong as error:
        if len(group.outcomes) == 1:
            return [_failed(group, error)]
        return [proposal for half in group.halves() for proposal in analyse(run, step, half, skill)]
    except ModelError as error:
        return [_failed(group, error)]
    return [_proposal(run.mode, group, reply, limit)]


def _failed(group: Minibatch, error: ModelError) -> Proposal:
    return Proposal(
        group.name, group.source, size=len(group.outcomes), task_ids=_ids(group), error=failure_sentence(error)
    )


def _problem(reply: Mapping[str, Any], payload: str) -> str | None:
    patch = reply.get("patch", reply)
    if not isinstance(patch, Mapping):
        return '"patch" must be an object'
    return payload_problem(patch, payload)


def _proposal(mode: Any, group: Minibatch, reply: Mapping[str, Any], limit: int | None) -> Proposal:
    patch = reply.get("patch", reply)
    # The budget is said in the prompt and enforced here: one analyst cannot crowd out the others.
    items, invalid = read_items(mode, patch[mode.payload][:limit])
    size = len(group.outcomes)
    return Proposal(
        group=group.name,
        source=group.source,
        items=tuple(_with_provenance(item, group.source, size) for item in items),
        reasoning=str(patch.get("reasoning") or ""),
        size=size,
        task_ids=_ids(group),
        failures=_failures(reply.get("failure_summary"), group),
        success_patterns=tuple(str(pattern) for pattern in _list(reply.get("success_patterns"))),
        notes=_notes(reply.get("appendix_notes")),
        set_aside=invalid,
    )


def _with_provenance(item: Any, source: Source, support: int) -> Any:
    """The item with its source and support where the reply did not tell, whatever its update mode."""
    known = {field.name for field in attrs.fields(type(item))}
    told: dict[str, Any] = {}
    if "source" in known and item.source is None:
        told["source"] = source
    if "support" in known and item.support is None:
        told["support"] = support
    return attrs.evolve(item, **told) if told else item


def _failures(raw: Any, group: Minibatch) -> tuple[FailurePattern, ...]:
    patterns = []
    for one in _list(raw):
        if isinstance(one, Mapping) and one.get("failure_type"):
            count = one.get("count")
            patterns.append(
                FailurePattern(
                    pattern=str(one["failure_type"]),
                    count=count if isinstance(count, int) and not isinstance(count, bool) else 0,
                    description=str(one.get("description") or ""),
                    task_ids=_ids(group),
                )
            )
    return tuple(patterns)


def _notes(raw: Any) -> tuple[str, ...]:
    notes = []
    for one in [raw] if isinstance(raw, str) else _list(raw):
        text = (one.get("note") or one.get("content")) if isinstance(one, Mapping) else one
        if isinstance(text, str) and text.strip():
            notes.append(text.strip())
    return tuple(notes)


def _ids(group: Minibatch) -> tuple[str, ...]:
    return tuple(outcome.task_id for outcome in group.outcomes)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
