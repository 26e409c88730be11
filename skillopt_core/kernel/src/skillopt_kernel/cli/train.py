"""`skillopt train`: train a skill."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import click

from skillopt_kernel.cli.options import (
    SeveralAfterOneFlag,
    chosen_config,
    config_options,
    override_option,
    stopping_on_interrupt,
)

INTERRUPTED = 130


@click.command(cls=SeveralAfterOneFlag)
@config_options
@click.option("--out", "--out_root", "out", type=click.Path(path_type=Path), help="The run directory.")
@override_option
@click.option("--fresh", is_flag=True, help="Begin beside an earlier run instead of going on with it.")
@click.option("--quiet", "-q", is_flag=True, help="Show nothing but the result.")
@click.option("--json", "as_json", is_flag=True, help="Show each event, and the summary last, as lines of JSON.")
def train(
    config: str | None,
    config_option: str | None,
    out: Path | None,
    overrides: tuple[str, ...],
    fresh: bool,
    quiet: bool,
    as_json: bool,
) -> int:
    """Train a skill by the configuration CONFIG: a file, or a packaged name such as demo.

    Ends with best_skill.md in the run directory. An unfinished run there is resumed; a finished one is named
    and nothing is done.
    """
    from skillopt_kernel.console import echo, error
    from skillopt_kernel.console.displays import display_for
    from skillopt_kernel.console.texts import summary_text
    from skillopt_kernel.errors import StoppedEarly
    from skillopt_kernel.loop import api

    display = display_for(quiet=quiet, as_json=as_json)
    stop = threading.Event()
    try:
        with stopping_on_interrupt(stop):
            summary = api.train(
                chosen_config(config, config_option),
                overrides,
                out=out,
                fresh=fresh,
                plugins=[("console", display)],
                stop=stop,
            )
    except StoppedEarly as stopped:
        if not stop.is_set():
            raise
        display.close()
        error(f"Interrupted: {stopped}")
        return INTERRUPTED
    finally:
        display.close()
    code = 0 if summary.status == "finished" else StoppedEarly.exit_code
    if as_json:
        echo(json.dumps({"summary": summary.as_json()}))
        return code
    if summary.already_finished:
        echo(f"This run is finished already ({summary.folder}); nothing was done. --fresh begins another beside it.")
    echo(summary_text(summary))
    echo(f"Best skill: {Path(summary.folder) / summary.best_skill_path}")
    return code
