"""A plan of one training: calls, tokens, dollars and time, by role and stage, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
from attrs import frozen
from skillopt_kernel.config.resolved import Config
from skillopt_kernel.loop.preparing import Prepared, prepare
from skillopt_kernel.models.pricing import usd_of
from skillopt_kernel.records import Usage
from skillopt_kernel.splits import PARTS

from skillopt_analysis.planning.amounts import Amount, Part, Range
from skillopt_analysis.planning.assuming import Assumed
from skillopt_analysis.planning.counts import Counts
from skillopt_analysis.planning.rehearsal import Rehearsed, rehearse
from skillopt_analysis.planning.sizes import REWRITTEN, Sizes
from skillopt_analysis.planning.within import Within, compared


@frozen(kw_only=True)
class TrainingPlan:
    """What `plan_training` returns.

    parts     each part of the run with what it comes to, in the order of the loop
    unpriced  role -> model and endpoint whose price nobody publishes
    assumed   what was assumed, a sentence each
    budget    each limit of the configuration's budget beside what is needed of it
    """

    config: str
    epochs: int
    steps_per_epoch: int
    splits: dict[str, int]
    workers: int
    parts: tuple[tuple[Part, Amount], ...]
    unpriced: dict[str, str]
    assumed: tuple[str, ...]
    budget: tuple[Within, ...]

    @property
    def steps(self) -> int:
        return self.epochs * self.steps_per_epoch

    @property
    def total(self) -> Amount:
        return Amount.sum([amount for _, amount in self.parts])

    @property
    def known_usd(self) -> Range:
        """The dollars of all parts whose price is known."""
        return Range.sum(amount.usd for _, amount in self.parts if amount.usd is not None)

    def by_stage(self) -> dict[tuple[str, str], Amount]:
        """(role, stage) -> its amount, in the order of the loop; stages that cannot come about are left out."""
        found: dict[tuple[str, str], list[Amount]] = {}
        for part, amount in self.parts:
            if part.calls.most:
                found.setdefault((part.role, part.stage), []).append(amount)
        return {key: Amount.sum(amounts) for key, amounts in found.items()}

    def as_json(self) -> dict[str, Any]:
        """What `--json` prints: every amount as `{least, expected, most}`."""
        stages = [{"role": role, "stage": stage, **_plain(amount)} for (role, stage), amount in self.by_stage().items()]
        told = attrs.asdict(self, filter=lambda field, _: field.name != "parts")
        return told | {"steps": self.steps, "stages": stages, "total": _plain(self.total)}


def _plain(amount: Amount) -> dict[str, Any]:
    return attrs.asdict(amount) | {"tokens": attrs.asdict(amount.tokens)}


def plan_training(
    config: Config, assumed: Assumed | None = None, plugins: Sequence[tuple[str, Any]] = ()
) -> TrainingPlan:
    """The plan of the training by a loaded configuration. Reads data and skill; no model is asked, nothing written.

    plugins: further hook plugins as `train` takes them. Raises `SkillOptError` as `train` does before it begins.
    """
    assumed = assumed or Assumed()
    prepared = prepare(config, plugins)
    rehearsed = rehearse(prepared)
    turns = rehearsed.turns
    if assumed.turns is not None:
        turns = Range(1, assumed.turns, max(turns.most, assumed.turns))
    counts, sizes = Counts(prepared, assumed, turns, rehearsed.judged), Sizes(prepared, assumed, rehearsed)
    roles = prepared.models.describe()
    made = [(part, _amount(part, sizes(part), assumed, roles, prepared.settings)) for part in counts.parts()]
    priced = {part.role for part, amount in made if amount.usd is None and part.calls.most}
    prepared.models.close()
    return TrainingPlan(
        config=prepared.settings.name,
        epochs=prepared.settings.train.num_epochs,
        steps_per_epoch=counts.plan.steps_per_epoch,
        splits={name: len(getattr(prepared.splits, name)) for name in PARTS},
        workers=prepared.settings.env.workers,
        parts=tuple(made),
        unpriced={
            role: f"{about['model'] or about['backend']} at {about['endpoint'] or 'an unknown endpoint'}"
            for role, about in roles.items()
            if role in priced
        },
        assumed=tuple(_assumptions(prepared, assumed, rehearsed, turns)),
        budget=compared(made, prepared.settings.budget),
    )


def _amount(
    part: Part, size: tuple[float, float], assumed: Assumed, roles: dict[str, dict[str, str]], settings: Config
) -> Amount:
    prompt, reply = size
    about = roles.get(part.role, {"model": "", "endpoint": ""})
    used = Usage(calls=1, prompt_tokens=round(prompt), completion_tokens=round(reply))
    price = usd_of(about["model"], about["endpoint"], used, settings.model.prices)
    price = settings.budget.assume_per_call.usd if price is None else price
    measured = assumed.measured.get((part.role, part.stage), {}).get("seconds")
    return Amount(
        calls=part.calls,
        prompt_tokens=part.calls * prompt,
        completion_tokens=part.calls * reply,
        usd=None if price is None else part.calls * price,
        seconds=part.rounds() * (assumed.seconds[part.role] if measured is None else measured),
    )


def _assumptions(prepared: Prepared, assumed: Assumed, rehearsed: Rehearsed, turns: Range) -> Iterator[str]:
    settings = prepared.settings
    if assumed.like:
        yield f"sizes, seconds and shares as in the run {assumed.like}, where it has such calls"
    yield "every call succeeds and every reply can be used: what is asked again comes on top"
    told = ", ".join(f"{role} {seconds:.3g} s" for role, seconds in assumed.seconds.items())
    yield f"one call takes: {told}; stages follow one another, so that overlap makes it less"
    told = ", ".join(f"{role} {tokens:,.0f}" for role, tokens in assumed.replies.items())
    yield (
        f"tokens of a reply: {told}; of whole skills those of the skill and {REWRITTEN}; a token is four bytes, "
        f"images not counted; the skill stays as long as it is"
    )
    if rehearsed.complete:
        yield f"model calls of one attempt: {_between(turns)}, with prompts as the environment writes them"
    else:
        yield "an attempt makes one call, with the skill and the task's texts: this environment cannot be rehearsed"
    yield f"{assumed.failures:.0%} of the attempts fail; {assumed.proposing:.0%} of the analysts propose something"
    if settings.evaluation.use_gate:
        yield (
            f"{assumed.tried:.0%} of the steps come to a candidate, {assumed.accepted:.0%} of those are accepted, and "
            f"{assumed.rejected_asks:.0%} of the selection tasks decide on a rejected one"
        )
    if (usd := settings.budget.assume_per_call.usd) is not None:
        yield f"a call without a known price costs ${usd:g}, as budget.assume_per_call says"
    if others := settings.hooks.plugins:
        yield f"calls that hook plugins make by themselves are not counted ({', '.join(others)})"


def _between(count: Range) -> str:
    least, most = round(count.least), round(count.most)
    return f"{least}" if least == most else f"{least} to {most}"
