"""The command line's frame: finding commands, exit codes, and that every error is a sentence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from skillopt_kernel.cli.main import main

COMMAND = """
import click
from skillopt_kernel.errors import DataError, PassingError, StoppedEarly

@click.command()
@click.argument("how")
def command(how):
    if how == "one":
        return 1
    if how == "exit":
        click.get_current_context().exit(3)
    if how == "usage":
        raise click.UsageError("wrong use")
    if how == "user":
        raise DataError("data.jsonl:3: no answer; add one")
    if how == "stopped":
        raise StoppedEarly("the budget is spent; the state is saved")
    if how == "model":
        raise PassingError("the endpoint is down")
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "surroundings":
        open("x" * 300)
    if how == "defect":
        token = "sk-" + "abcdefghij" * 4
        raise ZeroDivisionError(f"api_key={token}")
    click.echo("done \\u2192 \\U0001f600")

not_a_command = 3
"""


@pytest.fixture
def acme(install, manifest_of):
    """Installs the command `acme`."""

    def do(name="acme", distribution="acme-tool 0.4", **facts):
        module = distribution.partition(" ")[0].replace("-", "_")
        text = manifest_of("command", name, **{"factory": f"{module}_parts:command", **facts})
        files = {f"{module}.py": text, f"{module}_parts.py": COMMAND}
        return install(distribution, {f"skillopt.commands {name}": f"{module}:plugin"}, files)

    return do


def test_help_lists_the_commands_with_their_summaries(acme, capsys):
    acme()
    assert main(["--help"]) == 0
    output = capsys.readouterr().out
    for name, summary in {
        "runs": "List the runs in a folder",
        "eval": "Score a skill on one split of the data",
    }.items():
        assert re.search(rf"^  {name} +{summary}$", output, re.MULTILINE)
    assert re.search(r"^  acme +the command acme$", output, re.MULTILINE)
    assert "acme_tool_parts" not in sys.modules


def test_help_names_a_broken_command_and_breaks_nothing(install, capsys):
    install("acme-tool 0.4", {"skillopt.commands acme": "acme_tool:plugin"}, {"acme_tool.py": "import no_such_of_acme"})
    assert main(["--help"]) == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "acme (broken, of acme-tool 0.4)" in output
    assert "No module named 'no_such_of_acme'" in output
    assert main(["--version"]) == 0
    assert main(["acme", "x"]) == 2
    assert "the command 'acme' of acme-tool 0.4 is installed but cannot be used" in capsys.readouterr().err


def test_a_plugin_cannot_quietly_take_the_place_of_a_command_of_ours(acme, capsys):
    acme(name="train")
    assert main(["train", "--help"]) == 2
    assert re.search(r"acme-tool 0\.4 and by skillopt-commands ", capsys.readouterr().err)
    assert main(["plugins", "check"]) == 1
    assert "acme-tool 0.4 and by skillopt-commands" in capsys.readouterr().out


def test_two_distributions_with_one_command_are_both_named(acme, capsys):
    acme()
    acme(distribution="other-tool 0.1")
    assert main(["acme", "x"]) == 2
    assert "acme-tool 0.4 and by other-tool 0.1" in capsys.readouterr().err


def test_a_factory_that_is_no_command_is_broken(acme, capsys):
    acme(factory="acme_tool_parts:not_a_command")
    assert main(["acme", "x"]) == 2
    assert "is not a click command" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["trian"], "There is no command 'trian'. Did you mean 'train'?"),
        (["acm"], "Did you mean 'acme'?"),
        (["sleep"], "The command 'sleep' is not installed. Install it with: pip install skillopt-sleep."),
        (["qqqqqq"], "There is no command 'qqqqqq'.\n"),
        (["--verzion"], "--verzion"),
    ],
)
def test_a_wrong_command_is_answered_with_the_nearest(acme, capsys, words, message):
    acme()
    assert main(words) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("none", 0, ""),
        ("one", 1, ""),
        ("exit", 3, ""),
        ("usage", 2, "Error: wrong use"),
        ("user", 2, "Error: data.jsonl:3: no answer; add one\n"),
        ("stopped", 3, "Error: the budget is spent; the state is saved\n"),
        ("model", 2, "Error: a model call failed: the endpoint is down\n"),
        ("interrupt", 130, "Interrupted.\n"),
        ("surroundings", 2, "File name too long"),
    ],
)
def test_exit_codes(acme, capsys, how, code, message):
    acme()
    assert main(["acme", how]) == code
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert (captured.err == "") == (message == "")


def test_a_defect_is_told_in_a_sentence_and_its_traceback_kept_in_a_file_without_credentials(acme, capsys, tmp_path):
    acme()
    assert main(["acme", "defect"]) == 1
    message = capsys.readouterr().err
    assert re.match(
        r"Error: ZeroDivisionError in .*acme_tool_parts\.py:\d+, a defect and no mistake of yours\.", message
    )
    file = Path(re.search(r"The traceback is in (\S+);", message).group(1))
    text = file.read_text(encoding="utf-8")
    assert "Traceback" in text
    assert "abcdefghijabcdefghij" not in text
    if os.name == "posix":
        assert file.stat().st_mode & 0o077 == 0
    file.unlink()


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-8"])
def test_any_text_can_be_written_to_a_console_of_any_encoding(acme, encoding):
    folder = acme()
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONPATH": str(folder)}
    code = "import sys; from skillopt_kernel.cli.main import main; sys.exit(main(['acme', 'x']))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode(encoding).split()[0] == "done"


def test_the_console_script_ends_with_the_exit_code():
    done = subprocess.run([sys.executable, "-m", "skillopt_kernel.cli.main", "trian"], capture_output=True, check=False)
    assert done.returncode == 2
    done = subprocess.run(
        [sys.executable, "-m", "skillopt_kernel.cli.main", "--version"], capture_output=True, check=True
    )
    assert re.fullmatch(rb"skillopt \d+\.\d+\.\d+\S*\s+", done.stdout)


@pytest.mark.parametrize("name", ["train", "eval", "config", "status", "runs", "plugins", "hooks"])
def test_every_command_has_help(name, capsys):
    assert main([name, "--help"]) == 0
    assert f"Usage: skillopt {name}" in capsys.readouterr().out
