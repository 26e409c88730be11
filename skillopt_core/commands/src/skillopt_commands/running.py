"""What the commands that run a configuration share: their options, the display, and how they are stopped."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from skillopt_kernel.cli.main import INTERRUPTED
from skillopt_kernel.cli.options import OverrideCommand, config_options, override_option
from skillopt_kernel.console import error

if TYPE_CHECKING:
    from skillopt_commands.displays import Display


class Folder(click.Path):
    """A folder's path. An empty text would be the working directory, which nobody means by it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty; name a folder.", param, ctx)
        return super().convert(value, param, ctx)


def run_options(function: OverrideCommand) -> OverrideCommand:
    """What every command takes that runs a configuration."""
    return config_options(common_options(function))


def common_options(function: OverrideCommand) -> OverrideCommand:
    """What they take beside the configuration."""
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
    )
    for option in options:
        function = option(function)
    return function


def display_for(*, quiet: bool, as_json: bool, training: bool, name: str = "") -> Display:
    """The display that fits: what was asked for, else live on a terminal and plain lines elsewhere.

    name: begins each line, where runs are side by side; then lines are plain on a terminal, too.
    """
    from skillopt_commands.displays import Display, JsonDisplay, PlainDisplay

    if quiet:
        return Display()
    if as_json:
        return JsonDisplay()
    if sys.stdout is not None and sys.stdout.isatty() and not name:
        from skillopt_commands.live import LiveDisplay

        return LiveDisplay(training=training)
    return PlainDisplay(training=training, name=name)


@contextmanager
def displayed(*, quiet: bool, as_json: bool, training: bool) -> Iterator[dict[str, Any]]:
    """Show the run within on the display that fits, and stop it on Ctrl-C, which ends the command with 130.

    Gives the arguments `plugins` and `stop` of `train` and `evaluate`.
    """
    from skillopt_kernel.errors import Pending, StoppedEarly, told

    display = display_for(quiet=quiet, as_json=as_json, training=training)
    stop = Stop()
    try:
        with stopping_on_signals(stop):
            yield {"plugins": [("console", display)], "stop": stop}
    except StoppedEarly as stopped:
        if not stop.is_set() and not isinstance(stopped, Pending):
            raise
        display.close()
        if not stop.is_set():
            error(told(stopped))  # it waits for answers, which is no error
            raise click.exceptions.Exit(stopped.exit_code) from None
        error(f"Interrupted: {told(stopped)} Run the same command again to go on.")
        raise click.exceptions.Exit(stop.exit_code) from None
    finally:
        display.close()


SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C; what a supervisor or a batch system sends before it kills; what a terminal sends that is closed."""


class Stop(threading.Event):
    """The wish to stop, and with which exit code the command ends then: 128 and the signal's number."""

    exit_code = INTERRUPTED


@contextmanager
def stopping_on_signals(stop: Stop) -> Iterator[None]:
    """The first signal sets `stop`: what is in flight is finished and saved. Another one ends the process at once.

    Outcomes are committed one by one, so that even the second loses no finished attempt. A terminal that is closed may
    send its signal several times, which says no more than once; under `nohup` it says nothing.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        if not stop.is_set():
            stop.exit_code = 128 + number
            stop.set()
            error("Stopping: what is in flight is finished and saved. Ctrl-C again stops at once.")
        elif number in (signal.SIGINT, signal.SIGTERM):
            error("Stopped at once. Every finished attempt is saved; run the same command again to go on.")
            os._exit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heeded = [one for one in SIGNALS if one == signal.SIGINT or signal.getsignal(one) != signal.SIG_IGN]
    earlier = {number: signal.signal(number, handle) for number in heeded}
    try:
        yield
    finally:
        for number, before in earlier.items():
            signal.signal(number, before)
