"""`skillopt train`: train a skill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from skillopt_kernel.cli.options import SeveralAfterOneFlag, loaded

from skillopt_commands.running import Folder, displayed, run_options

if TYPE_CHECKING:
    from skillopt_kernel.config import Config


@click.command(cls=SeveralAfterOneFlag)
@run_options
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
    config: str | None,
    config_option: str | None,
    out: Path | None,
    overrides: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    seeds: str | None,
    fresh: bool,
    replay: Path | None,
) -> int:
    """Train a skill by the configuration CONFIG: a file, or a packaged name such as demo.

    Ends with best_skill.md in the run directory. An unfinished run there is resumed; a finished one is named
    and nothing is done. --seeds makes a series: a folder for each seed, and the mean of their test scores.

    \b
    Exit codes: 0 done; 2 a mistake that you can correct; 3 stopped before the end with the state saved;
    4 stopped so at a limit of the budget (raise it and run the same command again); 130 interrupted.
    """
    from skillopt_kernel.console import echo
    from skillopt_kernel.loop import api

    from skillopt_commands.texts import summary_text

    if seeds is not None and replay is not None:
        raise click.UsageError("--replay runs one training again, --seeds several; give one of them.")
    chosen = loaded(config, config_option, overrides)
    if seeds is not None:
        return _series(chosen, seeds, quiet=quiet, as_json=as_json, out=out, fresh=fresh)
    with displayed(quiet=quiet, as_json=as_json, training=True) as shown:
        summary = api.train(chosen, out=out, fresh=fresh, replay=replay, **shown)
    if as_json:
        echo(json.dumps({"summary": summary.as_json()}))
    else:
        if summary.already_finished:
            echo(
                f"This run is finished already ({summary.folder}); nothing was done. --fresh begins another beside it."
            )
        echo(summary_text(summary))
        if replay is not None:
            echo(f"Replayed from {replay}: no model was asked, and what its calls used is what they used there.")
        echo(f"Best skill: {Path(summary.folder) / summary.best_skill_path}")
    return exit_code(summary.status)


def exit_code(status: str) -> int:
    """0 for a run that is finished, 4 at a limit of its budget, 3 for another that stopped before its end."""
    from skillopt_kernel.errors import BudgetSpent, StoppedEarly

    return {"finished": 0, "budget": BudgetSpent.exit_code}.get(status, StoppedEarly.exit_code)


def _series(config: Config, seeds: str, *, quiet: bool, as_json: bool, **where: Any) -> int:
    from skillopt_kernel.console import echo

    from skillopt_commands.series import train_seeds
    from skillopt_commands.texts import seeds_text

    with displayed(quiet=quiet, as_json=as_json, training=True) as shown:
        summary = train_seeds(config, seeds, **where, **shown)
    echo(json.dumps({"seeds": summary.as_json() | {"folder": summary.folder}}) if as_json else seeds_text(summary))
    return exit_code(summary.status)
