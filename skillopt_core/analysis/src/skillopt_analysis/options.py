"""Multiple-choice tasks: options that are right, or wrong, far more often than chance would have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from attrs import define, field
from skillopt_kernel.records import Task
from skillopt_kernel.statistics import wilson_interval

from skillopt_analysis.chance import tails
from skillopt_analysis.finding import Finding, clipped, in_words, named
from skillopt_analysis.texts import Option, normalised, options_of

SIGNIFICANCE = 0.01
"""The most that the chance of any false finding of one check in one split may be: Bonferroni over all it tests."""


@define
class Shown:
    """In which tasks something is shown, whether it is right there, and how likely chance alone would make it so."""

    name: str
    tasks: list[str] = field(factory=list)
    right: list[bool] = field(factory=list)
    chances: list[float] = field(factory=list)


def option_findings(split: str, tasks: Sequence[Task]) -> Iterator[Finding]:
    """Texts, labels and the longest option, and tasks of which no option is right."""
    offered = {task.id: options for task in tasks if (options := options_of(task))}
    broken = [task for task, options in offered.items() if not any(option.right for option in options)]
    if broken:
        yield Finding(
            "no_right_option", split,
            f"the reference is none of the options in {in_words(len(broken))}: {named(broken)}",
            {"count": len(broken), "of": len(offered)}, tuple(broken),
        )  # fmt: skip
    usable = {task: options for task, options in offered.items() if any(option.right for option in options)}
    texts = _counted(
        usable, lambda option: normalised(option.text), lambda option: f"the option {clipped(option.text)}"
    )
    labels = _counted(usable, lambda option: option.label, lambda option: f"the option labelled {option.label!r}")
    yield from _surprising("option_text", split, texts, len(usable))
    yield from _surprising("option_label", split, labels, len(usable))
    yield from _surprising("longest_option", split, _longest(usable), len(usable))


def _counted(
    offered: Mapping[str, Sequence[Option]], key: Callable[[Option], str], name: Callable[[Option], str]
) -> list[Shown]:
    """What the tasks show, by `key`; each once a task, right if it is right anywhere in it."""
    shown: dict[str, Shown] = {}
    for task, options in offered.items():
        chance = sum(option.right for option in options) / len(options)
        in_task: dict[str, tuple[Option, bool]] = {}
        for option in options:
            known = in_task.get(key(option))
            in_task[key(option)] = (option, option.right or (known is not None and known[1]))
        for each, (option, right) in in_task.items():
            counted = shown.setdefault(each, Shown(name(option)))
            counted.tasks.append(task)
            counted.right.append(right)
            counted.chances.append(chance)
    return list(shown.values())


def _longest(offered: Mapping[str, Sequence[Option]]) -> list[Shown]:
    """The longest option of each task that has one longest option."""
    counted = Shown("the longest option")
    for task, options in offered.items():
        lengths = sorted(len(option.text) for option in options)
        if len(lengths) < 2 or lengths[-1] == lengths[-2]:
            continue
        longest = max(options, key=lambda option: len(option.text))
        counted.tasks.append(task)
        counted.right.append(longest.right)
        counted.chances.append(sum(option.right for option in options) / len(options))
    return [counted] if counted.tasks else []


def _surprising(kind: str, split: str, counted: Sequence[Shown], of: int) -> Iterator[Finding]:
    """Those that are right so often or so seldom that chance is no explanation, the least likely first."""
    found = []
    for one in counted:
        right, shown = sum(one.right), len(one.tasks)
        probability = min(1.0, 2 * len(counted) * min(tails(right, one.chances)))
        if probability <= SIGNIFICANCE:
            found.append((probability, one, right, shown))
    for probability, one, right, shown in sorted(found, key=lambda each: (each[0], each[1].name)):
        interval = wilson_interval(right, shown)
        assert interval is not None, "shown in a task at least"
        chance = sum(one.chances) / shown
        yield Finding(
            kind,
            split,
            f"{one.name} is right in {right} of the {shown} tasks that offer it: precision {interval.estimate:.2f} (95"
            f"% interval {interval.low:.2f} to {interval.high:.2f}) against {chance:.2f} by chance, coverage "
            f"{shown / of:.2f} ({shown} of {of} tasks with options)",
            {
                "name": one.name,
                "precision": interval.estimate,
                "interval": [interval.low, interval.high],
                "chance": chance,
                "coverage": shown / of,
                "right": right,
                "shown": shown,
                "of": of,
                "probability": probability,
            },
            tuple(one.tasks),
        )
