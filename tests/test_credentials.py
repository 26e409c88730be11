"""A credential on the command line: one visible warning that names the variable to set, and the value nowhere."""

from __future__ import annotations

import base64
import json
import os
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from skillopt_testkit.project import Finished, Project
from skillopt_testkit.servers import ChatServer, Reply

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
    unpacked = [zlib.decompress(cell) for cell in packed if cell and cell[0] & 0x0F == zlib.DEFLATED]
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


def told_of(project: Project, *run: Finished) -> str:
    """All that a run told people and tools: what it printed, its events, and what the ledger says of its calls."""
    calls = project.run("calls", "run", "--list", "--json").out
    shown = [project.run("calls", "run", "--show", "1").ok().out]
    events = (project.folder / "run/events.jsonl").read_text(encoding="utf-8")
    return "\n".join([*(done.out + done.err for done in run), calls, *shown, events])


def test_case_o_p2_a_header_in_an_error_is_shown_nowhere(skillopt_project: Project) -> None:
    """A key that is nobody's here, in the words of an endpoint that fails; the error is told all the same."""
    project = skillopt_project
    leak = "Unauthorized: Authorization: Bearer abc123def456ghi789"
    with ChatServer([Reply(leak, status=400)]) as server:
        keys = [
            "model.target_backend=openai_compatible", f"openai_compatible_base_url={server.url}",
            "model.max_rejections=2", "train.num_epochs=1", "env.limit=4",
        ]  # fmt: skip
        done = project.run("train", "config.yaml", "--out", "run", "-o", *keys)
    told = told_of(project, done)
    assert "Unauthorized: Authorization: Bearer [redacted]" in told
    assert "abc123" not in told
    assert not [
        path for path in (project.folder / "run").rglob("*") if path.is_file() and b"abc123" in path.read_bytes()
    ]


def test_a_key_that_comes_back_encoded_is_shown_nowhere(skillopt_project: Project) -> None:
    """In an address, in base64 beside a user's name, and inside a tool's JSON: as a debugging endpoint repeats it."""
    project, key = skillopt_project, 'pa/ss+"word"=0123456789'
    forms = [quote(key, safe=""), base64.b64encode(f"user:{key}".encode()).decode(), json.dumps(json.dumps({"k": key}))]
    with ChatServer([" ".join(["<answer>", *forms, "</answer>"])]) as server:
        keys = [
            "train.num_epochs=1", "env.limit=4", "model.target_backend=openai_compatible",
            f"openai_compatible_base_url={server.url}",
        ]  # fmt: skip
        variables = {"TARGET_OPENAI_COMPATIBLE_API_KEY": key}
        done = project.run("train", "config.yaml", "--out", "run", "-o", *keys, env=variables).ok()
    stored = [path.read_bytes() for path in (project.folder / "run").rglob("*") if path.is_file()]
    stored += [*contents(project.folder / "run/calls.sqlite"), told_of(project, done).encode()]
    assert any(b"[redacted]" in text for text in stored)
    middles = [quote("ss+", safe=""), base64.b64encode(f"user:{key}".encode()).decode()[12:30], 'word\\"']
    for middle in middles:
        assert not [text for text in stored if middle.encode() in text], middle


def test_a_short_key_ruins_no_text_and_is_warned_of(skillopt_project: Project) -> None:
    """Local servers are given "test" or "EMPTY" for a key: such words stand in questions and answers."""
    project = skillopt_project
    with ChatServer(["<answer>a test of EMPTY words</answer>"]) as server:
        keys = [
            "train.num_epochs=1", "env.limit=4", "model.target_backend=openai_compatible",
            f"openai_compatible_base_url={server.url}",
        ]  # fmt: skip
        variables = {"TARGET_OPENAI_COMPATIBLE_API_KEY": "test"}
        done = project.run("train", "config.yaml", "--out", "run", "-o", *keys, env=variables).ok()
    warned = [line for line in done.err.splitlines() if "fewer than 8 characters" in line]
    assert len(warned) == 1
    assert "environment variable TARGET_OPENAI_COMPATIBLE_API_KEY" in warned[0]
    outcomes = project.lines("run/outcomes.jsonl")
    assert {row["attempt"]["output"] for row in outcomes} == {"a test of EMPTY words"}


def test_a_key_in_the_data_reaches_no_model(skillopt_project: Project) -> None:
    project = skillopt_project
    path = project.folder / "data/train/items.json"
    items = json.loads(path.read_text(encoding="utf-8"))
    for item in items:
        item["context"] = f"[DOC] The key is {SECRET}. {item['context']}"
    path.write_text(json.dumps(items), encoding="utf-8")
    variables = {"OPTIMIZER_QWEN_CHAT_API_KEY": SECRET, "OPENAI_COMPATIBLE_API_KEY": SECRET}
    keys = ["train.num_epochs=1", "env.limit=4", "model.target_backend=openai_compatible"]
    with ChatServer(["<answer>x</answer>"]) as server:
        keys.append(f"openai_compatible_base_url={server.url}")
        project.run("train", "config.yaml", "--out", "run", "-o", *keys, env=variables).ok()
        asked = [json.dumps(request.body) for request in server.requests]
    assert any("The key is [redacted]." in body for body in asked)
    assert not [body for body in asked if SECRET in body]
    nowhere(project.folder / "run")


def test_keys_stay_out_of_the_environment_of_the_process(skillopt_project: Project) -> None:
    """What a configuration gives is not exported, where every program that is started would inherit it."""
    code = (
        "import os, sys; from skillopt_kernel import train\n"
        f"train('config.yaml', ['train.num_epochs=1', 'env.out_root=run', 'qwen_chat_api_key={SECRET}'])\n"
        f"sys.exit({SECRET!r} in os.environ.values())"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=skillopt_project.folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (skillopt_project.folder / "run/summary.json").exists()
    nowhere(skillopt_project.folder)
