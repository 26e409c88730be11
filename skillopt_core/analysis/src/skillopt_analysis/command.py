"""`skillopt audit`: what a skill could learn from the data instead of the task."""

from __future__ import annotations

import json

import click
from skillopt_kernel.cli.options import SeveralAfterOneFlag, config_options, loaded, override_option
from skillopt_kernel.console import echo

from skillopt_analysis.finding import Report, in_words


@click.command(cls=SeveralAfterOneFlag)
@config_options
@override_option
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, with the ids of all tasks concerned.")
def audit(config: str | None, config_option: str | None, overrides: tuple[str, ...], as_json: bool) -> int:
    """Find shortcuts in the data of CONFIG, split by split; no model is asked.

    Options that are right far more often than by chance, an answer that is right almost everywhere, inputs that are
    there twice or in two splits. Exit code 1 when there are findings.
    """
    from skillopt_analysis.auditing import audit_config

    resolved = loaded(config, config_option, overrides)
    report = audit_config(resolved)
    echo(json.dumps({"config": resolved.name, **report.as_json()}) if as_json else report_text(resolved.name, report))
    return 1 if report.findings else 0


def report_text(name: str, report: Report) -> str:
    """The audit as lines of text."""
    counts = ", ".join(f"{count} {part}" for part, count in report.counts.items())
    lines = [f"Data of {name}: {counts} tasks"]
    lines += [f"{'Note' if one.note else 'Finding'}: {one.split}: {one.message}." for one in report.found]
    findings = len(report.findings)
    if not findings:
        return "\n".join([*lines, "No finding."])
    return "\n".join(
        [
            *lines,
            f"{in_words(findings, 'finding')} ({report.name}). A skill can learn this instead of the task, and its "
            f"scores would show it as progress: look at these tasks before you train.",
        ]
    )
