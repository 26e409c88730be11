"""`skillopt eval`: score a skill on one split."""

from __future__ import annotations

import json
from pathlib import Path

import click
from skillopt_kernel.cli.options import SeveralAfterOneFlag, loaded

from skillopt_commands.running import Folder, displayed, run_options
from skillopt_commands.without_yaml import task_options


@click.command(cls=SeveralAfterOneFlag)
@task_options()
@run_options
@click.option(
    "--skill", required=True, type=click.Path(path_type=Path), help="The skill: its file or folder, or a finished run."
)
@click.option(
    "--split", default="valid_seen", show_default=True, help="train, valid_seen (or val), valid_unseen (or test), all."
)
@click.option("--fresh", is_flag=True, help="Begin beside an earlier evaluation, and ask everything anew.")
@click.option(
    "--replay",
    metavar="RUN",
    type=Folder(path_type=Path),
    help="Answer every call from the ledger of the run in the folder RUN: no model is asked, nothing is spent.",
)
def evaluate(
    config: str | None,
    config_option: str | None,
    out: Path | None,
    overrides: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    skill: Path,
    split: str,
    fresh: bool,
    replay: Path | None,
) -> int:
    """Score a skill on one split of the data that CONFIG, a file or a packaged name, describes.

    Writes eval_summary.json into a folder of its own (outputs/eval-... without --out). An unfinished evaluation
    there goes on; a finished one is shown and nothing is done. Exit code 3 when some tasks have no score.
    """
    from skillopt_kernel.console import echo
    from skillopt_kernel.errors import StoppedEarly

    from skillopt_commands.evaluation import evaluate as score
    from skillopt_commands.start_skills import skill_file
    from skillopt_commands.texts import evaluation_text

    chosen = loaded(config, config_option, overrides)
    with displayed(quiet=quiet, as_json=as_json, training=False) as shown:
        result = score(chosen, skill_file(skill), split, out=out, fresh=fresh, replay=replay, **shown)
    if as_json:
        echo(json.dumps({"evaluation": result.as_json() | {"folder": result.folder}}))
    else:
        if result.already_finished:
            echo("This evaluation is finished already; nothing was done. --fresh begins another beside it.")
        echo(evaluation_text(result.as_json()))
        echo(f"Folder: {result.folder}")
    return 0 if result.n_scored == result.n_items else StoppedEarly.exit_code
