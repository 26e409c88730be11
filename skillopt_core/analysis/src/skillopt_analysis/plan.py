"""`skillopt plan`: what a training will ask, use and take, before anything is spent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from skillopt_kernel.cli.options import SeveralAfterOneFlag, config_options, loaded, override_option
from skillopt_kernel.console import echo, table

if TYPE_CHECKING:
    from skillopt_analysis.planning.amounts import Amount, Range
    from skillopt_analysis.planning.making import TrainingPlan
    from skillopt_analysis.planning.within import Within

SECONDS = click.FloatRange(min=0)


@click.command(cls=SeveralAfterOneFlag)
@config_options
@override_option
@click.option("--like", type=click.Path(path_type=Path), metavar="RUN", help="Take sizes and shares from this run.")
@click.option("--seconds-target", type=SECONDS, metavar="S", help="Seconds of one call of the target (5).")
@click.option("--seconds-optimizer", type=SECONDS, metavar="S", help="Seconds of one call of the optimizer (30).")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def plan(
    config: str | None,
    config_option: str | None,
    overrides: tuple[str, ...],
    like: Path | None,
    seconds_target: float | None,
    seconds_optimizer: float | None,
    as_json: bool,
) -> int:
    """What training by CONFIG will take: calls, tokens, dollars and time, with a range and what was assumed.

    Data and start skill are read, no model is called and nothing is written. A dash is unknown, never zero.
    """
    from skillopt_analysis.planning.assuming import Assumed, like_run, with_seconds
    from skillopt_analysis.planning.making import plan_training

    given = {"target": seconds_target, "optimizer": seconds_optimizer}
    seconds = {role: value for role, value in given.items() if value is not None}
    chosen = loaded(config, config_option, overrides)
    assumed = with_seconds(Assumed(), seconds) if like is None else like_run(like, seconds)
    made = plan_training(chosen, assumed)
    echo(json.dumps(made.as_json()) if as_json else plan_text(made))
    return 0


def plan_text(plan: TrainingPlan) -> str:
    """The plan as lines of text."""
    total, stages = plan.total, plan.by_stage()
    splits = ", ".join(f"{count} {name}" for name, count in plan.splits.items())
    rows = [(role, stage, *_cells(amount)) for (role, stage), amount in stages.items()]
    schedule = f"{_counted(plan.epochs, 'epoch')} of {_counted(plan.steps_per_epoch, 'step')}"
    lines = [
        f"Plan of {plan.config}: {schedule}; {splits} tasks",
        "",
        table(("role", "stage", "least", "expected", "most", "in", "out", "usd"), [*rows, ("all", "", *_cells(total))]),
        "",
        f"Calls    {_numbers(total.calls)}",
        f"Tokens   {_numbers(total.tokens)}",
        f"Dollars  {_dollars(plan)}",
        f"Time     {_times(total.seconds)}, with {plan.workers} attempts at once",
        *(_limit(one, plan.steps) for one in plan.budget),
        "",
        "Assumed:",
    ]
    return "\n".join([*lines, *(f"- {sentence}" for sentence in plan.assumed)])


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _limit(limit: Within, steps: int) -> str:
    """What one limit of the budget admits."""
    told = f"Budget   {limit.key} ({limit.most:,g})"
    if limit.needs is None or limit.steps is None:
        return f"{told} cannot be compared: a price is unknown"
    expected, most = (f"{number:,.{0 if number >= 10 else 2}f}" for number in (limit.needs.expected, limit.needs.most))
    if limit.needs.most <= limit.most:
        return f"{told} is enough: at most {most} {limit.unit} are needed"
    if limit.needs.expected <= limit.most and limit.steps == steps:
        return f"{told} is enough for what is expected, {expected} {limit.unit}, but not for the most, {most}"
    return f"{told} admits about {limit.steps} of {steps} steps: all need about {expected} {limit.unit}"


def _cells(amount: Amount) -> tuple[str, ...]:
    calls = (amount.calls.least, amount.calls.expected, amount.calls.most)
    tokens = (amount.prompt_tokens.expected, amount.completion_tokens.expected)
    dollars = "-" if amount.usd is None else _usd(amount.usd.expected)
    return (*(f"{round(number):,}" for number in (*calls, *tokens)), dollars)


def _numbers(amount: Range) -> str:
    least, expected, most = (f"{round(number):,}" for number in (amount.least, amount.expected, amount.most))
    return f"about {expected} ({least} to {most})"


def _dollars(plan: TrainingPlan) -> str:
    if plan.total.usd is not None:
        return _usd_range(plan.total.usd)
    which = "; ".join(f"{role}: {model}" for role, model in plan.unpriced.items())
    known = f"{_usd_range(plan.known_usd)} of what has a price; the rest is " if plan.known_usd.most else ""
    return f"{known}unknown, as no price is known of {which}"


def _usd_range(usd: Range) -> str:
    return f"about {_usd(usd.expected)} ({_usd(usd.least)} to {_usd(usd.most)})"


def _usd(dollars: float) -> str:
    return f"{dollars:,.2f}" if dollars >= 10 else f"{dollars:.4f}"


def _times(seconds: Range) -> str:
    return f"about {_time(seconds.expected)} ({_time(seconds.least)} to {_time(seconds.most)})"


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"
