"""Two skills on the same training tasks: what the slow update and the meta skill learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from skillopt_kernel.config.schema import FAILURE_BELOW
from skillopt_kernel.errors import ContextTooLong
from skillopt_kernel.gating import compute_score
from skillopt_kernel.interfaces import Epoch, Optimizer, Run
from skillopt_kernel.records import Ask, Outcome, Task
from skillopt_kernel.skill import shown
from skillopt_kernel.splits import sample_tasks
from skillopt_kernel.stages.evidence import conversation, evidence_sections
from skillopt_kernel.store.fields import result_row

CATEGORIES = {
    "regressed": "solved with the previous skill, failed with the current one",
    "persistent_fail": "failed with both",
    "improved": "failed with the previous skill, solved with the current one",
    "stable_success": "solved with both",
}
"""What can become of a task, in the order in which the optimizer is shown it."""

POLICIES: Mapping[str, frozenset[str]] = {
    "mixed": frozenset(CATEGORIES),
    "changed": frozenset({"regressed", "improved"}),
    "unchanged": frozenset({"persistent_fail", "stable_success"}),
}
"""`optimizer.longitudinal_pair_policy` -> the categories whose pairs are shown."""


@frozen
class Pair:
    """One training task with its scored outcomes under the previous and the current skill.

    failure_below: as `gradient.failure_below`, for the category.
    """

    task: Task
    prev: Outcome
    curr: Outcome
    failure_below: float = FAILURE_BELOW

    @property
    def category(self) -> str:
        failed = (self.prev.failed(self.failure_below), self.curr.failed(self.failure_below))
        return {
            (False, True): "regressed",
            (True, True): "persistent_fail",
            (True, False): "improved",
            (False, False): "stable_success",
        }[failed]

    @property
    def question(self) -> str:
        """The task in words, as far as its inputs say; else its id."""
        told = (self.task.inputs.get(name) for name in ("question", "task_description", "instruction"))
        return str(next((text for text in told if text), self.task.id))

    def as_json(self) -> dict[str, Any]:
        """A row of `comparison_pairs.json`."""
        sides = {"prev": self.side(self.prev), "curr": self.side(self.curr)}
        return {"id": self.task.id, "task": self.question, "category": self.category, **sides}

    def side(self, outcome: Outcome) -> dict[str, Any]:
        """What one of the two outcomes came to."""
        answer = outcome.attempt.output if outcome.attempt is not None else ""
        feedback = outcome.score.feedback if outcome.score is not None else ""
        return {
            "hard": outcome.hard,
            "soft": outcome.soft,
            "predicted_answer": answer or "N/A",
            "fail_reason": feedback if outcome.failed(self.failure_below) else "",
        }


@frozen
class Comparison:
    """The skill at the end of the previous epoch, before its guidance, beside the current one.

    compared  every pair that has a score on both sides; pairs: those that the policy keeps, by category
    missing   how many tasks have no score on some side
    skipped   why nothing was compared ("skip_..."), "" otherwise
    """

    previous: str
    current: str
    pairs: tuple[Pair, ...] = ()
    compared: tuple[Pair, ...] = ()
    missing: int = 0
    skipped: str = ""

    def rows(self) -> tuple[dict[str, Any], ...]:
        """What `comparison_pairs.json` holds."""
        return tuple(pair.as_json() for pair in self.pairs)

    def keep(self, run: Run, sides: Mapping[str, Sequence[Outcome]]) -> None:
        """Write what was attempted on each side, and every pair where the policy left some out."""
        tasks = {task.id: task for task in run.train}
        for name, outcomes in sides.items():
            rows = [result_row(outcome, tasks[outcome.task_id]) for outcome in outcomes]
            run.write(f"rollout_{name}/results.jsonl", rows)
        if len(self.pairs) < len(self.compared):
            run.write("comparison_pairs_all.json", [pair.as_json() for pair in self.compared])

    def record(self) -> dict[str, Any]:
        """What was compared, in numbers; means are over all that was compared, whatever the policy keeps."""
        if self.skipped:
            return {"action": self.skipped}
        found = Counter(pair.category for pair in self.compared)
        return {
            "prev_hard": compute_score(pair.prev for pair in self.compared)[0],
            "curr_hard": compute_score(pair.curr for pair in self.compared)[0],
            "counts": {category: found[category] for category in CATEGORIES},
            "n_missing": self.missing,
            "n_pairs": len(self.pairs),
            **({} if self.pairs else {"action": "skip_no_pairs"}),
        }


def compare(run: Run, epoch: Epoch) -> Comparison:
    """Attempt the epoch's sample of training tasks with both skills, as far as that is not stored yet.

    Asked again in the same epoch, it answers from the store. A policy that wants changed pairs and finds too few
    goes on through the training tasks, a sample at a time, until there are enough or no tasks are left.
    """
    size, policy = run.settings.optimizer.slow_update_samples, run.settings.optimizer.longitudinal_pair_policy
    skills = (epoch.first_skill, epoch.last_skill)
    if skipped := _reason_to_skip(epoch, size):
        return Comparison(*skills, skipped=skipped)
    tasks = sample_tasks(run.train, len(run.train), run.seed + 2000 * epoch.number)
    compared, kept, asked = list[Pair](), list[Pair](), 0
    sides: dict[str, list[Outcome]] = {"prev": [], "curr": []}
    while asked < len(tasks) and (not asked or (policy == "changed" and len(kept) < size)):
        batch = tasks[asked : asked + size]
        compared += _attempt_both(run, epoch, batch, sides)
        kept = [pair for pair in compared if pair.category in POLICIES[policy]][:size]
        asked += len(batch)
    comparison = Comparison(*skills, by_importance(kept), tuple(compared), asked - len(compared))
    comparison.keep(run, sides)
    return comparison


def by_importance(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs in the order of `CATEGORIES`, within a category as they came."""
    return tuple(sorted(pairs, key=lambda pair: list(CATEGORIES).index(pair.category)))


