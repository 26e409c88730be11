"""`skillopt config`: show a resolved configuration, list the packaged ones, copy one out."""

from __future__ import annotations

from pathlib import Path

import click

from skillopt_kernel.cli.options import SeveralAfterOneFlag, chosen_config, config_options, override_option


@click.group()
def config() -> None:
    """Show a configuration and where each value came from; list and copy packaged ones."""


@config.command(cls=SeveralAfterOneFlag)
@config_options
@override_option
@click.option("--origins", is_flag=True, help="Say where each value came from, and which keys nothing reads.")
@click.option("--prompts", is_flag=True, help="Print the prompts instead: name, hash, source, text.")
def show(
    config: str | None, config_option: str | None, overrides: tuple[str, ...], origins: bool, prompts: bool
) -> int:
    """Print what CONFIG, a file or a packaged name, comes to. Credentials are never shown."""
    from skillopt_kernel.config import load_config, report
    from skillopt_kernel.console import echo, error

    resolved = load_config(chosen_config(config, config_option), overrides)
    for warning in resolved.warnings:
        error(f"Warning: {warning}")
    for line in report.prompt_lines(resolved) if prompts else report.lines(resolved, origins):
        echo(line)
    return 0


@config.command("list")
def list_names() -> int:
    """List the packaged configurations by name."""
    from skillopt_kernel.config.packaged import packaged_names
    from skillopt_kernel.console import echo, table

    names = packaged_names()
    echo(table(("name", "carried by"), [(name, place) for name, places in names.items() for place in places]))
    return 0


@config.command()
@click.argument("name")
@click.option("--to", "to", type=click.Path(path_type=Path), help="The file to write; NAME.yaml here when left out.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
def copy(name: str, to: Path | None, force: bool) -> int:
    """Write the packaged configuration NAME out, to be edited."""
    from skillopt_kernel.config.packaged import find_packaged, package_path, packaged_names
    from skillopt_kernel.console import echo
    from skillopt_kernel.errors import ConfigError

    found = find_packaged(name)
    if found is None:
        raise ConfigError(f"{name}: no packaged configuration has this name. There are {', '.join(packaged_names())}")
    target = to if to is not None else Path(f"{name.rpartition('/')[2]}.yaml")
    if target.is_dir():
        target = target / f"{name.rpartition('/')[2]}.yaml"
    if target.exists() and not force:
        raise ConfigError(f"{target}: is there already; name another file with --to, or replace it with --force")
    try:
        target.write_bytes(package_path(found).read_bytes())
    except OSError as error:
        raise ConfigError(
            f"{target}: cannot be written ({error.strerror or error}); name another file with --to"
        ) from error
    echo(f"{found} is written to {target}")
    return 0
