"""The sentences of a run's display, as plain lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillopt_kernel.console import score, table
from skillopt_kernel.history import RunSummary
from skillopt_kernel.store.events import Event

from skillopt_commands.progress import spent_text

if TYPE_CHECKING:
    from skillopt_commands.series import SeedMean, SeedsSummary


def event_lines(event: Event, *, training: bool) -> list[str]:
    """The lasting lines that an event deserves on every display; most deserve none."""
    lines = [""] if event.name == "run_finished" else []
    if event.name == "run_started":
        lines = start_lines(event.data, training=training)
    elif event.name == "step_finished":
        lines = [step_line(event)]
    elif event.name == "epoch_finished":
        early = event.data.get("ended_early")
        lines = [epoch_line(event), *([early[0].upper() + early[1:]] if early else [])]
    warning = event.data.get("warning")
    return [*lines, f"Warning: {warning}"] if warning else lines


def amount(limit: str, value: float) -> str:
    """How much of a limit of the budget, with its unit."""
    unit = limit.rpartition(".")[2].removeprefix("wall_")
    return f"${value:,.2f}" if unit == "usd" else f"{value:,.{1 if unit == 'minutes' else 0}f} {unit}"


def start_lines(data: Mapping[str, Any], *, training: bool) -> list[str]:
    """What is about to be done: models, data, schedule, gate, folder."""
    after = f" after step {data['step_done']}" if data["step_done"] else ""
    seed = f" (seed {data['seed']})" if training else ""
    doing = "Evaluating a skill on" if not training else "Resuming" if data["resumed"] else "Training"
    start = data.get("start_skill", {})
    told = {role: _model(about) for role, about in data["models"].items() if training or role != "optimizer"}
    splits = ", ".join(f"{count} {name}" for name, count in data["splits"].items())
    told["data"] = f"{data['environment']}: {splits} tasks"
    if "evaluates" in data:
        told |= {"skill": start.get("path", "-"), "split": data["evaluates"]}
    if training:
        batches = f"{data['accumulation']} x " if data["accumulation"] > 1 else ""
        size = min(data["batch_size"], data["splits"]["train"])
        steps = f"{_counted(data['steps_per_epoch'], 'step')} of {batches}{_counted(size, 'task')}"
        several = f", {data['samples_per_task']} attempts at each" if data.get("samples_per_task", 1) > 1 else ""
        told["schedule"] = f"{_counted(data['epochs'], 'epoch')} of {steps}{several}"
        told["updates"] = f"{data['update']}, sized by the {data['scheduler']} scheduler"
        told["gate"] = data["gate"]
        if start.get("from") == "run":
            told["start"] = f"the best skill of the run {start['run']} (step {start['step']})"
        told["epoch end"] = ", ".join(data["epoch_end"]) or "no plugin performs an epoch-end update"
    if data.get("budget"):
        limits = data["budget"].items()
        told["budget"] = ", ".join(f"{amount(key, used)} of {amount(key, most)} used" for key, (used, most) in limits)
    told |= {"workers": str(data["workers"]), "folder": data["folder"]}
    lines = [f"{doing} {data['config']}{seed}{after}"]
    return lines + [f"  {name:<11}{value}" for name, value in told.items()]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _model(about: Mapping[str, str]) -> str:
    """A role's backend with its model and endpoint, as far as they say more than the backend's name."""
    model = f" {about['model']}" if about["model"] else ""
    endpoint = f" at {about['endpoint']}" if about["endpoint"] not in ("", about["backend"]) else ""
    return f"{about['backend']}{model}{endpoint}"


def stage_line(event: Event) -> str:
    told = ", ".join(
        f"{name} {score(value) if isinstance(value, float) else value}"
        for name, value in event.data.items()
        if name != "seconds" and value is not None
    )
    return f"  {event.stage:<11}{event.data['seconds']:6.1f}s  {told}".rstrip()


def step_line(event: Event) -> str:
    """What a step came to, within 80 columns."""
    data = event.data
    told = [data["action"], f"rollout {score(data['rollout_hard'])}"]
    if data["candidate_gate_score"] is not None:
        told.append(f"candidate {score(data['candidate_gate_score'])}")
    elif data["selection_bound"] is not None:
        told.append(f"candidate at most {score(data['selection_bound'])}")
    elif data["action"] == "reject":
        told.append("candidate not tried")
    told += [f"best {score(data['best_score'])}", f"{data['wall_time_s']:.1f}s"]
    return f"Step {event.step}: {', '.join(told)}"


def epoch_line(event: Event) -> str:
    data = event.data
    return (
        f"Epoch {event.epoch}: {data['accepts']} accepted, {data['rejects']} rejected, {data['skips']} skipped, "
        f"best {score(data['best_score'])}"
    )


def summary_text(summary: RunSummary) -> str:
    """The table of scores of the first, best and last skill, what to know of them, and where the skill lies."""
    rows = []
    for name, prefix, test in (
        ("first", "baseline", "baseline_test"),
        (f"best (step {summary.best_step})", "best", "test"),
        ("last", "final", "final_test"),
    ):
        interval = summary.intervals.get(f"{test}_hard")
        scores = (f"{prefix}_selection_hard", f"{test}_hard", f"{test}_soft")
        selection, hard, soft = (score(getattr(summary, field)) for field in scores)
        rows.append((name, selection, hard, _between(interval), soft, str(getattr(summary, f"{test}_n"))))
    headings = ("skill", "selection", "test", "95% interval", "test soft", "tasks")
    lines = [
        table(headings, rows),
        "",
        f"{summary.total_steps} steps: {summary.total_accepts} accepted, {summary.total_rejects} rejected, "
        f"{summary.total_skips} skipped, {summary.total_undecided} undecided, {summary.total_forced} forced",
        f"{summary.total_wall_time_s:.1f}s, {spent_text(summary.token_summary)}",
    ]
    if summary.model_failures:
        failures = ", ".join(f"{count} {name}" for name, count in summary.model_failures.items())
        lines.append(f"Optimizer calls that came to nothing: {failures}")
    lines += [f"Note: {note}" for note in summary.notes]
    return "\n".join(lines)


def evaluation_text(summary: Mapping[str, Any]) -> str:
    """What `eval_summary.json` says: a row for each task type and one for all, what has no score, what it used."""
    rows = [
        (
            kind,
            str(row["total"]),
            str(row["scored"]),
            score(row["hard_acc"]),
            _between(row["interval"]),
            score(row["soft"]),
        )
        for kind, row in summary["by_kind"].items()
    ]
    missing = summary["n_items"] - summary["n_scored"]
    lines = [
        f"{summary['skill']} on {summary['split']}",
        table(("task type", "tasks", "scored", "hard", "95% interval", "soft"), rows),
        f"Used: {spent_text(summary['token_summary'])}",
    ]
    if missing:
        told = f"{missing} of {summary['n_items']} tasks have no score and are in no mean"
        lines.append(f"Note: {told}; run the same command again, and they are asked again.")
    return "\n".join(lines)


def _between(interval: Sequence[float] | None) -> str:
    return f"{interval[0]:.2f} to {interval[1]:.2f}" if interval else "-"


def seeds_text(summary: SeedsSummary) -> str:
    """The table of a series, what its runs say together, which skill to take, and what to know of them."""
    fields = ("best_gate_score", "baseline_test_hard", "test_hard", "final_test_hard", "test_delta_hard")
    rows = [
        (
            f"{run.seed} (finished before)" if run.finished_before else str(run.seed),
            *(score(getattr(run, name)) for name in fields),
            str(run.best_step),
        )
        for run in summary.runs
    ]
    headings = ("seed", "selection", "test first", "test best", "test last", "gain", "best step")
    lines = [
        table(headings, rows),
        "",
        f"Test score of the best skill:  {_mean_text(summary.test_hard, summary)}",
        f"Its gain over the first skill: {_mean_text(summary.test_delta_hard, summary)}",
    ]
    for run in summary.runs:
        if run.seed == summary.best_by_selection:
            skill = Path(summary.folder) / run.folder / "best_skill.md"
            lines.append(f"Best on the selection tasks, which alone choose: seed {run.seed}, {skill}")
    lines += [f"Note: {note}" for note in summary.notes]
    return "\n".join([*lines, f"Folder: {summary.folder}"])


def _mean_text(mean: SeedMean | None, summary: SeedsSummary) -> str:
    if mean is None:
        return "unknown, no run has a test score"
    if mean.interval is None:
        return f"{mean.mean:.4f} (one run)"
    low, high = mean.interval
    percent = round(100 * summary.confidence)
    return f"mean {mean.mean:.4f}, {percent}% {low:.4f} to {high:.4f} ({summary.method}, n={mean.n})"
