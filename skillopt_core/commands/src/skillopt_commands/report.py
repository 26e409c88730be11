"""`report.md`: what a training came to, for people who were not there; and `skillopt report`, which makes it again."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.history import RunSummary
from skillopt_kernel.skill import shown, skill_hash
from skillopt_kernel.store.files import read_json, read_text, write_text
from skillopt_kernel.store.patterns import redact_diagnostics
from skillopt_kernel.store.state import HISTORY

from skillopt_commands.progress import spent_text
from skillopt_commands.report_next import next_lines
from skillopt_commands.report_tasks import comparison_lines, table, wrong_lines

REPORT = "report.md"
START = Path("skills", "skill_v0000.md")

ACTIONS = {
    "accept_new_best": "accepted, the best so far",
    "accept": "accepted",
    "force_accept": "taken without a comparison",
    "reject": "rejected",
    "undecided": "not taken: too few scores to decide",
    "unverified": "not taken: could not be checked",
    "skip_no_patches": "no change was proposed",
    "skip_no_rewrite": "no usable rewrite came",
    "skip_no_change": "no proposed change could be made",
}
"""What became of a step, in words."""


@click.command("report")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
def report(run: Path) -> int:
    """Write report.md of the training in the folder RUN anew: its result, in words and tables, and what to do next.

    Every training ends with one; this makes it again, from the files of the run alone.
    """
    from skillopt_kernel.console import echo
    from skillopt_kernel.store.reading import read_run

    view = read_run(run)
    if view.status == "foreign":
        raise RunDirectoryError(f"{view.problem} `skillopt runs FOLDER` lists the runs in a folder.")
    if view.status == "broken":
        raise RunDirectoryError(view.problem)
    if view.evaluates or not view.summary:
        why = "is an evaluation" if view.evaluates else "has not come to its end"
        raise RunDirectoryError(
            f"{run} {why}: reports are of trainings at their end. `skillopt status {run}` shows it."
        )
    try:
        text = report_text(RunSummary.from_json(view.summary, folder=str(run)))
    except (KeyError, TypeError) as error:
        raise RunDirectoryError(
            f"{run}: its files are not what a training of this version leaves ({type(error).__name__}: {error}), so "
            f"that no report can be made of them."
        ) from error
    path = run / REPORT
    write_text(path, redact_diagnostics(text))
    echo(f"Report: {path}")
    return 0


def report_of(summary: RunSummary) -> Path:
    """The report of a run, written beside its best skill; one of a run that had been finished before is left."""
    path = Path(summary.folder) / REPORT
    if not (summary.already_finished and path.exists()):
        write_text(path, redact_diagnostics(report_text(summary)))
    return path


def report_text(summary: RunSummary) -> str:
    """The report as Markdown: the result in a sentence, scores, what changed in the skill, steps, how it was made."""
    folder = Path(summary.folder)
    start, best = read_text(folder / START), read_text(folder / summary.best_skill_path)
    sections = (
        ("", [_result(summary, same=shown(start) == shown(best))]),
        ("What to do next", [f"* {line}" for line in next_lines(summary, same=shown(start) == shown(best))]),
        ("Scores", _scores(summary)),
        ("Test tasks", comparison_lines(folder)),
        ("Task types", _kinds(summary)),
        ("What changed in the skill", _changes(start, best)),
        ("Not right with the best skill", wrong_lines(folder)),
        ("Steps", _steps(folder)),
        ("To know", [f"* {note}" for note in _notes(summary)]),
        ("What it used", _used(summary)),
        ("How it was made", _made(summary, best)),
    )
    parts = [f"# {summary.config['env']['name']}: a skill trained"]
    for title, lines in sections:
        if lines:
            parts.append("\n".join([*([f"## {title}", ""] if title else []), *lines]))
    return "\n\n".join(parts) + "\n"


def _result(summary: RunSummary, *, same: bool) -> str:
    before, after = summary.baseline_test_hard, summary.test_hard
    if same:
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
    return table(("skill", "selection", "test", "95 % interval", "test, partial credit"), rows)


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
    return table(("task type", "test tasks", "first", "best"), rows)


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
        (str(step["step"]), ACTIONS.get(step["action"], step["action"]), _number(step["rollout_hard"]),
         _number(step["candidate_gate_score"]), step["reason"])
        for step in steps
    ]  # fmt: skip
    if not rows:
        return []
    about = "Rollout: the score on the training tasks of the step; candidate: that of the changed skill in selection."
    return [about, "", *table(("step", "what became of it", "rollout", "candidate", "why"), rows)]


def _notes(summary: RunSummary) -> Iterator[str]:
    if summary.status != "finished":
        told = "" if summary.budget in summary.notes else summary.budget
        yield f"The run has not come to its end (status {summary.status}). {told}".strip()
    if summary.ended_early:
        yield summary.ended_early
    yield from summary.notes


def _used(summary: RunSummary) -> list[str]:
    """Calls, tokens and dollars of each role, and of each stage; what is not known is a dash."""
    rows = []
    for name, used in sorted(summary.token_summary.items(), key=lambda each: not each[0].startswith("_")):
        if name != "_total":
            counts = (used.get(key) for key in ("calls", "prompt_tokens", "completion_tokens"))
            usd = used.get("usd")
            told = ("-" if count is None else f"{count:,}" for count in counts)
            who = f"{name[1:]} (role)" if name.startswith("_") else name
            rows.append((who, *told, "-" if usd is None else f"{usd:.4f}"))
    total = (
        f"{summary.total_wall_time_s:.1f} seconds, {spent_text(summary.token_summary)}. More: `skillopt calls FOLDER`."
    )
    return [total, "", *table(("", "calls", "tokens in", "tokens out", "dollars"), rows)] if rows else [total]


def _made(summary: RunSummary, best: str) -> list[str]:
    model, splits, env = summary.config["model"], summary.splits, summary.config["env"]
    models = (f"{role} {model.get(role) or 'default'} ({model[f'{role}_backend']})" for role in ("optimizer", "target"))
    sizes = ", ".join(f"{count} {part}" for part, count in splits.items())
    scorer = env.get("scorer")
    scored = f"; scorer: {scorer['name']}" if isinstance(scorer, Mapping) else ""
    return [
        f"* Models: {', '.join(models)}; seed {summary.config['train']['seed']}; SkillOpt {summary.version}",
        f"* Tasks: {sizes}; gate: {summary.gate}{scored}",
        f"* Versions: the first skill is `{summary.start_skill.get('hash', '')}`, the best one `{skill_hash(best)}`",
        f"* Best skill: `{summary.best_skill_path}` beside this file; every other version is in `skills/`",
    ]


def _number(value: Any) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(interval: Sequence[float] | Mapping[str, float] | None) -> str:
    return "-" if not interval else "{:.3f} to {:.3f}".format(*interval)
