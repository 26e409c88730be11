"""The sentences of a run's display, as plain lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skillopt_kernel.console import score, table
from skillopt_kernel.history import RunSummary
from skillopt_kernel.store.events import Event


def start_lines(data: Mapping[str, Any]) -> list[str]:
    """What is about to be done: models, data, schedule, gate, folder."""
    splits = data["splits"]
    lines = [f"{'Resuming' if data['resumed'] else 'Training'} {data['config']} after step {data['step_done']}"]
    if not data["resumed"]:
        lines = [f"Training {data['config']}"]
    for role, about in data["models"].items():
        model = f" {about['model']}" if about["model"] else ""
        endpoint = f" at {about['endpoint']}" if about["endpoint"] else ""
        lines.append(f"  {role:<10}{about['backend']}{model}{endpoint}")
    epoch_end = ", ".join(data["epoch_end"]) or "no plugin performs an epoch-end update"
    lines += [
        f"  {'data':<10}{data['environment']}: {splits['train']} train, {splits['selection']} selection, "
        f"{splits['test']} test tasks",
        f"  {'schedule':<10}{data['epochs']} epochs of {data['steps_per_epoch']} steps; each step "
        f"{data['accumulation']} x {data['batch_size']} tasks; scheduler {data['scheduler']}; update {data['update']}",
        f"  {'gate':<10}{data['gate']}",
        f"  {'epoch end':<10}{epoch_end}",
        f"  {'workers':<10}{data['workers']}",
        f"  {'folder':<10}{data['folder']}",
    ]
    lines += [f"Warning: {warning}" for warning in data["warnings"]]
    return lines


def stage_line(event: Event) -> str:
    data = event.data
    told = [f"{name} {_value(value)}" for name, value in data.items() if name != "seconds" and value is not None]
    return f"  {event.stage:<10}{data['seconds']:7.1f}s  {', '.join(told)}"


def step_line(event: Event) -> str:
    data = event.data
    number = score(data["candidate_gate_score"])
    if data["candidate_gate_score"] is None and data["selection_bound"] is not None:
        number = f"at most {score(data['selection_bound'])} after {data['selection_asked']} tasks"
    rollout = f"rollout {score(data['rollout_hard'])}"
    judged = f"candidate {number}, " if data["action"] not in ("skip_no_patches", "skip_no_change") else ""
    return (
        f"Step {event.step}: {data['action']}: {rollout}, {judged}current {score(data['current_score'])}, "
        f"best {score(data['best_score'])} (step {data['best_step']}), {data['wall_time_s']:.1f}s"
    )


def epoch_line(event: Event) -> str:
    data = event.data
    return (
        f"Epoch {event.epoch}: {data['accepts']} accepted, {data['rejects']} rejected, {data['skips']} skipped; "
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
        low_high = summary.intervals.get(f"{test}_hard")
        interval = f"{low_high[0]:.2f} to {low_high[1]:.2f}" if low_high else "-"
        rows.append(
            (
                name,
                score(getattr(summary, f"{prefix}_selection_hard")),
                score(getattr(summary, f"{test}_hard")),
                interval,
                score(getattr(summary, f"{test}_soft")),
                str(getattr(summary, f"{test}_n")),
            )
        )
    headings = ("skill", "selection", "test", "95% interval", "test soft", "tasks")
    total = summary.token_summary.get("_total", {})
    lines = [
        table(headings, rows),
        "",
        f"{summary.total_steps} steps: {summary.total_accepts} accepted, {summary.total_rejects} rejected, "
        f"{summary.total_skips} skipped, {summary.total_undecided} undecided, {summary.total_forced} forced; "
        f"{summary.total_wall_time_s:.1f}s; {_tokens(total)}",
    ]
    if summary.model_failures:
        failures = ", ".join(f"{count} {name}" for name, count in summary.model_failures.items())
        lines.append(f"Optimizer calls that came to nothing: {failures}")
    lines += [f"Note: {note}" for note in summary.notes]
    return "\n".join(lines)


def _tokens(total: Mapping[str, Any]) -> str:
    calls, tokens = total.get("calls", 0), total.get("total_tokens")
    known = "tokens unknown" if tokens is None else f"{tokens:,} tokens"
    untold = f" ({total['unknown_calls']} calls did not tell)" if total.get("unknown_calls") and tokens else ""
    return f"{calls:,} model calls, {known}{untold}"


def _value(value: Any) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
