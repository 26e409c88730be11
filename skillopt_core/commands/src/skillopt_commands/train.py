"""`skillopt train`: train a skill."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from skillopt_kernel.cli.options import SeveralAfterOneFlag, loaded

from skillopt_commands.running import Folder, common_options, displayed
from skillopt_commands.without_yaml import task_options

if TYPE_CHECKING:
    from skillopt_kernel.config import Config
    from skillopt_kernel.history import RunSummary


@click.command(cls=SeveralAfterOneFlag)
@click.argument("configs", metavar="CONFIG...", nargs=-1)
@click.option("--config", "config_option", metavar="CONFIG", help="The same as one argument.")
@task_options(skill=True)
@common_options
@click.option(
    "--parallel",
    metavar="N",
    type=click.IntRange(min=1),
    help="Of several configurations, train N at the same time; without it, one after another.",
)
@click.option(
    "--seeds",
    metavar="N|LIST",
    help="Train N times, with seeds train.seed, train.seed + 1, ..., or with the seeds of a list such as 1,5,9.",
)
@click.option("--fresh", is_flag=True, help="Begin beside an earlier run instead of going on with it.")
@click.option(
    "--replay",
    metavar="RUN",
    type=Folder(path_type=Path),
    help="Answer every call from the ledger of the run in the folder RUN: no model is asked, nothing is spent.",
)
def train(
    configs: tuple[str, ...],
    config_option: str | None,
    out: Path | None,
    overrides: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    parallel: int | None,
    seeds: str | None,
    fresh: bool,
    replay: Path | None,
) -> int:
    """Train a skill by the configuration CONFIG: a file, or a packaged name such as demo.

    Your own tasks need none: skillopt train --tasks tasks.csv --skill SKILL.md --scorer exact --model gpt-5.5

    Ends with best_skill.md and report.md in the run directory. An unfinished run there is resumed; a finished one is
    named and nothing is done. --seeds makes a series: a folder for each seed, and the mean of their test scores.

    Several configurations are all checked before the first is begun, and end with one table. A run that fails stops no
    other. What the section budget says (-o budget.usd=20) they may use together. --out is then the folder in which each
    has one.

    \b
    Exit codes: 0 done; 2 a mistake that you can correct; 3 stopped before the end with the state saved;
    4 stopped so at a limit of the budget (raise it and run the same command again); 130 interrupted.
    """
    from skillopt_kernel.console import echo
    from skillopt_kernel.loop import api

    from skillopt_commands.report import report_of
    from skillopt_commands.several import exit_code

    several = len(configs) > 1 or parallel is not None
    if seeds is not None and replay is not None:
        raise click.UsageError("--replay runs one training again, --seeds several; give one of them.")
    if several and (seeds is not None or replay is not None):
        flag = "--replay" if seeds is None else "--seeds"
        raise click.UsageError(
            f"{flag} is for one configuration: give one CONFIG without --parallel, or leave out {flag}."
        )
    if len(configs) > 1:
        named = [*configs, *([config_option] if config_option else [])]
        return _several(named, overrides, parallel or 1, quiet=quiet, as_json=as_json, out=out, fresh=fresh)
    chosen = loaded(next(iter(configs), None), config_option, overrides)
    if seeds is not None:
        return _series(chosen, seeds, quiet=quiet, as_json=as_json, out=out, fresh=fresh)
    with displayed(quiet=quiet, as_json=as_json, training=True) as shown:
        summary = api.train(chosen, out=out, fresh=fresh, replay=replay, **shown)
    report = report_of(summary)
    if as_json:
        echo(json.dumps({"summary": summary.as_json()}))
    else:
        _tell(summary, report, replay)
    return exit_code(summary.status)


def _tell(summary: RunSummary, report: Path, replay: Path | None) -> None:
    """What a training came to, for a person."""
    from skillopt_kernel.console import echo

    from skillopt_commands.texts import summary_text

    if summary.already_finished:
        echo(f"This run is finished already ({summary.folder}); nothing was done. --fresh begins another beside it.")
    echo(summary_text(summary))
    if replay is not None:
        echo(f"Replayed from {replay}: no model was asked, and what its calls used is what they used there.")
    echo(f"Report: {report}")
    echo(f"Best skill: {Path(summary.folder) / summary.best_skill_path}")


def _series(config: Config, seeds: str, *, quiet: bool, as_json: bool, **where: Any) -> int:
    from skillopt_kernel.console import echo

    from skillopt_commands.series import train_seeds
    from skillopt_commands.several import exit_code
    from skillopt_commands.texts import seeds_text

    with displayed(quiet=quiet, as_json=as_json, training=True) as shown:
        summary = train_seeds(config, seeds, **where, **shown)
    echo(json.dumps({"seeds": summary.as_json() | {"folder": summary.folder}}) if as_json else seeds_text(summary))
    return exit_code(summary.status)


def _several(
    named: Sequence[str], overrides: Sequence[str], parallel: int, *, quiet: bool, as_json: bool, **where: Any
) -> int:
    from skillopt_kernel.console import echo
    from skillopt_kernel.errors import SkillOptError, told

    from skillopt_commands.running import Stop, display_for, stopping_on_signals
    from skillopt_commands.several import train_several
    from skillopt_commands.several_table import several_text

    configs, problems = [], []
    for name in named:
        try:
            configs.append(loaded(name, None, overrides))
        except SkillOptError as error:
            problems.append(told(error))
    if problems:
        raise SkillOptError("\n".join([*problems, "Nothing was begun."]))
    displays = []

    def observers(label: str) -> list[tuple[str, Any]]:
        displays.append(display_for(quiet=quiet, as_json=as_json, training=True, name=label if parallel > 1 else ""))
        return [("console", displays[-1])]

    stop = Stop()
    try:
        with stopping_on_signals(stop):
            runs = train_several(configs, parallel=parallel, observers=observers, stop=stop, **where)
    finally:
        for display in displays:
            display.close()
    echo(json.dumps({"runs": [run.as_json() for run in runs]}) if as_json else several_text(runs))
    return stop.exit_code if stop.is_set() else next((run.exit_code for run in runs if run.exit_code), 0)