def _reason_to_skip(epoch: Epoch, size: int) -> str:
    if epoch.number < 2:
        return "skip_first_epoch"  # there is no earlier epoch to compare with
    if size == 0:
        return "skip_no_samples"
    return "skip_identical" if shown(epoch.first_skill) == shown(epoch.last_skill) else ""


def _attempt_both(run: Run, epoch: Epoch, tasks: Sequence[Task], sides: dict[str, list[Outcome]]) -> list[Pair]:
    """The tasks that have a score on both sides; each side's outcomes are added to `sides`."""
    sample = run.sample(epoch.number)
    prev, curr = ([Ask(skill, task, sample) for task in tasks] for skill in (epoch.first_skill, epoch.last_skill))
    run.prefetch(curr, "curr")  # both sides are under way at once: one wait, not two
    found = list(run.evaluate(prev, "prev")), list(run.evaluate(curr, "curr"))
    for name, outcomes in zip(sides, found, strict=True):
        sides[name] += outcomes
    both = zip(tasks, *found, strict=True)
    below = run.settings.gradient.failure_below
    return [Pair(task, prev, curr, below) for task, prev, curr in both if prev.scored and curr.scored]


Details = Callable[[Pair], list[str]]
"""Further lines on a pair that went wrong on some side: how each attempt went."""


def ask_about(
    optimizer: Optimizer, system: str, key: str, comparison: Comparison, message: Callable[[str], str], details: Details
) -> Mapping[str, Any]:
    """The optimizer's reply, with a text under `key`, to `message` around the comparison.

    Pairs that do not fit the model's context are halved, the less important half left out, and it is asked again.
    Raises `ModelError` when there is no usable reply.
    """
    pairs = comparison.pairs
    while True:
        try:
            return optimizer.ask_json(
                system,
                message(comparison_text(comparison, pairs, details)),
                check=lambda reply: None if isinstance(reply.get(key), str) else f'"{key}" must be a text',
            )
        except ContextTooLong:
            if len(pairs) == 1:
                raise
            pairs = pairs[: len(pairs) // 2]


def comparison_text(comparison: Comparison, pairs: Sequence[Pair], details: Details) -> str:
    """The pairs by category, the most important first, those that went wrong on some side with all that happened."""
    totals = Counter(pair.category for pair in comparison.compared)
    lines = [f"Of {len(comparison.compared)} tasks: " + ", ".join(f"{totals[name]} {name}" for name in CATEGORIES)]
    number = 0
    for category, meaning in CATEGORIES.items():
        members = [pair for pair in pairs if pair.category == category]
        lines += [f"\n### {category} ({len(members)}): {meaning}"] if members else []
        for pair in members:
            number += 1
            lines += _pair_lines(number, pair)
            lines += details(pair) if category != "stable_success" else []
    return "\n".join(lines)


def _pair_lines(number: int, pair: Pair) -> list[str]:
    lines = [f"\n#### Pair {number}: {pair.task.id}", f"Task: {pair.question}"]
    lines += [f"Task type: {pair.task.kind}"] if pair.task.kind else []
    for name, outcome in (("Previous", pair.prev), ("Current", pair.curr)):
        side = pair.side(outcome)
        verdict = "FAIL" if outcome.failed(pair.failure_below) else "PASS"
        lines.append(f"{name} skill: {verdict}, soft {outcome.soft:.2f}, answer: {side['predicted_answer']}")
        lines += [f"Reason: {side['fail_reason']}"] if side["fail_reason"] else []
    return lines


def details_in(run: Run, comparison: Comparison) -> Details:
    """What the environment adds for analysts, and both conversations, read back from the run."""

    def details(pair: Pair) -> list[str]:
        prev, curr = run.whole(pair.prev), run.whole(pair.curr)
        return [*evidence_sections(run, curr), *conversations(comparison, prev, curr)]

    return details


def conversations(comparison: Comparison, prev: Outcome, curr: Outcome) -> list[str]:
    """Both attempts, every turn."""
    return [
        *conversation(prev, comparison.previous, "the previous skill"),
        *conversation(curr, comparison.current, "the current skill"),
    ]
