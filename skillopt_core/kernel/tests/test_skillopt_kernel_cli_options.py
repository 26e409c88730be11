"""What the commands that read a configuration share: CONFIG, and `-o` with several values."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner
from skillopt_kernel.cli.options import SeveralAfterOneFlag, chosen_config, config_options, override_option


@click.command(cls=SeveralAfterOneFlag)
@config_options
@override_option
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
        ("demo -o", "requires an argument"),
        ("demo -o a.b=1 --fresh c.d=2", "unexpected extra argument"),
    ],
)
def test_what_cannot_be_understood_is_a_users_error(arguments: str, sentence: str) -> None:
    result = CliRunner().invoke(probe, arguments.split())
    assert result.exit_code == 2
    assert sentence in result.output
