"""`skillopt plugins`: what is installed, one plugin's settings, and a check of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from skillopt_kernel.console import echo, table
from skillopt_kernel.plugins.discovery import find, installed, load_manifest, settings_class
from skillopt_kernel.plugins.manifest import KINDS, Manifest


@click.group(invoke_without_command=True)
@click.pass_context
def plugins(ctx: click.Context) -> None:
    """List what is installed, by kind. Reads metadata and imports none of it."""
    if ctx.invoked_subcommand is not None:
        return
    rows = [(plugin.kind, plugin.name, plugin.distribution, plugin.version) for plugin in installed()]
    echo(table(("kind", "name", "distribution", "version"), rows))
    echo("`skillopt plugins show KIND NAME` prints the settings of one, `skillopt plugins check` loads all.")


@plugins.command()
@click.argument("kind", type=click.Choice(list(KINDS), case_sensitive=False))
@click.argument("name")
def show(kind: str, name: str) -> None:
    """Print what one plugin says of itself, and its settings with type, default and meaning."""
    plugin = find(kind, name)
    manifest = load_manifest(kind, name)
    echo(f"{kind} {name}: {manifest.summary}")
    echo(f"  of {plugin.owner}, for plugin interface {manifest.api}")
    echo(f"  manifest {plugin.value}, factory {manifest.factory}")
    if manifest.keys:
        echo(f"  used when one of these is true: {', '.join(manifest.keys)}")
    if manifest.needs:
        echo(f"  needs the environment variables {', '.join(manifest.needs)}")
    if manifest.data:
        echo(f"  `skillopt data {name}` fetches its data")
    settings = settings_class(manifest)
    if settings is None:
        echo("settings: none")
        return
    echo(f"settings  ({manifest.settings})")
    for heading, lines in _settings(manifest, settings):
        echo(f"  {heading}")
        for line in lines:
            echo(f"      {line}")
    if kind == "backend":
        echo("For one role only: optimizer_, target_ or judge_ before a key, OPTIMIZER_, ... before a variable.")


def _settings(manifest: Manifest, settings: type[Any], within: str = "") -> Iterator[tuple[str, list[str]]]:
    """Each field as "key: type = default", with the lines that explain it; of a mapping, each of its keys.

    within  the key whose mapping these are the keys of, with a dot behind it
    """
    import attrs
    from skillopt_kernel.config.fields import default_of, description, is_secret, variable_of

    for field in attrs.fields(attrs.resolve_types(settings)):
        name = getattr(field.type, "__name__", "") if isinstance(field.type, type) else _type_text(field.type)
        if isinstance(field.type, type) and attrs.has(field.type) and not hasattr(field.type, "from_node"):
            yield from _settings(manifest, field.type, f"{within}{field.name}.")
            continue
        default = "no default" if field.default is attrs.NOTHING else repr(default_of(field))
        lines = [text] if (text := description(settings, field.name)) else []
        if is_secret(field):
            lines.append("a credential: never shown, never stored")
        if manifest.kind == "backend":
            lines.append(f"environment: {variable_of(field, manifest.prefix)}")
        yield f"{_section(manifest)}{within}{field.name}: {name or 'any'} = {default}", lines


def _type_text(annotation: Any) -> str:
    return str(annotation).replace("typing.", "").replace("pathlib.", "")


def _section(manifest: Manifest) -> str:
    sections = {"backend": "model", "gate": "evaluation", "scheduler": "optimizer", "update": "optimizer", "env": "env"}
    if manifest.kind == "hook":
        return f"{manifest.keys[0].partition('.')[0]}." if manifest.keys else f"hooks.settings.{manifest.name}."
    section = manifest.section or sections.get(manifest.kind, "")
    return f"{section}.{manifest.prefix}" if section else ""


@plugins.command()
def check() -> int:
    """Load every manifest, settings class and factory; exit code 1 when one of them cannot be used."""
    from skillopt_commands.checks.installed import broken

    found = installed()
    findings = [problem for _, problem in broken(found)]
    for finding in dict.fromkeys(findings):
        echo(finding)
    echo(f"{len(found)} plugins, {len(findings)} findings.")
    return 1 if findings else 0
