"""Options and small services that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from skillopt_kernel.console import error

if TYPE_CHECKING:
    from skillopt_kernel.config import Config

OverrideCommand = Callable[..., Any]


class SeveralAfterOneFlag(click.Command):
    """A command whose `-o` takes several values after one flag: `-o a=1 b=2`.

    click gives an option a fixed number of values, so further `key=value` words are joined to the flag before
    click sees them.
    """

    FLAGS = ("-o", "--cfg-options")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        words, in_list = iter(args), False
        for word in words:
            if word in self.FLAGS:
                value = list(islice(words, 1))
                if value and "=" not in value[0]:
                    sentence = f"{word} {value[0]}: expected section.key=value, such as {word} train.batch_size=8"
                    raise click.UsageError(sentence, ctx)
                spread += [word, *value]
                in_list = True
            elif in_list and "=" in word and not word.startswith("-"):
                spread += ["-o", word]
            else:
                spread.append(word)
                in_list = False
        return super().parse_args(ctx, spread)


def override_option(function: OverrideCommand) -> OverrideCommand:
    told = "Override keys, as in -o train.batch_size=8 env.limit=20; may be repeated."
    names = (*SeveralAfterOneFlag.FLAGS, "overrides")
    return click.option(*names, multiple=True, metavar="SECTION.KEY=VALUE", help=told)(function)


def config_options(function: OverrideCommand) -> OverrideCommand:
    """CONFIG as an argument or as `--config`."""
    function = click.option("--config", "config_option", metavar="CONFIG", help="The same as the argument.")(function)
    return click.argument("config", required=False)(function)


def chosen_config(argument: str | None, option: str | None) -> str:
    if argument and option and argument != option:
        raise click.UsageError(f"CONFIG is given twice: {argument} and --config {option}. Give it once.")
    chosen = argument or option
    if not chosen:
        raise click.UsageError("CONFIG is missing: a file, or a packaged name (`skillopt config list` shows them).")
    return chosen


def loaded(argument: str | None, option: str | None, overrides: Sequence[str]) -> Config:
    """The configuration that was asked for; its warnings go to standard error, whatever is done with it."""
    from skillopt_kernel.config import load_config

    config = load_config(chosen_config(argument, option), overrides)
    for warning in config.warnings:
        error(f"Warning: {warning}")
    return config
