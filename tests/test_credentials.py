"""A credential on the command line: one visible warning that names the variable to set, and the value nowhere."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path

import pytest
from skillopt_testkit.project import Finished, Project
from skillopt_testkit.servers import ChatServer

SECRET = "sk-0123456789-of-the-test"
FLAGS = {
    "azure_api_key": "AZURE_OPENAI_API_KEY",
    "optimizer_azure_openai_api_key": "OPTIMIZER_AZURE_OPENAI_API_KEY",
    "target_azure_openai_api_key": "TARGET_AZURE_OPENAI_API_KEY",
    "qwen_chat_api_key": "QWEN_CHAT_API_KEY",
    "optimizer_qwen_chat_api_key": "OPTIMIZER_QWEN_CHAT_API_KEY",
    "target_qwen_chat_api_key": "TARGET_QWEN_CHAT_API_KEY",
    "minimax_api_key": "MINIMAX_API_KEY",
    "optimizer_minimax_api_key": "OPTIMIZER_MINIMAX_API_KEY",
    "target_minimax_api_key": "TARGET_MINIMAX_API_KEY",
}
"""Flag -> the environment variable that says the same."""


def nowhere(folder: Path, *runs: Finished) -> None:
    """The value stands in no line that was printed and in no file."""
    for done in runs:
        assert SECRET not in done.out + done.err
    holding = [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert not holding
    ledgers = list(folder.rglob("calls.sqlite"))
    assert not [path for path in ledgers if any(SECRET.encode() in text for text in contents(path))]


def contents(ledger: Path) -> list[bytes]:
    """Everything that a ledger of calls holds, unpacked."""
    with closing(sqlite3.connect(ledger)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        cells = [cell for table in tables for row in database.execute(f"SELECT * FROM {table}") for cell in row]
    packed = [cell for cell in cells if isinstance(cell, bytes)]
    unpacked = [zlib.decompress(cell) for cell in packed if cell[:1] == b"x"]
    assert unpacked, "requests and replies are kept packed"
    return [*packed, *unpacked, *(str(cell).encode() for cell in cells)]


def script(project: Project, command: str, *words: str) -> Finished:
    """One of the commands with flags, as it is installed."""
    done = subprocess.run(
        [Path(sys.executable).parent / command, *words],
        cwd=project.folder, env=dict(os.environ), capture_output=True, encoding="utf-8", timeout=120, check=False,
    )  # fmt: skip
    return Finished(done.returncode, done.stdout, done.stderr, 0.0)


def warnings(done: Finished) -> list[str]:
    return [line for line in done.err.splitlines() if "a credential on the command line" in line]


@pytest.mark.parametrize("quiet", [[], ["--quiet"], ["--json"]], ids=["lines", "quiet", "json"])
def test_a_run_goes_on_with_a_key_that_is_shown_nowhere(skillopt_project: Project, quiet: list[str]) -> None:
    project = skillopt_project
    with ChatServer([f"<answer>{SECRET}</answer>"]) as server:  # an endpoint that repeats the key that it was sent
        keys = [
            "train.num_epochs=1", "model.target_backend=openai_compatible", f"openai_compatible_base_url={server.url}",
            f"model.target_openai_compatible_api_key={SECRET}",
        ]  # fmt: skip
        done = project.run("train", "config.yaml", "--out", "run", *quiet, "-o", *keys).ok()
        sent = {request.headers.get("authorization") for request in server.requests}
    assert sent == {f"Bearer {SECRET}"}
    assert "[redacted]" in (project.folder / "run/outcomes.jsonl").read_text(), "what the endpoint repeated"
    assert any(b"[redacted]" in text for text in contents(project.folder / "run/calls.sqlite"))
    (warning,) = warnings(done)
    assert warning.startswith("Warning: -o model.target_openai_compatible_api_key: ")
    assert "set the environment variable TARGET_OPENAI_COMPATIBLE_API_KEY instead" in warning
    nowhere(project.folder, done)


def test_every_flag_for_a_credential_names_its_variable_in_both_commands(skillopt_project: Project) -> None:
    project = skillopt_project
    words = ["--config", "config.yaml", "--quiet", *(word for flag in FLAGS for word in (f"--{flag}", SECRET))]
    trained = script(project, "skillopt-train", *words, "--num_epochs", "1", "--out_root", "run").ok()
    scored = script(project, "skillopt-eval", *words, "--skill", "skill.md", "--out_root", "scores").ok()
    for done in (trained, scored):
        told = dict(line.removeprefix("Warning: --").split(": ", 1) for line in warnings(done))
        assert set(told) == set(FLAGS) and len(warnings(done)) == len(FLAGS)
        for flag, variable in FLAGS.items():
            assert told[flag].endswith(f"set the environment variable {variable} instead")
    nowhere(project.folder, trained, scored)


@pytest.mark.parametrize("words", [["config", "show", "config.yaml", "--origins"], ["hooks", "explain", "config.yaml"]])
def test_commands_that_only_look_warn_too(skillopt_project: Project, words: list[str]) -> None:
    done = skillopt_project.run(*words, "-o", f"qwen_chat_api_key={SECRET}", "train.seed=3").ok()
    assert len(warnings(done)) == 1 and "QWEN_CHAT_API_KEY" in done.err
    nowhere(skillopt_project.folder, done)


def test_a_key_in_a_mistake_is_not_repeated(skillopt_project: Project) -> None:
    for key in ("env.api_key", "trian.api_key", "model.simulated_api_key", "api_key.token"):
        done = skillopt_project.run("train", "config.yaml", "-o", f"{key}={SECRET}").refused()
        nowhere(skillopt_project.folder, done)


def test_the_environment_is_no_command_line(skillopt_project: Project) -> None:
    done = skillopt_project.run("config", "show", "config.yaml", env={"OPENAI_COMPATIBLE_API_KEY": SECRET}).ok()
    assert not done.err
    nowhere(skillopt_project.folder, done)
