"""What the commands that run a configuration share: an interrupted run ends in order."""

from __future__ import annotations

import os
import signal
import threading

import click
import pytest
from click.testing import CliRunner
from skillopt_commands.running import displayed, run_options
from skillopt_kernel.errors import StoppedEarly


def test_a_folder_to_write_into_is_not_empty() -> None:
    result = CliRunner().invoke(click.command()(run_options(lambda **given: None)), ["demo", "--out="])
    assert result.exit_code == 2
    assert "it is empty; name a folder." in result.output


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_ends_with_the_code_of_its_signal_and_a_sentence(
    number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with (
        pytest.raises(click.exceptions.Exit) as caught,
        displayed(quiet=True, as_json=False, training=True) as shown,
    ):
        os.kill(os.getpid(), number)
        assert shown["stop"].wait(60)
        raise StoppedEarly("its state is saved.")
    assert caught.value.exit_code == code
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("Stopping: what is in flight is finished and saved.")
    assert told[-1] == "Interrupted: its state is saved. Run the same command again to go on."
    assert signal.getsignal(number) is before


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
