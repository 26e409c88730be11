"""`skillopt data`: which environments have data to fetch, and the command of each, found by its manifest."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from skillopt_kernel.cli.main import main

MODULE = """
import click
from skillopt_kernel import Manifest, PLUGIN_API

def env(name, data=""):
    return Manifest(
        kind="env", name=name, api=PLUGIN_API, summary=f"tasks of {name}", factory="fetching_parts:Nothing", data=data
    )

fetched = env("fetched", "fetching_parts:command")
own = env("own")
absent = env("absent", "fetching_parts:no_such_thing")
wrong = env("wrong", "fetching_parts:Nothing")
"""
PARTS = """
import click
from skillopt_kernel.console import echo
from skillopt_kernel.errors import DataError

class Nothing:
    pass

@click.command()
@click.option("--bad", is_flag=True)
def command(bad):
    \"\"\"Fetch what acme has.\"\"\"
    if bad:
        raise DataError("acme.json: there is nothing.")
    echo("fetched it")
"""


Run = Callable[..., tuple[int, str]]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Environments of a third party, installed as any distribution is."""
    metadata = tmp_path / "fetching_envs-1.0.dist-info"
    metadata.mkdir()
    (tmp_path / "fetching_envs.py").write_text(MODULE)
    (tmp_path / "fetching_parts.py").write_text(PARTS)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-envs\nVersion: 1.0\n")
    names = "".join(f"{name} = fetching_envs:{name}\n" for name in ("fetched", "own", "absent", "wrong"))
    (metadata / "entry_points.txt").write_text(f"[skillopt.envs]\n{names}broken = fetching_envs:nothing\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("fetching_envs", "fetching_parts"):
        sys.modules.pop(name, None)


@pytest.fixture
def run(installed: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def words(*arguments: str) -> tuple[int, str]:
        code = main(arguments)
        told = capsys.readouterr()
        return code, told.out + told.err

    return words


def test_environments_with_data_are_listed_without_importing_their_commands(installed: Path, run: Run) -> None:
    (installed / "fetching_parts.py").write_text("raise SystemExit('imported')\n")
    for words in (("data",), ("data", "--help")):
        code, text = run(*words)
        assert code == 0
        assert "tasks of fetched" in text
        assert "tasks of own" not in text
        assert "broken, of acme-envs 1.0" in text


def test_the_command_of_an_environment_runs_with_its_options_and_errors(run: Run) -> None:
    assert run("data", "fetched") == (0, "fetched it\n")
    assert "Fetch what acme has." in run("data", "fetched", "--help")[1]
    assert run("data", "fetched", "--bad") == (2, "Error: acme.json: there is nothing.\n")
    code, text = run("data", "fetched", "--worse")
    assert code == 2
    assert "No such option" in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own", ("'own' has no data to fetch", "files of yours", "fetched")),
        ("fetchd", ("there is no environment named 'fetchd'. Did you mean 'fetched'?",)),
        ("spreadsheetbench", ("Install it with: pip install skillopt-env-spreadsheetbench.",)),
        ("absent", ("'absent' of acme-envs 1.0 is installed but cannot be used", "no_such_thing")),
        ("wrong", ("'wrong' of acme-envs 1.0", "fetching_parts:Nothing is not a click command")),
    ],
)
def test_what_cannot_be_fetched_is_a_sentence(run: Run, name: str, words: tuple[str, ...]) -> None:
    code, text = run("data", name)
    assert code == 2
    for word in words:
        assert word in text


def test_plugins_tell_of_it(run: Run) -> None:
    assert "`skillopt data fetched` fetches its data" in run("plugins", "show", "env", "fetched")[1]
    assert "skillopt data" not in run("plugins", "show", "env", "own")[1]
    code, text = run("plugins", "check")
    assert code == 1
    assert "no_such_thing" in text
