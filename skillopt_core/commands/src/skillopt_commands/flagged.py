"""The two commands: each flag becomes an override, and then the command of `skillopt` does the work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from skillopt_kernel.cli.main import run_command
from skillopt_kernel.cli.options import SeveralAfterOneFlag
from skillopt_kernel.console import error

from skillopt_commands.evaluate import evaluate as evaluate_command
from skillopt_commands.flags import EVAL, TRAIN, Flag, Flags
from skillopt_commands.train import train as train_command

TRUE, FALSE, UNSET = ("true", "1", "yes"), ("false", "0", "no", ""), ("", "null")
REPLACED = ("config", "configs", "config_option", "out", "parallel", "tasks", "scorer", "model", "backend")
"""Parameters of `skillopt train` and `eval` in whose place stand `--config` and the flags of keys; one run each."""


class FlagCommand(SeveralAfterOneFlag):
    """A command of `skillopt` with `--config` and a flag for each of many keys, shown in groups.

    A flag wins over `-o`, which wins over the file.
    """

    def __init__(self, word: str, command: click.Command, groups: Mapping[str, Flags]) -> None:
        self.command, self.groups = command, groups
        self.flags = {flag.name: flag for flags in groups.values() for flag in flags}
        self.own = [
            click.Option(
                ["--config", "config_option"],
                required=True,
                metavar="CONFIG",
                help="A file, or a packaged name such as demo.",
            ),
            *(each for each in command.params if each.name not in REPLACED),
        ]
        super().__init__(
            f"skillopt-{word}",
            params=[*self.own, *(click.Option([f"--{flag}"]) for flag in self.flags)],
            callback=self.perform,
            help=f"As `skillopt {word}`, with the flags of scripts that were written for the earlier system. Each sets "
            "the key of its name in the section in brackets, or the key that it names.",
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    def perform(self, overrides: tuple[str, ...], **given: Any) -> Any:
        """Run the command of `skillopt` with the flags that were given as its last overrides."""
        from skillopt_kernel.config.load import flag as override

        named = {name: given.pop(name) for name in self.flags}
        flags = [
            override(f"--{name}", self.flags[name].key, value_of(self.flags[name], text))
            for name, text in named.items()
            if text is not None
        ]
        return click.get_current_context().invoke(self.command, overrides=(*overrides, *flags), **given)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        shown = [
            record
            for each in self.get_params(ctx)
            if each.name not in self.flags and (record := each.get_help_record(ctx))
        ]
        with formatter.section("Options"):
            formatter.write_dl(shown)
        for heading, flags in self.groups.items():
            with formatter.section(f"{heading} ({flags[0].key.partition('.')[0]})"):
                formatter.write_dl([(f"--{flag.name} {metavar(flag)}", described(flag)) for flag in flags])


def value_of(flag: Flag, text: str) -> str:
    """What a flag's value says to the configuration: a switch is true or false, all else stays as it was written."""
    word = text.strip().lower()
    if flag.kind == "value" or (flag.kind == "switch or unset" and word in UNSET):
        return text
    if word not in TRUE + FALSE:
        error(f"Warning: --{flag.name} {text}: is taken for false; write true or false")
    return "true" if word in TRUE else "false"


def metavar(flag: Flag) -> str:
    """What the help calls the flag's value."""
    return "VALUE" if flag.kind == "value" else "true|false"


def described(flag: Flag) -> str:
    """The key that a flag sets, where it has another name, what the key means, and the values that it may have."""
    from skillopt_kernel.config import description
    from skillopt_kernel.config.known import RENAMED, RETIRED
    from skillopt_kernel.config.schema import SECTIONS
    from skillopt_kernel.config.structure import fields_of

    section, _, name = flag.key.partition(".")
    about = flag.about
    if flag.key in RETIRED:
        about = "has no effect any more"
    elif not about and name in fields_of(SECTIONS[section]):
        about = description(SECTIONS[section], name)
    key = RENAMED.get(flag.key, "" if name == flag.name else flag.key)
    choices = ", ".join(choice or '""' for choice in flag.choices)
    return "; ".join(filter(None, (f"sets {key}" if key else "", about, f"one of {choices}" if choices else "")))


TRAIN_COMMAND = FlagCommand("train", train_command, TRAIN)
EVAL_COMMAND = FlagCommand("eval", evaluate_command, EVAL)


def train() -> int:
    """The console script `skillopt-train`."""
    return run_command(TRAIN_COMMAND)


def evaluate() -> int:
    """The console script `skillopt-eval`."""
    return run_command(EVAL_COMMAND)
