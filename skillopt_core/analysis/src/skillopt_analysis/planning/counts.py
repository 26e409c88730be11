"""How many calls each stage makes, from the configuration and the sizes of the data.

The loop is gone through as it will be: the batches of each step are those that the run will take. What depends on how
well it goes has a range, and what is expected follows from what is assumed. A call that fails, or whose reply cannot
be used, is asked again by the run and is not counted here.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, lgamma, log, log1p
from typing import Any

import attrs
from attrs import define, frozen
from skillopt_kernel.errors import UnusableReply
from skillopt_kernel.interfaces import Moment
from skillopt_kernel.loop.plan import Plan, PlannedStep
from skillopt_kernel.loop.preparing import Prepared
from skillopt_kernel.records import Proposal, Update
from skillopt_kernel.stages.aggregate import merge_patches

from skillopt_analysis.planning.amounts import Part, Range
from skillopt_analysis.planning.assuming import Assumed

BASIC_PROMPTS = frozenset(
    ("analyst_failure", "analyst_success", "merge_failure", "merge_success", "merge_final", "ranking")
)
"""The prompts that every update mode has; one beyond them is for a call that it makes when it applies an update."""


@define
class _Counting:
    """An optimizer that counts what it is asked, and has no usable reply."""

    asked: int = 0

    def ask_json(self, system: str, user: str, **_: Any) -> Any:
        self.asked += 1
        raise UnusableReply("a plan asks nobody", "")

    ask = ask_json


@frozen
class _Mode:
    """What a merge needs of an update mode; an item is its number."""

    payload: str = "items"
    item_schema: Any = attrs.field(factory=dict)

    def write_item(self, item: Any) -> dict[str, Any]:
        return {"item": item}


def _no_prompt(_: str, **__: str) -> str:
    return ""


def binomial(size: int, chance: float) -> list[float]:
    """The probabilities of 0, 1, ..., `size` failures when each attempt fails with this chance."""
    if not 0.0 < chance < 1.0:
        return [float(failed == round(chance * size)) for failed in range(size + 1)]
    whole = lgamma(size + 1)  # in logarithms: the coefficients outgrow a float
    return [
        exp(whole - lgamma(k + 1) - lgamma(size - k + 1) + k * log(chance) + (size - k) * log1p(-chance))
        for k in range(size + 1)
    ]


def merges(failures: int, successes: int, batch_size: int) -> int:
    """The merge calls for so many proposals with items, counted on the stage itself."""
    sources = ["failure"] * failures + ["success"] * successes
    counting, mode = _Counting(), _Mode()
    made = [Proposal(str(at), source, items=(at,)) for at, source in enumerate(sources)]  # type: ignore[arg-type]
    merge_patches(
        made,
        "",
        mode=mode,  # type: ignore[arg-type]
        optimizer=lambda _: counting,
        prompt=_no_prompt,
        batch_size=batch_size,
    )
    return counting.asked


@define(eq=False)
class Counts:
    """The calls of a training, part by part in the order of the loop. turns: model calls of one attempt."""

    prepared: Prepared
    assumed: Assumed
    turns: Range
    judged: Range
    _analysing: dict[int, Range] = attrs.field(factory=dict, init=False)
    _merged: dict[tuple[int, int], int] = attrs.field(factory=dict, init=False)

    @property
    def plan(self) -> Plan:
        return Plan(self.prepared.splits.train, self.prepared.settings.train)

    def parts(self) -> Iterator[Part]:
        """Every part of the run."""
        settings, selection = self.prepared.settings, len(self.prepared.splits.selection)
        yield from self._attempts("selection", Range.exactly(selection), "selection")
        for epoch, reached in enumerate(self._reached(), 1):
            for part in self._epoch(epoch):
                calls, patience = part.calls, settings.train.patience
                least = 0 if 0 < patience < epoch else calls.least
                yield attrs.evolve(part, calls=Range(least, calls.expected * reached, calls.most))
        if settings.evaluation.eval_test:
            # Equal skills are tested once; what a gate takes is mostly the new best, so that best and last are one.
            skills = Range(1, 2 if settings.evaluation.use_gate else 3, 3)
            for part in self._attempts("test", skills * len(self.prepared.splits.test), "test"):
                yield attrs.evolve(part, final=True)

    def _reached(self) -> Iterator[float]:
        """For each epoch the probability that it is reached: with `train.patience` training may end before."""
        train, better = self.prepared.settings.train, self._changed
        without = [1.0]  # at n: the probability that n epochs in a row have brought no new best skill, and it goes on
        for _ in range(train.num_epochs):
            yield sum(without)
            going_on = [better * sum(without), *((1.0 - better) * chance for chance in without)]
            without = going_on[: train.patience] if train.patience else [1.0]

    def _attempts(self, stage: str, attempts: Range, split: str, step: int | None = None) -> Iterator[Part]:
        at_once = self.prepared.settings.env.workers
        calls = attempts.times(self.turns)
        yield Part(role="target", stage=stage, calls=calls, at_once=at_once, split=split, step=step)
        if self.judged.most:
            judged = attempts.times(self.judged)
            yield Part(role="judge", stage="judge", calls=judged, at_once=at_once, split=split, step=step)

    def _performs(self, stage: str) -> bool:
        return bool(getattr(self.prepared.settings.optimizer, f"use_{stage}")) and self.prepared.hooks.performs(stage)

    # Steps -------------------------------------------------------------------------------------------------

    def _epoch(self, number: int) -> Iterator[Part]:
        before: set[str] = set()
        for step in self.plan.epoch(number):
            yield from self._attempts("rollout", self._rollouts(step, before), "train", step.number)
            before |= {task.id for batch in step.batches for task in batch.tasks}
            yield from self._optimizer(step)
            yield from self._attempts("selection", self._gate(self.assumed.tried), "selection", step.number)
        if number > 1:
            yield from self._epoch_end(number)

    def _rollouts(self, step: PlannedStep, before: set[str]) -> Range:
        """Attempts of a step. One task twice in it is asked once, and so is one of an earlier step (`before`), or with
        `deterministic_target` of an earlier epoch, if the skill is the same still."""
        settings = self.prepared.settings
        asked = {task.id for batch in step.batches for task in batch.tasks}
        every = len(asked) * settings.train.samples_per_task
        known = len(asked & before) * settings.train.samples_per_task
        if settings.evaluation.deterministic_target and step.epoch > 1:
            return Range(0, every * self._changed, every)
        return Range(every - known, every - known / 2, every)

    def _optimizer(self, step: PlannedStep) -> Iterator[Part]:
        """Analysts, merges, and what the update needs."""
        settings, mode = self.prepared.settings, self.prepared.mode
        workers = settings.gradient.analyst_workers
        sizes = [len(batch.tasks) * settings.train.samples_per_task for batch in step.batches]
        analysts = [self._analysts(size) for size in sizes]
        for calls in analysts:
            yield Part(role="optimizer", stage="analyst", calls=calls, at_once=workers, step=step.number)
        yield Part(role="optimizer", stage="merge", calls=self._merges(sizes), step=step.number)
        tried = Range(0, 1, 1)
        if mode.budgeted:
            limit, asks = self._budget(step.number)
            if asks:
                yield Part(role="optimizer", stage="lr_autonomous", calls=tried, step=step.number)
            if asks or limit:
                several = sum(one.expected for one in analysts) * self.assumed.proposing > 1
                ranking = Range(0, float(several), 1)
                yield Part(role="optimizer", stage="ranking", calls=ranking, step=step.number)
        for _ in set(mode.prompts()) - BASIC_PROMPTS:
            yield Part(role="optimizer", stage="rewrite", calls=tried, step=step.number)

    def _analysts(self, size: int) -> Range:
        """The analysts of a rollout of so many attempts, over every number of failures in it."""
        if size not in self._analysing:
            counts = [sum(self._cut(failed, size)) for failed in range(size + 1)]
            chances = binomial(size, self.assumed.failures)
            mean = sum(chance * count for chance, count in zip(chances, counts, strict=True))
            self._analysing[size] = Range(min(counts), mean, max(counts))
        return self._analysing[size]

    def _cut(self, failed: int, size: int) -> tuple[int, int]:
        """Minibatches of failures and of successes."""
        gradient = self.prepared.settings.gradient
        successes = 0 if gradient.failure_only else size - failed
        return -(-failed // gradient.minibatch_size), -(-successes // gradient.minibatch_size)

    def _merges(self, sizes: list[int]) -> Range:
        """The merge calls of a step: none where nobody proposes, most for the split into failures that asks most."""
        cuts = [self._cut(round(self.assumed.failures * size), size) for size in sizes]
        failures, successes = (round(self.assumed.proposing * sum(side)) for side in zip(*cuts, strict=True))
        proposals = round(sum(self._analysts(size).most for size in sizes))
        return Range(0, self._merging(failures, successes), self._merging_most(proposals))

    def _merging_most(self, proposals: int) -> int:
        """The most for so many proposals: whose they are matters by a call or two, and every case is tried."""
        few = range(proposals + 1) if proposals <= 64 else range(0, proposals + 1, proposals // 32)
        return max(self._merging(failures, proposals - failures) for failures in few)

    def _merging(self, failures: int, successes: int) -> int:
        if (failures, successes) not in self._merged:
            batch_size = self.prepared.settings.gradient.merge_batch_size
            self._merged[failures, successes] = merges(failures, successes, batch_size)
        return self._merged[failures, successes]

    def _budget(self, step: int) -> tuple[int | None, bool]:
        """The edit budget that analysts are told, and whether the scheduler asks the optimizer for another."""
        if self.prepared.settings.optimizer.lr_control_mode == "none":
            return None, False
        told, counting = Moment(step, self.plan.total_steps), _Counting()
        evidence: dict[str, Any] = {"skill": "", "items": ("",), "item_kind": "", "memory": "", "meta": ""}
        evidence |= {"rollout_n": 1, "rollout_hard": 0.0, "rollout_soft": 0.0}
        asked = attrs.evolve(told, update=Update((0,)), evidence=evidence, optimizer=counting)
        limit = self.prepared.scheduler.budget(told).limit
        self.prepared.scheduler.budget(asked)
        return limit, counting.asked > 0

    def _gate(self, tried: float) -> Range:
        """Selection tasks that a candidate is asked; one that comes about with the probability `tried`."""
        tasks, evaluation = len(self.prepared.splits.selection), self.prepared.settings.evaluation
        accepted = self.assumed.accepted
        share = accepted + (1 - accepted) * self.assumed.rejected_asks if evaluation.use_gate else 1.0
        return Range(0, tasks * share * tried, tasks)

    # The end of an epoch -------------------------------------------------------------------------------------

    @property
    def _changed(self) -> float:
        """The probability that some step of an epoch changed the skill."""
        taken = self.assumed.tried * (self.assumed.accepted if self.prepared.settings.evaluation.use_gate else 1.0)
        return 1.0 - (1.0 - taken) ** self.plan.steps_per_epoch

    def _epoch_end(self, number: int) -> Iterator[Part]:
        """The comparison of two skills, which both stages use, and what each asks about it."""
        optimizer, train = self.prepared.settings.optimizer, self.prepared.settings.train
        slow = self._performs("slow_update")
        meta = self._performs("meta_skill") and number < train.num_epochs
        if not optimizer.slow_update_samples or not (slow or meta):
            return
        tasks = len(self.plan.tasks)
        sample = min(optimizer.slow_update_samples, tasks)
        # Changed pairs are looked for until there are enough: of four tasks one may be changed.
        most = tasks if optimizer.longitudinal_pair_policy == "changed" else sample
        expected = min(tasks, 4 * sample) if most > sample else sample
        # Of the two attempts at a task one may be known from a rollout of this epoch.
        yield from self._attempts("rollout", Range(0, 1.5 * expected * self._changed, 2 * most), "train")
        if slow:
            yield Part(role="optimizer", stage="slow_update", calls=Range(0, self._changed, 1))
            yield from self._attempts("selection", self._guidance(), "selection")
        if meta:
            yield Part(role="optimizer", stage="meta_skill", calls=Range(0, self._changed, 1))

    def _guidance(self) -> Range:
        """Selection tasks that the skill with guidance is asked. Without a gate it is taken, and asked everything."""
        if self.prepared.settings.optimizer.slow_update_gate_with_selection:
            return self._gate(self._changed)
        tasks = len(self.prepared.splits.selection)
        return Range(0, tasks * self._changed, tasks)
