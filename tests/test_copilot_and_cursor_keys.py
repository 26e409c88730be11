"""The liveness rule for the backends on Copilot and Cursor's agent: each key changes what the program is told or does.

A program in the place of the real one answers with its arguments, its variables and the files of its home.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from skillopt_kernel import load_config
from skillopt_kernel.errors import CallTimeout, ModelError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import AgentJob, ChatRequest, Message
from skillopt_kernel.plugins.discovery import load_manifest, make_driver, settings_class
from skillopt_testkit.programs import write_program
from skillopt_testkit.project import Project

SOURCE = """
import json, os, sys, time
if "--version" in sys.argv or "--help" in sys.argv: print("1.0.102", FLAGS); sys.exit()
if SLEEPS: time.sleep(600)
home, seen = os.environ["HOME"], {}
for folder, _, names in os.walk(home):
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file: seen[name] = file.read()
private = {home, os.path.dirname(home), os.getcwd(), os.environ["TMPDIR"]}
def plain(text):
    for path in sorted(private, key=len, reverse=True): text = text.replace(path, "PRIVATE")
    return text
told = plain(json.dumps([sys.argv[1:], dict(os.environ), seen, NAME], sort_keys=True))
for event in (
    {"type": "model.call_finished", "data": {"turnId": "0", "outcome": "success"}},
    {"type": "assistant.message", "data": {"turnId": "0", "content": told, "toolRequests": []}},
    {"type": "result", "exitCode": 0, "subtype": "success", "is_error": False, "result": told},
): print(json.dumps(event))
"""
"""It speaks as both programs do."""

FLAGS = (
    "--output-format --stream --no-color --log-level --no-auto-update --no-ask-user --disable-builtin-mcps --model "
    "--disallow-temp-dir --available-tools --allow-tool --usage-output-file --print --trust --workspace --sandbox "
    "--mode --force"
)

ENDPOINT: dict[str, Any] = {"copilot_provider_base_url": "http://127.0.0.1:9/v1"}

COPILOT: dict[str, Any] = {
    "copilot_exec_path": "OTHER",
    "copilot_exec_home": "HOME",
    "copilot_github_token": "ghp-0123456789abcdef",
    "copilot_provider_base_url": "http://127.0.0.1:8/v1",
    "copilot_provider_type": "anthropic",
    "copilot_provider_wire_api": "responses",
    "copilot_provider_api_key": "sk-0123456789abcdef",
    "copilot_provider_bearer_token": "bearer-0123456789abcdef",
    "copilot_provider_azure_api_version": "2024-10-21",
    "copilot_provider_max_prompt_tokens": 1000,
}
PROGRAM = {"pass_variables": ("SKILLOPT_HANDED_ON",), "readable_paths": "HOME"}

KEYS: Mapping[str, Mapping[str, Any]] = {
    "copilot_chat": {
        **COPILOT, "copilot_chat_model": "mine", "copilot_chat_timeout": 1, "copilot_chat_send_effort": False,
    },
    "copilot_exec": {
        **COPILOT, "copilot_exec_model": "mine", "copilot_exec_timeout": 0.5, "copilot_exec_reasoning_effort": "low",
        "copilot_exec_allow_all_tools": True, **{f"copilot_exec_{key}": value for key, value in PROGRAM.items()},
    },
    "cursor_exec": {
        "path": "OTHER", "sandbox": "disabled", "model": "mine", "api_key": "cursor-0123456789abcdef",
        "timeout_seconds": 0.5, **PROGRAM,
    },
}  # fmt: skip
"""Backend -> field of its settings -> a value that makes a difference."""

GITHUBS = ("copilot_exec_home", "copilot_github_token")
"""What counts where the models are GitHub's."""


@pytest.mark.parametrize("backend", KEYS)
def test_no_key_is_left_out(backend: str) -> None:
    settings = settings_class(load_manifest("backend", backend))
    assert settings is not None
    assert set(KEYS[backend]) == set(attrs.fields_dict(settings))


