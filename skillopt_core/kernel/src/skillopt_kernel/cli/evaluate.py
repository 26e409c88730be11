"""`skillopt eval`: score a skill on one split."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from skillopt_kernel.cli.options import SeveralAfterOneFlag, displayed, loaded, run_options


@click.command(cls=SeveralAfterOneFlag)
@run_options
@click.option("--skill", required=True, type=click.Path(path_type=Path), help="The skill's file.")
@click.option("--split", default="valid_seen", show_default=True, help="train, valid_seen, valid_unseen or all.")
def evaluate(
    config: str | None,
    config_option: str | None,
    out: Path | None,
    overrides: tuple[str, ...],
    quiet: bool,
    as_json: bool,
    skill: Path,
    split: str,
) -> int:
    """Score the skill in a file on one split of the configuration's data.

    Exit code 3 when some tasks have no score.
    """
    import attrs

    from skillopt_kernel.console import echo
    from skillopt_kernel.errors import StoppedEarly
    from skillopt_kernel.loop import api

    with displayed(quiet=quiet, as_json=as_json, training=False) as shown:
        result = api.evaluate(loaded(config, config_option, overrides), skill, split, out=out, **shown)
    echo(json.dumps({"evaluation": attrs.asdict(result)}) if as_json else _text(result))
    return 0 if result.n_scored == result.n_items else StoppedEarly.exit_code


def _text(result: Any) -> str:
    from skillopt_kernel.console import score, table

    rows = [
        (kind, str(row["total"]), str(row["scored"]), score(row["hard_acc"]), score(row["soft"]))
        for kind, row in result.by_kind.items()
    ]
    missing = result.n_items - result.n_scored
    note = f"\n{missing} of {result.n_items} tasks have no score and are in no mean." if missing else ""
    title = f"{result.skill} on {result.split}"
    return f"{title}\n{table(('task type', 'tasks', 'scored', 'hard', 'soft'), rows)}{note}\nFolder: {result.folder}"
