"""`skillopt doctor`: whether what is installed and what a configuration names will work, before anything is spent."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click
from skillopt_kernel.cli.options import SeveralAfterOneFlag, chosen_config, config_options, override_option
from skillopt_kernel.console import echo, error

from skillopt_commands.running import Folder
from skillopt_commands.without_yaml import task_options

if TYPE_CHECKING:
    from skillopt_commands.checks.finding import Report

UNWELL = 2
WIDTH = 120


@click.command(cls=SeveralAfterOneFlag)
@task_options(skill=True)
@config_options
@override_option
@click.option("--out", type=Folder(path_type=Path), help="The folder that a training would be told to write into.")
@click.option(
    "--online",
    is_flag=True,
    help="Also ask each chat model for one word, which is paid for; what it may cost is said before.",
)
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def doctor(
    config: str | None,
    config_option: str | None,
    overrides: tuple[str, ...],
    out: Path | None,
    online: bool,
    as_json: bool,
) -> int:
    """Check what is installed and, with CONFIG, everything that a training by it needs: data, plugins, keys, endpoints,
    programs, folders, disk. Your own tasks need no CONFIG: --tasks FILE is enough.

    What would stop the run is an error, with what to do. Endpoints are asked for their list of models and programs for
    their version, which costs nothing; no model is called without --online, and nothing is written.

    \b
    Exit codes: 0 all is well, or there are warnings only; 2 something would stop the run.
    """
    from skillopt_commands.checks.finding import Report
    from skillopt_commands.checks.installed import check_installed

    named = config or config_option
    if not named and (overrides or online or out is not None):
        raise click.UsageError("-o, --out and --online are for a configuration; give one.")
    report = Report()
    check_installed(report, listed=not named)
    if named:
        from skillopt_commands.checks.run import check_run

        check_run(report, chosen_config(config, config_option), overrides, out, error if online else None)
    if as_json:
        echo(json.dumps({"well": report.well, "checks": [attrs.asdict(one) for one in report.found]}))
    else:
        echo(report_text(report))
    return 0 if report.well else UNWELL


def report_text(report: Report) -> str:
    """A line for each thing that was checked, wrapped beside its name, and how much is not well."""
    width = max(len(one.check) for one in report.found)
    lines = []
    for one in report.found:
        head = f"{one.check:<{width}}  {one.result:<7}  "
        options: Any = {"break_long_words": False, "break_on_hyphens": False}  # a path can be copied as it is
        lines.append(textwrap.fill(one.text, WIDTH, initial_indent=head, subsequent_indent=" " * len(head), **options))
    counts = {name: sum(one.result == name for one in report.found) for name in ("error", "warning")}
    told = ", ".join(f"{count} {name}{'s' * (count > 1)}" for name, count in counts.items() if count)
    return "\n".join([*lines, "", f"{told or 'All is well'}."])