def test_a_model_is_named_for_one_role_as_the_earlier_system_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Project.make(tmp_path, train=4, selection=4, test=2).folder)
    keys = {"backend": "copilot", "optimizer_backend": "", "target_backend": "", "copilot_chat_optimizer_model": "one"}
    Path("run.yaml").write_text(json.dumps({"_base_": "config.yaml", "model": keys}), "utf-8")
    found = load_config("run.yaml", environ={"COPILOT_CHAT_TARGET_MODEL": "two", "COPILOT_CHAT_MODEL": "three"})
    models = {role: choice.settings.copilot_chat_model for role, choice in found.backends.items()}
    assert models == {"optimizer": "one", "target": "two", "judge": "one"}


@pytest.mark.parametrize("backend", KEYS)
def test_without_a_change_there_is_no_difference(tmp_path: Path, backend: str) -> None:
    base = based(backend, program(tmp_path, "one"))
    assert seen(backend, base) == seen(backend, base) != "not waited for"


@pytest.mark.parametrize(
    ("backend", "key"), [(name, key) for name, keys in KEYS.items() for key in keys if "readable" not in key]
)
def test_a_key_changes_what_the_program_is_told_or_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, key: str
) -> None:
    monkeypatch.setenv("SKILLOPT_HANDED_ON", "this")
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.json").write_text('{"loggedInUsers": []}', "utf-8")
    made = {"HOME": home, "OTHER": program(tmp_path / "other", "other")}
    value = KEYS[backend][key]
    change = {key: made.get(value, value) if isinstance(value, str) else value}
    base = based(backend, program(tmp_path / "one", "one"), at_github=key in GITHUBS)
    before = seen(backend, base, edits=key != "sandbox")
    if "timeout" in key:
        base = based(backend, program(tmp_path / "two", "one", sleeps=True))
    assert before != seen(backend, base | change, edits=key != "sandbox")


@pytest.mark.parametrize("backend", ["copilot_exec", "cursor_exec"])
def test_behind_a_wall_a_path_is_seen_that_is_named(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "data"
    path.mkdir()
    file = Path(program(tmp_path / "one", "one"))
    looks = f"NAME = os.path.exists({str(path)!r})\nhome, seen"
    file.write_text(file.read_text("utf-8").replace("home, seen", looks, 1), "utf-8")
    base = based(backend, str(file))
    driver = opened(backend, base)
    isolated = driver.open_agent("target").run(AgentJob("Hello", "")).isolated
    driver.close()
    if not isolated:
        pytest.skip("there is no wall here that could hide a path")
    key = "readable_paths" if backend == "cursor_exec" else "copilot_exec_readable_paths"
    assert [json.loads(seen(backend, base | more))[3] for more in ({}, {key: (path,)})] == [False, True]


def based(backend: str, path: str, *, at_github: bool = False) -> dict[str, Any]:
    """The settings that are changed: a program, and for Copilot an endpoint."""
    if backend == "cursor_exec":
        return {"path": path}
    return {"copilot_exec_path": path, **({} if at_github else ENDPOINT)}


def program(folder: Path, name: str, *, sleeps: bool = False) -> str:
    head = f"FLAGS, NAME, SLEEPS = {FLAGS!r}, {name!r}, {sleeps}\n"
    return str(write_program(folder, "program", head + SOURCE))


def opened(backend: str, given: Mapping[str, Any]) -> Any:
    settings = settings_class(load_manifest("backend", backend))
    assert settings is not None
    return make_driver("backend", backend, settings(**given), DriverContext(logging.getLogger("skillopt")))


def seen(backend: str, given: Mapping[str, Any], *, edits: bool = True) -> str:
    """What the program tells of one call, or the kind of the error that it ended in."""
    driver = opened(backend, given)
    try:
        if backend == "copilot_chat":
            request = ChatRequest((Message("user", "Hello"),), effort="high")
            return str(driver.open_chat("target").complete(request).text)
        return str(driver.open_agent("target").run(AgentJob("Hello", "Be brief.", edits=edits)).message)
    except CallTimeout:
        return "not waited for"
    except ModelError as error:
        return type(error).__name__
    finally:
        driver.close()
