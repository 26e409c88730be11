"""`skillopt data`: the data of a benchmark, fetched and written where a run looks for it."""

from __future__ import annotations

from collections.abc import Iterator

import click
from skillopt_kernel.console import echo, table
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.plugins.discovery import find, installed, load_manifest, load_part, read_manifest
from skillopt_kernel.plugins.errors import PluginBroken


def _offered() -> Iterator[tuple[str, str]]:
    """(name, summary) of each environment with data to fetch; of one that cannot be used, the reason."""
    for plugin in installed("env"):
        try:
            manifest = read_manifest(plugin)
        except SkillOptError as error:
            yield plugin.name, f"(broken, of {plugin.owner}) {error}"
        else:
            if manifest.data:
                yield plugin.name, manifest.summary


class DataCommands(click.Group):
    """A command for each environment that names one in its manifest, imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, _ in _offered()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """The command of the environment `cmd_name`. Raises `PluginError`, or `UsageError` where it has none."""
        manifest = load_manifest("env", cmd_name)
        if not manifest.data:
            others = ", ".join(self.list_commands(ctx)) or "none"
            raise click.UsageError(
                f"The environment {cmd_name!r} has no data to fetch: its tasks come from files of yours. Environments "
                f"that have: {others}.",
                ctx,
            )
        command = load_part(manifest, manifest.data)
        if not isinstance(command, click.Command):
            owner = find("env", cmd_name).owner
            raise PluginBroken("env", cmd_name, owner, f"{manifest.data} is not a click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of environments, read from their manifests: none of their commands is imported."""
        with formatter.section("Environments"):
            formatter.write_dl(list(_offered()) or [("none", "no environment that is installed has data to fetch")])


@click.group(cls=DataCommands, invoke_without_command=True, subcommand_metavar="ENVIRONMENT [ARGS]...")
@click.pass_context
def data(ctx: click.Context) -> None:
    """Write the tasks of a benchmark to a folder that `env.split_dir` can name.

    `skillopt data ENVIRONMENT --help` tells what it fetches and what it needs.
    """
    if ctx.invoked_subcommand is not None:
        return
    rows = list(_offered())
    if rows:
        echo(table(("environment", "data"), rows))
        echo("`skillopt data ENVIRONMENT` writes its tasks where a run looks for them; `--help` tells how.")
    else:
        echo("No environment that is installed has data to fetch.")
