"""What a reader of a report can do next, from what the run came to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from skillopt_kernel.history import RunSummary

from skillopt_commands.report_tasks import Compared, compared, told_probability

UNLIKELY = 0.05
"""A difference that chance makes with a probability below this is believed (a convention)."""

FEW_TO_SELECT_BY = 10


def next_lines(summary: RunSummary, *, same: bool) -> Iterator[str]:
    """Advice in sentences. `same`: the best skill is the first one."""
    if summary.status != "finished":
        limit = " with a higher limit" if summary.status == "budget" else ""
        yield f"Run the same command again{limit}: it goes on where it stands. *To know* tells what stopped it."
    if same:
        yield from _without_a_better_one(summary) if summary.status == "finished" else ()
    else:
        yield from _with_a_better_one(summary, compared(Path(summary.folder)))
    selection = summary.splits.get("selection", 0)
    if 0 < selection < FEW_TO_SELECT_BY:
        yield (
            f"Give more tasks: with {selection} to select by, chance has a say in which skill is taken. At least "
            f"{FEW_TO_SELECT_BY} are advised, which are 50 tasks where a fifth of them selects."
        )
    if summary.test_hard is not None and summary.test_hard < 1:
        yield (
            "Read *Not right with the best skill*: a wrong answer in the data, or a scorer that is too strict, looks "
            "like a mistake of the model."
        )


def _with_a_better_one(summary: RunSummary, tested: Compared | None) -> Iterator[str]:
    start = summary.start_skill.get("path") if summary.start_skill.get("from") == "file" else ""
    place = f" in place of `{start}`" if start else ""
    before, after = summary.baseline_test_hard, summary.test_hard
    take = f"Read *What changed in the skill*, and take `{summary.best_skill_path}`{place} when you agree with it."
    if before is None or after is None:
        yield f"{take} Whether it is better on other tasks is not known, as it was not tested: `skillopt eval` does it."
    elif after <= before:
        yield (
            "Keep the first skill: on tasks from which nothing was learnt, the best one is no better. What it gained "
            "in selection did not carry over."
        )
        return
    elif tested is not None and tested.chance is not None and tested.chance > UNLIKELY:
        yield (
            f"{take} Do not rely on its lead yet: chance alone would make such a difference with a probability "
            f"{told_probability(tested.chance)}. More test tasks would tell."
        )
    else:
        yield take
    yield "To train on from there, name this folder as the skill to start from: `--skill FOLDER`."


def _without_a_better_one(summary: RunSummary) -> Iterator[str]:
    if summary.baseline_selection_hard == 1:
        yield (
            "The first skill is right on every selection task, so that nothing can be better there. Give harder tasks, "
            "or leave the skill as it is."
        )
        return
    yield "Your skill stays as it is. *Steps* says why no candidate took its place."
    yield (
        "What helps most often: more tasks to learn from and to select by, a stronger optimizer "
        "(`-o model.optimizer=NAME`), more epochs (`-o train.num_epochs=8`)."
    )
