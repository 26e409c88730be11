"""`skillopt config`: show a resolved configuration, list the packaged ones, copy one out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from skillopt_kernel.cli.options import SeveralAfterOneFlag, config_options, loaded, override_option

if TYPE_CHECKING:
    from skillopt_kernel.config import Config


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
    from skillopt_kernel.console import echo

    resolved = loaded(config, config_option, overrides)
    for line in _prompt_lines(resolved) if prompts else _lines(resolved, origins):
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


def _lines(config: Config, origins: bool = False) -> Iterator[str]:
    """The lines of a YAML file that says what `config` says; credentials stand as "[redacted]".

    origins: where each value came from, as a comment behind it, and the keys that nothing in use reads.
    """
    yield f"# {config.name}" + (f" ({config.path})" if config.path is not None else "")
    for section, values in config.as_dict().items():
        yield ""
        yield f"{section}:" if values else f"{section}: {{}}"
        written = {key: f"  {key}: {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()}
        width = min(max((len(line) for line in written.values()), default=0), 44)
        for key, line in written.items():
            yield f"{line:<{width}}  # {config.origins.get(f'{section}.{key}', 'default')}" if origins else line
    if origins and config.unused:
        yield ""
        yield "# Keys that nothing in use reads:"
        yield from (f"#   {key}  {config.origins.get(key, '')}  ({why})" for key, why in config.unused.items())


def _prompt_lines(config: Config) -> Iterator[str]:
    """Each prompt of the run: its name, where it was found and its hash, then its text."""
    import logging

    from skillopt_kernel.interfaces import DriverContext
    from skillopt_kernel.plugins.discovery import make_driver
    from skillopt_kernel.prompting import resolve_prompts

    context = DriverContext(logger=logging.getLogger("skillopt"), seed=config.train.seed, common=config.env)
    made = {
        kind: make_driver(kind, choice.name, choice.settings, context, choice.where)
        for kind, choice in config.drivers.items()
        if kind in ("env", "update")
    }
    for prompt in resolve_prompts(config.prompts, made.get("env"), made["update"]).values():
        yield f"===== {prompt.name}  {prompt.hash}  {prompt.source}"
        yield prompt.text.rstrip("\n")
        yield ""
