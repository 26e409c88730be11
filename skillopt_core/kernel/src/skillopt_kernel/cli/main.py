"""The command `skillopt`: finds the subcommand, and turns every error into a sentence and an exit code.

Nothing but click and the standard library is imported before a subcommand is chosen.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from skillopt_kernel.console import echo
from skillopt_kernel.console import error as report
from skillopt_kernel.errors import ModelError, SkillOptError

COMMANDS: dict[str, tuple[str, str]] = {
    "train": ("skillopt_kernel.cli.train:train", "Train a skill: CONFIG is a file or a packaged name"),
    "eval": ("skillopt_kernel.cli.evaluate:evaluate", "Score a skill on one split"),
    "config": ("skillopt_kernel.cli.config:config", "Show a configuration and where each value came from"),
    "status": ("skillopt_kernel.cli.status:status", "What a run, also a live one, has reached"),
    "runs": ("skillopt_kernel.cli.runs:runs", "List the runs in a folder"),
    "plugins": ("skillopt_kernel.cli.plugins:plugins", "List what is installed, show one plugin, check all"),
    "hooks": ("skillopt_kernel.cli.hooks:hooks", "List the hooks, explain who is asked"),
}
"""The kernel's own commands: name -> (import string, summary). Others are plugins of the kind `command`."""

INTERRUPTED = 130
DEFECT = 1


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from skillopt_kernel.plugins.discovery import installed

        return list(dict.fromkeys([*COMMANDS, *(plugin.name for plugin in installed("command"))]))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from skillopt_kernel.plugins.discovery import load_manifest, load_object, load_part, owner_of
        from skillopt_kernel.plugins.errors import PluginBroken, PluginNotFound

        if cmd_name in COMMANDS:
            return _command(load_object(COMMANDS[cmd_name][0]), cmd_name)
        try:
            manifest = load_manifest("command", cmd_name)
        except PluginNotFound:
            return None
        command = load_part(manifest, manifest.factory)
        if not isinstance(command, click.Command):
            raise PluginBroken(
                "command", cmd_name, owner_of("command", cmd_name), f"{manifest.factory} is not a click command"
            )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-") or self.get_command(ctx, name) is not None:
            return super().resolve_command(ctx, args)
        from skillopt_kernel.plugins.errors import nearest
        from skillopt_kernel.plugins.known import distribution_of

        distribution = distribution_of("command", name)
        if distribution is not None:
            sentence = f"The command {name!r} is not installed. Install it with: pip install {distribution}."
            raise click.UsageError(sentence, ctx)
        guess = nearest(name, self.list_commands(ctx))
        raise click.UsageError(f"There is no command {name!r}." + (f" Did you mean {guess!r}?" if guess else ""), ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])
        others = list(_plugin_summaries())
        if others:
            with formatter.section("Commands of plugins"):
                formatter.write_dl(others)


def _command(found: Any, name: str) -> click.Command:
    if not isinstance(found, click.Command):
        raise TypeError(f"the command {name!r} leads to a {type(found).__name__}, which is not a click command")
    return found


def _plugin_summaries() -> Iterator[tuple[str, str]]:
    """Name and summary of each command plugin. One that cannot be used is named with the reason."""
    from skillopt_kernel.plugins.discovery import installed, read_manifest
    from skillopt_kernel.plugins.errors import PluginError

    for plugin in installed("command"):
        if plugin.name in COMMANDS:
            continue
        try:
            yield plugin.name, read_manifest(plugin).summary
        except PluginError as error:
            yield plugin.name, f"(broken, of {plugin.owner}) {error}"


def _show_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from skillopt_kernel.version import version_of

        echo(f"skillopt {version_of('skillopt-kernel')}")
        ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_show_version, help="Show it.")
def cli() -> None:
    """Train a skill: the Markdown document that a language-model agent is given as its instructions."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: the console script `skillopt`.

    0 done; 1 findings, or a defect of ours; 2 a user's error; 3 stopped before the end with its state saved;
    130 interrupted. A command returns its exit code, or `None` for 0.
    """
    _make_streams_bear_any_text()
    try:
        code = cli.main(args=None if args is None else list(args), prog_name="skillopt", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        report("Interrupted.")
        return INTERRUPTED
    except SkillOptError as error:
        report(f"Error: {error}")
        return error.exit_code
    except ModelError as error:
        report(f"Error: a model call failed: {error}")
        return SkillOptError.exit_code
    except Exception as error:
        report(_defect(error))
        return DEFECT
    return code if isinstance(code, int) else 0


def _make_streams_bear_any_text() -> None:
    """A character that the console's encoding lacks (cp1252, ascii) is replaced; it never ends a run."""
    import io

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _defect(error: Exception) -> str:
    """The sentence for an error that nobody foresaw; its traceback goes into a file, credentials redacted."""
    import tempfile
    import traceback

    from skillopt_kernel.store.redaction import redact_diagnostics

    text = redact_diagnostics("".join(traceback.format_exception(error)))
    try:
        # Readable by this user only: a traceback can quote data.
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", errors="replace", prefix="skillopt-defect-", suffix=".txt", delete=False
        ) as file:
            file.write(text)
        place = f"The traceback is in {file.name}; please send it with a report."
    except OSError as failure:
        place = f"Its traceback could not be written ({failure}):\n{text}"
    return f"Error: {type(error).__name__} in {_module_of(error)}, which is a defect of it and not of yours. {place}"


def _module_of(error: Exception) -> str:
    """The innermost module of ours or of a plugin in which the error was raised."""
    import sysconfig

    library = sysconfig.get_path("stdlib")
    name, frames = "skillopt_kernel", error.__traceback__
    while frames is not None:
        code = frames.tb_frame.f_code
        module = str(frames.tb_frame.f_globals.get("__name__", ""))
        if "site-packages" in code.co_filename or not code.co_filename.startswith((library, "<")):
            name = module or name
        frames = frames.tb_next
    return name


if __name__ == "__main__":
    sys.exit(main())
