"""Options and small services that several commands share."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from skillopt_kernel.console import error

if TYPE_CHECKING:
    from skillopt_kernel.config import Config

INTERRUPTED = 130

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
    return click.option(
        "-o",
        "--cfg-options",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Override keys, as in -o train.batch_size=8 env.limit=20; may be repeated.",
    )(function)


def config_options(function: OverrideCommand) -> OverrideCommand:
    """CONFIG as an argument or as `--config`."""
    function = click.option("--config", "config_option", metavar="CONFIG", help="The same as the argument.")(function)
    return click.argument("config", required=False)(function)


def chosen_config(argument: str | None, option: str | None) -> str:
    if argument and option and argument != option:
        raise click.UsageError(f"CONFIG is given twice: {argument} and --config {option}. Give it once.")
    chosen = argument or option
    if not chosen:
        raise click.UsageError(
            "CONFIG is missing: a file, or a packaged name such as demo (`skillopt config list` shows them)."
        )
    return chosen


def loaded(argument: str | None, option: str | None, overrides: Sequence[str]) -> Config:
    """The configuration that was asked for; its warnings go to standard error, whatever is done with it."""
    from skillopt_kernel.config import load_config

    config = load_config(chosen_config(argument, option), overrides)
    for warning in config.warnings:
        error(f"Warning: {warning}")
    return config


class Folder(click.Path):
    """A folder's path. An empty text would be the working directory, which nobody means by it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty; name a folder.", param, ctx)
        return super().convert(value, param, ctx)


def run_options(function: OverrideCommand) -> OverrideCommand:
    """What every command takes that runs a configuration."""
    options = (
        click.option("--json", "as_json", is_flag=True, help="Show each event, and the result last, as lines of JSON."),
        click.option("--quiet", "-q", is_flag=True, help="Show nothing but the result."),
        override_option,
        click.option(
            "--out",
            "--out_root",
            "out",
            type=Folder(path_type=Path),
            help="The folder to write into; without it, one in outputs with the configuration's name.",
        ),
        config_options,
    )
    for option in options:
        function = option(function)
    return function


@contextmanager
def displayed(*, quiet: bool, as_json: bool, training: bool) -> Iterator[dict[str, Any]]:
    """Show the run within on the display that fits, and stop it on Ctrl-C, which ends the command with 130.

    Gives the arguments `plugins` and `stop` of `train` and `evaluate`.
    """
    from skillopt_kernel.console.displays import display_for
    from skillopt_kernel.errors import StoppedEarly, told

    display = display_for(quiet=quiet, as_json=as_json, training=training)
    stop = threading.Event()
    try:
        with stopping_on_interrupt(stop):
            yield {"plugins": [("console", display)], "stop": stop}
    except StoppedEarly as stopped:
        if not stop.is_set():
            raise
        display.close()
        error(f"Interrupted: {told(stopped)}")
        raise click.exceptions.Exit(INTERRUPTED) from None
    finally:
        display.close()


@contextmanager
def stopping_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C once sets `stop`: what is in flight is finished and saved. Ctrl-C twice ends the process at once.

    Outcomes are committed one by one, so that even the second loses no finished attempt.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            error("Stopped at once. Every finished attempt is saved; run the same command again to go on.")
            os._exit(INTERRUPTED)
        stop.set()
        error("Stopping: what is in flight is finished and saved. Ctrl-C again stops at once.")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)
