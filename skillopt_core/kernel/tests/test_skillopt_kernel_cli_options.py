"""What the commands that run a configuration share: CONFIG, `-o` with several values, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading

import click
import pytest
from click.testing import CliRunner
from skillopt_kernel.cli.options import SeveralAfterOneFlag, chosen_config, displayed, run_options
from skillopt_kernel.errors import StoppedEarly


@click.command(cls=SeveralAfterOneFlag)
@run_options
@click.option("--fresh", is_flag=True)
def probe(**given: object) -> None:
    """Say what was understood."""
    chosen = chosen_config(given["config"], given["config_option"])  # type: ignore[arg-type]
    click.echo(f"{chosen} {' '.join(given['overrides'])} {given['fresh']}")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "understood"),
    [
        ("demo", "demo  False"),
        ("--config demo", "demo  False"),
        ("demo --config demo", "demo  False"),
        ("demo -o a.b=1", "demo a.b=1 False"),
        ("demo -o a.b=1 c.d=2 --fresh", "demo a.b=1 c.d=2 True"),
        ("demo --cfg-options a.b=1 c.d=2 -o e.f=3", "demo a.b=1 c.d=2 e.f=3 False"),
        ("-o a.b=1 c.d=2 demo", "demo a.b=1 c.d=2 False"),
        ("-o a.b=1 demo --fresh", "demo a.b=1 True"),
        ("demo -o a.b=-o", "demo a.b=-o False"),
    ],
)
def test_several_overrides_may_follow_one_flag(arguments: str, understood: str) -> None:
    result = CliRunner().invoke(probe, arguments.split())
    assert (result.exit_code, result.output.strip()) == (0, understood)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("", "CONFIG is missing"),
        ("demo --config other", "CONFIG is given twice: demo and --config other"),
        ("demo a.b=1", "unexpected extra argument"),
        ("demo -o a.b 1", "-o a.b: expected section.key=value, such as -o train.batch_size=8"),
        ("demo --cfg-options --fresh", "--cfg-options --fresh: expected section.key=value"),
        ("demo --out=", "it is empty; name a folder."),
        ("demo -o", "requires an argument"),
        ("demo -o a.b=1 --fresh c.d=2", "unexpected extra argument"),
    ],
)
def test_what_cannot_be_understood_is_a_users_error(arguments: str, sentence: str) -> None:
    result = CliRunner().invoke(probe, arguments.split())
    assert result.exit_code == 2
    assert sentence in result.output


def test_an_interrupted_run_ends_with_130_and_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    with (
        pytest.raises(click.exceptions.Exit) as caught,
        displayed(quiet=True, as_json=False, training=True) as shown,
    ):
        os.kill(os.getpid(), signal.SIGINT)
        assert shown["stop"].wait(5)
        raise StoppedEarly("its state is saved.")
    assert caught.value.exit_code == 130
    assert capsys.readouterr().err.splitlines()[-1] == "Interrupted: its state is saved."
    assert signal.getsignal(signal.SIGINT) is before


def test_a_run_that_stops_by_itself_is_not_interrupted() -> None:
    with pytest.raises(StoppedEarly), displayed(quiet=True, as_json=False, training=True):
        raise StoppedEarly("the budget is spent.")


def test_a_run_in_another_thread_leaves_signals_alone() -> None:
    stops: list[threading.Event] = []

    def work() -> None:
        with displayed(quiet=True, as_json=False, training=True) as shown:
            stops.append(shown["stop"])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(5)
    assert len(stops) == 1
