"""What a report says of test tasks: which were won and lost, whether that can be chance, what is still not right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from attrs import frozen
from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.files import read_lines, read_text
from skillopt_kernel.store.patterns import redact_diagnostics

FIRST, BEST = "test_eval_baseline", "test_eval"
"""Folders of a run with the tests of the first skill and of the best one."""

MOST_TASKS_NAMED = 10
LONGEST_CELL = 200


@frozen
class Compared:
    """The test tasks with a score for both skills: ids of those that the best skill does better, worse and alike."""

    better: tuple[str, ...]
    worse: tuple[str, ...]
    alike: tuple[str, ...]

    @property
    def chance(self) -> float | None:
        """How probable a result at least as uneven is where both skills are equally good; `None`: nothing differs.

        The exact two-sided sign test over the tasks that differ; of right and wrong, McNemar's exact test.
        """
        count, fewer = len(self.better) + len(self.worse), min(len(self.better), len(self.worse))
        if not count:
            return None
        ways, term = 0, 1  # of choosing up to `fewer` of the tasks; binomial coefficients, one from the other
        for k in range(fewer + 1):
            ways += term
            term = term * (count - k) // (k + 1)
        return min(1.0, float(Fraction(2 * ways, 1 << count)))


def compared(folder: Path) -> Compared | None:
    """How the two skills compare in the run at `folder`; `None` where they were not both tested."""
    before, after = (
        {row["id"]: row["hard"] for row in _rows(folder / name) if row.get("hard") is not None}
        for name in (FIRST, BEST)
    )
    both = [task for task in before if task in after]
    if not both:
        return None
    return Compared(
        tuple(task for task in both if after[task] > before[task]),
        tuple(task for task in both if after[task] < before[task]),
        tuple(task for task in both if after[task] == before[task]),
    )


def comparison_lines(folder: Path) -> list[str]:
    """The comparison in sentences."""
    found = compared(folder)
    if found is None:
        return []
    counts = f"{len(found.better)} better with the best skill, {len(found.worse)} worse, {len(found.alike)} alike."
    if found.chance is not None:
        counts += (
            f" Two skills that are equally good would differ as much or more with a probability "
            f"{told_probability(found.chance)} (exact sign test)."
        )
    named = (("better", found.better), ("worse", found.worse))
    lists = [f"* {word}: {_named(tasks)}" for word, tasks in named if tasks]
    return [counts, *(["", *lists] if lists else [])]


def wrong_lines(folder: Path) -> list[str]:
    """The first test tasks that are not wholly right with the best skill: what was asked, and what was wrong.

    Where that is the first skill, its test is not made twice.
    """
    rows = _rows(folder / BEST) or _rows(folder / FIRST)
    wrong = [row for row in rows if row.get("hard") is None or row["hard"] < 1]
    if not wrong:
        return []
    asked = _asked(folder, wrong[:MOST_TASKS_NAMED])
    lines = [f"{len(wrong)} of {len(rows)} test tasks{_first(wrong)}:", ""]
    cells = [
        (f"`{row['id']}`", text, str(row.get("fail_reason") or row.get("missing") or row.get("ended") or ""))
        for row, text in zip(wrong, asked, strict=False)
    ]
    return lines + table(("task", "what was asked", "what was wrong"), cells)


def told_probability(value: float) -> str:
    """As it is said: never as zero."""
    return "below 0.001" if value < 0.001 else f"of {value:.3f}"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table; a cell is one line, shortened in its middle where it is long."""
    lines = [headings, ["---"] * len(headings), *([_cell(text) for text in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(text: str) -> str:
    line = " ".join(text.split())
    if len(line) > LONGEST_CELL:  # a question stands at the end of some prompts, at the beginning of others
        half, line = (LONGEST_CELL - 5) // 2, redact_diagnostics(line)  # before a credential could be cut in two
        line = f"{line[:half]} ... {line[-half:]}"
    return line.replace("|", "\\|")


def _rows(folder: Path) -> list[Mapping[str, Any]]:
    path = folder / "results.jsonl"
    return [row for _, row in read_lines(path)] if path.exists() else []


def _asked(folder: Path, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The prompts of tasks, without the lines that all of them begin with; "" where none was kept."""
    texts = []
    for row in rows:
        try:
            texts.append(read_text(folder / str(row["folder"]) / "target_user_prompt.txt"))
        except (KeyError, RunDirectoryError):
            texts.append("")
    differ = (at for at, letters in enumerate(zip(*texts, strict=False)) if len(set(letters)) > 1)
    begins = texts[0].rfind("\n", 0, next(differ, 0)) + 1
    return [text[begins:] for text in texts]


def _named(tasks: Sequence[str]) -> str:
    more = len(tasks) - MOST_TASKS_NAMED
    return ", ".join(f"`{task}`" for task in tasks[:MOST_TASKS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _first(wrong: Sequence[Any]) -> str:
    return f", of which these are the first {MOST_TASKS_NAMED}" if len(wrong) > MOST_TASKS_NAMED else ""
