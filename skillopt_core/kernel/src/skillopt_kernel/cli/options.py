"""Options and small services that several commands share."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click

from skillopt_kernel.console import error

OverrideCommand = Callable[..., Any]


class SeveralAfterOneFlag(click.Command):
    """A command whose `-o` takes several values after one flag: `-o a=1 b=2`.

    click gives an option a fixed number of values, so further `key=value` words are joined to the flag before
    click sees them.
    """

    FLAGS = ("-o", "--cfg-options")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        spread: list[str] = []
        values = 0  # after a flag: how many of its values have been seen, counted from 1
        for word in args:
            if word in self.FLAGS:
                values = 1
            elif values == 1:
                values = 2
            elif values == 2 and "=" in word and not word.startswith("-"):
                spread.append("-o")
            else:
                values = 0
            spread.append(word)
        return super().parse_args(ctx, spread)


def override_option(function: OverrideCommand) -> OverrideCommand:
    return click.option(
        "-o",
        "--cfg-options",
        "overrides",
        multiple=True,
        metavar="SECTION.KEY=VALUE",
        help="Override a key; may be repeated, and may take several.",
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


@contextmanager
def stopping_on_interrupt(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C once sets `stop`: what is in flight is finished and saved. Ctrl-C twice ends the process at once.

    Outcomes are committed one by one, so that even the second loses no finished attempt.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            error("Stopped at once. Every finished attempt is saved; run the same command again to go on.")
            os._exit(130)
        stop.set()
        error("Stopping: what is in flight is finished and saved. Press Ctrl-C again to stop at once.")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, earlier)
