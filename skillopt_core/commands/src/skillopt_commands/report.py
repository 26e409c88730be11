"""`report.md`: what a training came to, for people who were not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.history import RunSummary
from skillopt_kernel.skill import shown, skill_hash
from skillopt_kernel.store.files import read_json, read_lines, read_text, write_text
from skillopt_kernel.store.patterns import redact_diagnostics
from skillopt_kernel.store.state import HISTORY

from skillopt_commands.progress import spent_text

REPORT = "report.md"
MOST_TASKS_NAMED = 10


def report_of(summary: RunSummary) -> Path:
    """The report of a run, written beside its best skill; one of a run that had been finished before is left."""
    path = Path(summary.folder) / REPORT
    if not (summary.already_finished and path.exists()):
        write_text(path, redact_diagnostics(report_text(summary)))
    return path


def report_text(summary: RunSummary) -> str:
    """The report as Markdown: the result in a sentence, scores, what changed in the skill, steps, how it was made."""
    folder = Path(summary.folder)
    start, best = read_text(folder / "skills" / "skill_v0000.md"), read_text(folder / summary.best_skill_path)
    sections = (
        ("", [_result(summary)]),
        ("Scores", _scores(summary)),
        ("Test tasks", _test_tasks(folder)),
        ("Task types", _kinds(summary)),
        ("What changed in the skill", _changes(start, best)),
        ("Steps", _steps(folder)),
        ("To know", [f"* {note}" for note in _notes(summary)]),
        ("How it was made", _made(summary, best)),
    )
    parts = [f"# {summary.config['env']['name']}: a skill trained"]
    for title, lines in sections:
        if lines:
            parts.append("\n".join([*([f"## {title}", ""] if title else []), *lines]))
    return "\n\n".join(parts) + "\n"


def _result(summary: RunSummary) -> str:
    before, after = summary.baseline_test_hard, summary.test_hard
    if not summary.total_accepts + summary.total_forced and not summary.best_step:
        return "No candidate was better than the skill that training began with; `best_skill.md` is that skill."
    where = f"step {summary.best_step}" if summary.best_step else "the end of an epoch"
    if before is None or after is None:
        return f"The best skill is from {where}. It was not compared with the first one on test tasks."
    return (
        f"The best skill, from {where}, scores {after:.3f} on {summary.test_n} test tasks, from which nothing was "
        f"learnt; the one that training began with scores {before:.3f}."
    )


def _scores(summary: RunSummary) -> list[str]:
    rows = []
    for name, prefix, test in (
        ("first", "baseline", "baseline_test"), ("best", "best", "test"), ("last", "final", "final_test"),
    ):  # fmt: skip
        numbers = (f"{prefix}_selection_hard", f"{test}_hard", f"{test}_soft")
        selection, hard, soft = (_number(getattr(summary, field)) for field in numbers)
        rows.append((name, selection, hard, _interval(summary.intervals.get(f"{test}_hard")), soft))
    return _table(("skill", "selection", "test", "95 % interval", "test, partial credit"), rows)


def _test_tasks(folder: Path) -> list[str]:
    """How many test tasks were won and lost, and which."""
    before, after = (_hard_by_task(folder / name) for name in ("test_eval_baseline", "test_eval"))
    both = [task for task in before if task in after]
    if not both:
        return []
    better = [task for task in both if after[task] > before[task]]
    worse = [task for task in both if after[task] < before[task]]
    lines = [
        f"{len(better)} better with the best skill, {len(worse)} worse, {len(both) - len(better) - len(worse)} alike."
    ]
    lines += [f"* {word}: {_named(tasks)}" for word, tasks in (("better", better), ("worse", worse)) if tasks]
    return lines


def _kinds(summary: RunSummary) -> list[str]:
    before, after = summary.by_kind.get("baseline_test", {}), summary.by_kind.get("test", {})
    kinds = [kind for kind in after if kind and kind != "overall"]
    if len(kinds) < 2:
        return []
    rows = [
        (
            kind,
            str(after[kind]["total"]),
            _number(before.get(kind, {}).get("hard_acc")),
            _number(after[kind]["hard_acc"]),
        )
        for kind in kinds
    ]
    return _table(("task type", "test tasks", "first", "best"), rows)


def _changes(start: str, best: str) -> list[str]:
    before, after = (shown(text).splitlines() for text in (start, best))
    diff = list(difflib.unified_diff(before, after, "first", "best", lineterm="", n=2))
    if not diff:
        return ["Nothing."]
    fence = "~~~~"
    while any(fence in line for line in diff):
        fence += "~"
    return [f"{fence}diff", *diff, fence]


def _steps(folder: Path) -> list[str]:
    try:
        steps = read_json(folder / HISTORY)
    except RunDirectoryError:
        return []
    rows = [
        (str(step["step"]), step["action"], _number(step["rollout_hard"]), _number(step["candidate_gate_score"]),
         step["reason"].replace("|", "\\|"))
        for step in steps
    ]  # fmt: skip
    return _table(("step", "what became of it", "rollout", "candidate", "why"), rows) if rows else []


def _notes(summary: RunSummary) -> Iterator[str]:
    if summary.status != "finished":
        yield f"The run has not come to its end (status {summary.status}). {summary.budget}".strip()
    if summary.ended_early:
        yield summary.ended_early
    yield from summary.notes


def _made(summary: RunSummary, best: str) -> list[str]:
    model, splits = summary.config["model"], summary.splits
    models = (f"{role} {model.get(role) or 'default'} ({model[f'{role}_backend']})" for role in ("optimizer", "target"))
    sizes = ", ".join(f"{count} {part}" for part, count in splits.items())
    return [
        f"* Models: {', '.join(models)}; seed {summary.config['train']['seed']}",
        f"* Tasks: {sizes}; gate: {summary.gate}",
        f"* Versions: the first skill is `{summary.start_skill.get('hash', '')}`, the best one `{skill_hash(best)}`",
        f"* Used: {summary.total_wall_time_s:.1f} seconds, {spent_text(summary.token_summary)}",
        f"* Best skill: `{summary.best_skill_path}` beside this file; every other version is in `skills/`",
    ]


def _hard_by_task(folder: Path) -> dict[str, float]:
    path = folder / "results.jsonl"
    rows = [row for _, row in read_lines(path)] if path.exists() else []
    return {row["id"]: row["hard"] for row in rows if row.get("hard") is not None}


def _named(tasks: Sequence[str]) -> str:
    more = len(tasks) - MOST_TASKS_NAMED
    return ", ".join(f"`{task}`" for task in tasks[:MOST_TASKS_NAMED]) + (f" and {more} more" if more > 0 else "")


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(interval: Sequence[float] | Mapping[str, float] | None) -> str:
    return "-" if not interval else "{:.2f} to {:.2f}".format(*interval)
