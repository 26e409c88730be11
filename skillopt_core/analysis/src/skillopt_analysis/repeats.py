"""Tasks that are there twice: in a split, in two, or with two different answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from skillopt_kernel.records import Splits, Task
from skillopt_kernel.splits import PARTS

from skillopt_analysis.finding import Finding, in_words, named
from skillopt_analysis.texts import normalised, options_of, references_of, shown_files, shown_text

Groups = Mapping[object, Sequence[tuple[str, Task]]]
"""What a task shows -> the tasks that show it, each with its split."""


def repeat_findings(splits: Splits) -> Iterator[Finding]:
    """Repeated ids and inputs, split by split and then pair by pair."""
    every = [(part, task) for part in PARTS for task in getattr(splits, part)]
    groups = _alike(every)
    for part in PARTS:
        yield from _ids(part, [task.id for split, task in every if split == part])
        yield from _within(part, groups)
    for first, second in combinations(PARTS, 2):
        yield from _across(first, second, every, groups)


def _alike(every: Sequence[tuple[str, Task]]) -> Groups:
    """Tasks that show the same; those that show neither text nor files cannot be compared and are left out.

    Files are read only where texts are the same.
    """
    by_text: dict[str, list[tuple[str, Task]]] = {}
    for part, task in every:
        by_text.setdefault(shown_text(task), []).append((part, task))
    groups: dict[object, list[tuple[str, Task]]] = {}
    for text, members in by_text.items():
        for part, task in members if len(members) > 1 else ():
            files = shown_files(task)
            if text or files:
                groups.setdefault((text, files), []).append((part, task))
    return {key: members for key, members in groups.items() if len(members) > 1}


def _ids(part: str, ids: Sequence[str]) -> Iterator[Finding]:
    twice = [each for each, count in Counter(ids).items() if count > 1]
    if twice:
        yield Finding("repeated_ids", part, f"the same id stands more than once: {named(twice)}", {}, tuple(twice))


def _within(part: str, groups: Groups) -> Iterator[Finding]:
    own = [[task for split, task in members if split == part] for members in groups.values()]
    repeated = [group for group in own if len(group) > 1]
    if repeated:
        ids = [task.id for group in repeated for task in group]
        more = len(ids) - len(repeated)
        yield Finding(
            "repeated_inputs", part, f"inputs are repeated in {in_words(more)}: {_pairs(repeated)}",
            {"repeats": more, "groups": len(repeated)}, tuple(ids),
        )  # fmt: skip
    contradicting = [group for group in repeated if len({_answer(task) for task in group}) > 1]
    if contradicting:
        yield Finding(
            "contradicting_references", part,
            f"the same inputs have different references in {in_words(len(contradicting), 'group')}: "
            f"{_pairs(contradicting)}",
            {"groups": len(contradicting)}, tuple(task.id for group in contradicting for task in group),
        )  # fmt: skip


def _across(first: str, second: str, every: Sequence[tuple[str, Task]], groups: Groups) -> Iterator[Finding]:
    both = f"{first} and {second}"
    ids = [{task.id for split, task in every if split == part} for part in (first, second)]
    if shared := sorted(ids[0] & ids[1]):
        yield Finding("repeated_ids", both, f"the same id stands in both: {named(shared)}", {}, tuple(shared))
    in_both = []
    for members in groups.values():
        parts = {split for split, _ in members}
        if {first, second} <= parts:
            in_both.append([task for split, task in members if split in (first, second)])
    if in_both:
        leaked = [task.id for members in groups.values() for split, task in members if split == second
                  and any(other == first for other, _ in members)]  # fmt: skip
        yield Finding(
            "shared_inputs", both,
            f"{in_words(len(leaked))} of {second} with the inputs of a task of {first}: {_pairs(in_both)}",
            {"tasks": len(leaked), "groups": len(in_both)}, tuple(task.id for group in in_both for task in group),
        )  # fmt: skip


def _answer(task: Task) -> object:
    """What is right, whatever its label; the reference as it stands where it is no text."""
    right = sorted(normalised(option.text) for option in options_of(task) if option.right)
    texts = sorted({normalised(text) for text in references_of(task)})
    return tuple(right or texts) or repr(task.reference)


def _pairs(groups: Sequence[Sequence[Task]]) -> str:
    told = ["= ".join(f"{task.id!r} " for task in group).rstrip() for group in groups]
    more = len(told) - 3
    return "; ".join(told[:3]) + (f"; and {more} more" if more > 0 else "")
