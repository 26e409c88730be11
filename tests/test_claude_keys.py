"""The liveness rule for the backends on Claude Code: each key changes what the program is told or given, or what
becomes of a call.

A program in the place of the real one answers with its arguments, its variables, what it reads from a pipe, and the
files of its home.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from skillopt_kernel.config import load_config
from skillopt_kernel.errors import ModelError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import AgentJob, ChatRequest, Message
from skillopt_kernel.plugins.discovery import load_manifest, make_driver, settings_class
from skillopt_testkit.programs import write_program

SOURCE = """
import json, os, sys, time
if "--version" in sys.argv or "--help" in sys.argv: print("2.1.332", FLAGS); sys.exit()
if os.environ.get("ANTHROPIC_BASE_URL", "").endswith(":7"): time.sleep(600)
home, seen, given = os.environ["HOME"], {}, dict(os.environ)
for name in list(given):
    if name.endswith("_FILE_DESCRIPTOR"): given[name] = os.read(int(given[name]), 1000).decode()
for folder, _, names in os.walk(home):
    for name in names:
        with open(os.path.join(folder, name), encoding="utf-8") as file: seen[name] = file.read()
told = json.dumps([sys.argv[1:], given, seen, os.path.exists(SEEN), NAME], sort_keys=True)
for path in sorted({home, os.path.dirname(home), os.getcwd(), os.environ["TMPDIR"]}, key=len, reverse=True):
    told = told.replace(path, "PRIVATE")
print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": told}))
"""

FLAGS = (
    "--print --output-format --input-format --verbose --model --tools --setting-sources --strict-mcp-config "
    "--no-session-persistence --effort --json-schema --disable-slash-commands --bare --permission-mode --allowedTools "
    "--settings"
)

BASE: Mapping[str, Any] = {"base_url": "http://127.0.0.1:9", "api_key": "sk-ant-0123456789abcdef"}

BOTH: Mapping[str, Any] = {
    "path": "OTHER",
    "api_key": "sk-ant-another-0123456789",
    "auth_token": "token-0123456789",
    "oauth_token": "oauth-0123456789",
    "base_url": "http://127.0.0.1:8",
    "config_dir": "FOLDER",
    "timeout_seconds": 0.5,
    "pass_variables": ("SKILLOPT_HANDED_ON",),
    "readable_paths": ("FOLDER",),
    "max_tokens": 1000,
}

KEYS: Mapping[str, Mapping[str, Any]] = {
    "claude_chat": {**BOTH, "structured_output": False},
    "claude_code_exec": {
        **BOTH, "use_sdk": "sdk", "profile": "FILE", "effort": "low", "max_thinking_tokens": 7, "tools": ("Bash",),
    },
}  # fmt: skip
"""Backend -> field of its settings -> a value that makes a difference."""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    """What stands for a program or a path in the tables."""
    folder, file = tmp_path / "folder", tmp_path / "profile.json"
    folder.mkdir()
    file.write_text('{"env": {"MINE": "1"}}', "utf-8")

    def program(name: str) -> Path:
        head = f"FLAGS, NAME, SEEN = {FLAGS!r}, {name!r}, {str(folder)!r}\n"
        return write_program(tmp_path / name, "claude", head + SOURCE)

    package = tmp_path / "site" / "claude_agent_sdk"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("", "utf-8")
    program("bundled").rename(tmp_path / "claude")
    (package / "_bundled").mkdir()
    (tmp_path / "claude").rename(package / "_bundled" / "claude")
    return {"": program("first"), "OTHER": program("other"), "FOLDER": folder, "FILE": file}


def told(backend: str, places: Mapping[str, Path], **changes: Any) -> Any:
    """What the program was told and given for one call, or the kind of error that came of it."""

    def put(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(put, value))
        return places.get(value, value) if isinstance(value, str) and value else value

    given = {"path": "", **BASE, **changes}
    given = {name: str(put(value)) if name == "path" else put(value) for name, value in given.items()}
    given["path"] = given["path"] or str(places[""])
    settings = settings_class(load_manifest("backend", backend))
    assert settings is not None
    driver = make_driver("backend", backend, settings(**given), DriverContext(logging.getLogger("skillopt.test")))
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    try:
        if backend == "claude_chat":
            request = ChatRequest((Message("user", "Hi."),), schema=schema, max_tokens=2000)
            return driver.open_chat("target").complete(request).text
        return driver.open_agent("target").run(AgentJob("Hi.", "# Skill\n")).message
    except ModelError as error:
        return type(error).__name__
    finally:
        driver.close()


@pytest.mark.parametrize("backend", KEYS)
def test_no_key_is_left_out(backend: str) -> None:
    settings = settings_class(load_manifest("backend", backend))
    assert settings is not None
    assert set(KEYS[backend]) == set(attrs.fields_dict(settings))


@pytest.mark.parametrize(("backend", "key"), [(backend, key) for backend, keys in KEYS.items() for key in keys])
def test_each_key_is_live(backend: str, key: str, places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKILLOPT_HANDED_ON", "yes")
    monkeypatch.syspath_prepend(places[""].parent.parent / "site")
    if key == "timeout_seconds":
        silent = {"base_url": "http://127.0.0.1:7", key: KEYS[backend][key]}
        assert told(backend, places, **silent) == "CallTimeout"
        return
    plain, changed = told(backend, places), told(backend, places, **{key: KEYS[backend][key]})
    if key == "readable_paths" and json.loads(plain)[3]:
        pytest.skip("there is no wall here, and all can be read")
    assert plain != changed


@pytest.mark.parametrize("backend", KEYS)
def test_what_cannot_change_a_result_may_change_on_a_resume(backend: str, tmp_path: Path) -> None:
    """Programs, endpoints, times and credentials are free; what the model is told and may do is not."""
    free = {"path", "api_key", "auth_token", "oauth_token", "base_url", "config_dir", "timeout_seconds",
            "readable_paths", "use_sdk"}  # fmt: skip
    (tmp_path / "FILE").write_text("{}", "utf-8")

    def fingerprint(**keys: Any) -> str:
        model = {"optimizer_backend": "claude_chat", "target_backend": backend}
        named = {
            f"{backend}_{name}": list(value) if isinstance(value, tuple) else value for name, value in keys.items()
        }
        return load_config({"env": {"name": "searchqa"}, "model": {**model, **named}}, environ={}).fingerprint()

    for key, value in KEYS[backend].items():
        value = str(tmp_path / "FILE") if value in ("FILE", "FOLDER") else value
        if key in ("pass_variables", "readable_paths"):
            continue  # as for every program
        assert (fingerprint(**{key: value}) == fingerprint()) == (key in free), key
