"""Reflect: one optimizer call for each minibatch of failures, and one for each of successes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from skillopt_kernel.config.schema import FAILURE_BELOW
from skillopt_kernel.errors import ContextTooLong, ModelError
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.interfaces import Run, Step, UpdateMode
from skillopt_kernel.records import FailurePattern, Outcome, Proposal, Source
from skillopt_kernel.splits import minibatches
from skillopt_kernel.stages.asking import failure_sentence, in_parallel, payload_problem, read_items
from skillopt_kernel.stages.evidence import evidence_message, joined, schema_text


@attrs.frozen
class Minibatch:
    """One analyst's group. `name` is also its file: "fail_000" -> `patches/minibatch_fail_000.json`.

    Failures and successes are never mixed. Attempts at one task stand side by side; `solved` says, by task, how
    many of how many attempts at it were solved, where there was more than one.
    """

    name: str
    source: Source
    outcomes: tuple[Outcome, ...]
    solved: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)

    @property
    def task_ids(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(outcome.task_id for outcome in self.outcomes))

    def halves(self) -> tuple[Minibatch, Minibatch]:
        middle = len(self.outcomes) // 2
        first = attrs.evolve(self, name=f"{self.name}a", outcomes=self.outcomes[:middle])
        return first, attrs.evolve(self, name=f"{self.name}b", outcomes=self.outcomes[middle:])


@hookimpl(trylast=True)
def skillopt_reflect(run: Run, step: Step, outcomes: tuple[Outcome, ...], skill: str) -> tuple[Proposal, ...]:
    settings = run.settings.gradient
    groups = make_minibatches(
        outcomes,
        size=settings.minibatch_size,
        seed=step.batch_seed,
        failure_only=settings.failure_only,
        failure_below=settings.failure_below,
    )
    answers = in_parallel(settings.analyst_workers, lambda group: analyse(run, step, group, skill), groups)
    return tuple(proposal for proposals in answers for proposal in proposals)


def make_minibatches(
    outcomes: Sequence[Outcome], *, size: int, seed: int, failure_only: bool, failure_below: float = FAILURE_BELOW
) -> list[Minibatch]:
    """Failures, then successes, each shuffled by its own seed and cut; outcomes without a score are left out."""
    scored = [outcome for outcome in outcomes if outcome.scored]
    failures = [outcome for outcome in scored if outcome.failed(failure_below)]
    successes = [outcome for outcome in scored if not outcome.failed(failure_below)]
    attempts, solved = (Counter(outcome.task_id for outcome in side) for side in (scored, successes))
    told = {task: (solved[task], count) for task, count in attempts.items() if count > 1}

    def cut(name: str, source: Source, side: Sequence[Outcome], seed: int) -> list[Minibatch]:
        groups = minibatches(side, size, seed, unit=lambda outcome: outcome.task_id)
        return [Minibatch(f"{name}_{at:03d}", source, group, told) for at, group in enumerate(groups)]

    return cut("fail", "failure", failures, seed) + (
        [] if failure_only else cut("succ", "success", successes, seed + 1)
    )


def analyse(run: Run, step: Step, group: Minibatch, skill: str) -> list[Proposal]:
    """Ask one analyst. A group that does not fit the model's context is halved and asked again."""
    limit = step.planned_budget.limit
    told = "no limit" if limit is None else str(limit)
    besides = step.instructions.get(group.source, "")
    wanted = {"schema": schema_text(run.mode), "payload": run.mode.payload}
    system = joined(run.prompt(f"analyst_{group.source}", budget=told, **wanted), besides)
    user = evidence_message(run, step, group.outcomes, skill, group.solved)
    optimizer = run.optimizer("analyst", key=group.name)
    proposal = Proposal(group.name, group.source, size=len(group.outcomes), task_ids=group.task_ids)
    try:
        reply = optimizer.ask_json(system, user, check=lambda value: _problem(value, run.mode.payload, bool(besides)))
    except ModelError as error:
        if isinstance(error, ContextTooLong) and len(group.outcomes) > 1:
            return [one for half in group.halves() for one in analyse(run, step, half, skill)]
        return [attrs.evolve(proposal, error=failure_sentence(error))]
    return [read_reply(run.mode, proposal, reply, limit, with_notes=bool(besides))]


def _problem(reply: Mapping[str, Any], payload: str, with_notes: bool) -> str | None:
    patch = _patch(reply, payload, with_notes)
    return payload_problem(patch, payload) if isinstance(patch, Mapping) else '"patch" must be an object'


def _patch(reply: Mapping[str, Any], payload: str, with_notes: bool) -> Any:
    """What the reply proposes: nothing, where it holds notes alone and notes may be given."""
    if with_notes and not reply.get("patch") and payload not in reply and _notes(reply.get("appendix_notes")):
        return {payload: []}
    return reply.get("patch", reply)


def read_reply(
    mode: UpdateMode, proposal: Proposal, reply: Mapping[str, Any], limit: int | None, *, with_notes: bool = False
) -> Proposal:
    """The proposal with what the analyst's reply holds; whatever else stands there is passed over."""
    patch = _patch(reply, mode.payload, with_notes)
    # The budget is said in the prompt and enforced here: one analyst cannot crowd out the others.
    items, invalid = read_items(mode, patch[mode.payload][:limit])
    summary = [one for one in _list(reply.get("failure_summary")) if isinstance(one, Mapping)]
    return attrs.evolve(
        proposal,
        items=tuple(_with_provenance(item, proposal) for item in items),
        reasoning=str(patch.get("reasoning") or ""),
        failures=tuple(_failure(one, proposal.task_ids) for one in summary if one.get("failure_type")),
        success_patterns=tuple(str(pattern) for pattern in _list(reply.get("success_patterns"))),
        notes=_notes(reply.get("appendix_notes")) if with_notes else (),
        set_aside=invalid,
    )


def _with_provenance(item: Any, proposal: Proposal) -> Any:
    """The item with its source and support where the reply did not tell, whatever its update mode."""
    ours = {"source": proposal.source, "support": proposal.size}
    untold = [field.name for field in attrs.fields(type(item)) if field.name in ours]
    return attrs.evolve(item, **{name: ours[name] for name in untold if getattr(item, name) is None})


def _failure(told: Mapping[str, Any], task_ids: tuple[str, ...]) -> FailurePattern:
    count = told.get("count")
    description = str(told.get("description") or "")
    return FailurePattern(str(told["failure_type"]), count if type(count) is int else 0, description, task_ids)


def _notes(raw: Any) -> tuple[str, ...]:
    listed = [raw] if isinstance(raw, str) else _list(raw)
    texts = [(one.get("note") or one.get("content")) if isinstance(one, Mapping) else one for one in listed]
    return tuple(text.strip() for text in texts if isinstance(text, str) and text.strip())


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
