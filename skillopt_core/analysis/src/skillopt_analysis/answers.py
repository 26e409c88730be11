"""Answers that can be had without the task: one that is right almost everywhere, one that the task shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from skillopt_kernel.records import Task
from skillopt_kernel.statistics import wilson_interval

from skillopt_analysis.finding import Finding, clipped, named
from skillopt_analysis.texts import normalised, options_of, references_of

MOST = 0.5
"""An answer that is right in surely more than this share of a split's tasks needs no task."""
SHORTEST = 4
"""Characters from which on an answer that a task shows is more than a coincidence."""


def answer_findings(split: str, tasks: Sequence[Task]) -> Iterator[Finding]:
    """Of tasks without options (whose answers are among them by nature)."""
    answers = {task.id: (task, references_of(task)) for task in tasks if not options_of(task)}
    open_tasks = {name: (task, texts) for name, (task, texts) in answers.items() if texts}
    yield from _constant(split, {name: texts for name, (_, texts) in open_tasks.items()})
    yield from _verbatim(split, open_tasks)


def _constant(split: str, answers: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    right: dict[str, list[str]] = {}
    written: dict[str, str] = {}
    for task, texts in answers.items():
        for text in texts:
            key = normalised(text) or text
            written.setdefault(key, text)
            if task not in right.setdefault(key, [])[-1:]:
                right[key].append(task)
    for key, tasks in sorted(right.items(), key=lambda each: (-len(each[1]), each[0])):
        interval = wilson_interval(len(tasks), len(answers))
        if interval is not None and interval.low > MOST:
            yield Finding(
                "constant_answer",
                split,
                f"the answer {clipped(written[key])} is right in {len(tasks)} of {len(answers)} tasks ("
                f"{interval.estimate:.2f}, 95% interval {interval.low:.2f} to {interval.high:.2f}): it can be given "
                f"without reading any",
                {
                    "answer": written[key],
                    "share": interval.estimate,
                    "interval": [interval.low, interval.high],
                    "right": len(tasks),
                    "of": len(answers),
                },
                tuple(tasks),
            )


def _verbatim(split: str, answers: Mapping[str, tuple[Task, Sequence[str]]]) -> Iterator[Finding]:
    """A note: of a task about a text it is meant so, of others it gives the answer away."""
    where: Counter[str] = Counter()
    found = []
    for name, (task, references) in answers.items():
        wanted = [text for text in map(normalised, references) if len(text) >= SHORTEST]
        held = [
            field for field, value in task.inputs.items() if any(f" {text} " in f" {_flat(value)} " for text in wanted)
        ]
        where.update(held)
        found += [name] if held else []
    if found:
        fields = ", ".join(f"{field} ({count})" for field, count in sorted(where.items()))
        yield Finding(
            "reference_in_inputs",
            split,
            f"a right answer stands word for word in the inputs of {len(found)} of {len(answers)} tasks, in {fields}: "
            f"as it should where a task is about a text, a giveaway elsewhere. They are {named(found)}",
            {"count": len(found), "of": len(answers), "inputs": dict(sorted(where.items()))},
            tuple(found),
            note=True,
        )


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return " | ".join(_flat(each) for each in value.values())
    if isinstance(value, list | tuple):
        return " | ".join(_flat(each) for each in value)
    return normalised(str(value))
