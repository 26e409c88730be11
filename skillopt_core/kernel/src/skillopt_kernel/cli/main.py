"""The command `skillopt`: finds the subcommand, and turns every error into a sentence and an exit code.

Nothing but click and the standard library is imported before a subcommand is chosen.
"""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Sequence

import click

from skillopt_kernel import console
from skillopt_kernel.errors import ModelError, SkillOptError, told

INTERRUPTED = 130
DEFECT = 1
SURROUNDINGS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.EMFILE)
"""What the system refuses for reasons outside of the program: space, permissions, names, open files."""


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        from skillopt_kernel.plugins.discovery import installed

        return [plugin.name for plugin in installed("command")]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        from skillopt_kernel.plugins.discovery import find, load_part, owner_of, read_manifest
        from skillopt_kernel.plugins.errors import PluginBroken, PluginNotFound

        try:
            manifest = read_manifest(find("command", cmd_name))  # without stevedore, which takes as long as the rest
        except PluginNotFound:
            return None
        command = load_part(manifest, manifest.factory)
        if not isinstance(command, click.Command):
            owner = owner_of("command", cmd_name)
            raise PluginBroken("command", cmd_name, owner, f"{manifest.factory} is not a click command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name.startswith("-"):
            return super().resolve_command(ctx, args)
        command = self.get_command(ctx, name)
        if command is not None:
            return name, command, args[1:]
        from skillopt_kernel.plugins.errors import did_you_mean
        from skillopt_kernel.plugins.known import distribution_of

        distribution = distribution_of("command", name)
        if distribution is not None:
            sentence = f"The command {name!r} is not installed. Install it with: pip install {distribution}."
            raise click.UsageError(sentence, ctx)
        raise click.UsageError(f"There is no command {name!r}.{did_you_mean(name, self.list_commands(ctx))}", ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands. A plugin that cannot be used is named with the reason."""
        from skillopt_kernel.plugins.discovery import installed, read_manifest

        rows = []
        for plugin in installed("command"):
            try:
                rows.append((plugin.name, read_manifest(plugin).summary))
            except SkillOptError as error:
                rows.append((plugin.name, f"(broken, of {plugin.owner}) {error}"))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="skillopt-kernel", message="skillopt %(version)s")
def cli() -> None:
    """Train a skill: the Markdown document that a language-model agent is given as its instructions."""


def main(args: Sequence[str] | None = None) -> int:
    """The console script `skillopt`: as `run_command`."""
    return run_command(cli, args, "skillopt")


def run_command(command: click.Command, args: Sequence[str] | None = None, name: str | None = None) -> int:
    """Run a command line, by default the process's own, and return its exit code.

    0 done; 1 findings, or a defect of ours; 2 a user's error; 3 stopped before the end with its state saved; 4 so at a
    limit of the budget; 130 interrupted. A command returns its exit code, or `None` for 0.
    """
    _make_streams_bear_any_text()
    logging.basicConfig(format="%(message)s", handlers=[console.LogLines()])
    logging.getLogger("stamina").propagate = False  # its line for each retry names an event, and says nothing of it
    try:
        code = command.main(
            args=None if args is None else list(args), prog_name=name or command.name, standalone_mode=False
        )
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        console.error("Interrupted.")
        return INTERRUPTED
    except Exception as error:
        sentence, code = explained(error)
        console.error(f"Error: {sentence}")
    finally:
        console.flush()
    return code if isinstance(code, int) else 0


def explained(error: Exception) -> tuple[str, int]:
    """The sentence that a person is told of an error, and the exit code."""
    if isinstance(error, SkillOptError):
        return told(error), error.exit_code
    if isinstance(error, ModelError):
        return f"a model call failed: {told(error)}", SkillOptError.exit_code
    if isinstance(error, OSError) and error.errno in SURROUNDINGS:
        return f"{error}. Correct that and run the same command again.", SkillOptError.exit_code
    return _defect(error), DEFECT


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

    from skillopt_kernel.store.patterns import redact_diagnostics

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
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {frame.filename}:{frame.lineno}, a defect and no mistake of yours. {place}"


if __name__ == "__main__":
    sys.exit(main())
