"""The keys of Codex by all their names, and its environment variables in the order in which they are asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from skillopt_backend_codex_exec.command import agent_arguments
from skillopt_backend_codex_exec.settings import CodexExecSettings
from skillopt_kernel.config import load_config

WORK = Path("work")


@pytest.mark.parametrize("key", ["codex_exec_sandbox", "codex_sandbox", "sandbox", "target_codex_exec_sandbox"])
@pytest.mark.parametrize("written", ["read-only", "danger-full-access"])
def test_a_sandbox_by_any_of_its_names_is_in_the_argument_list(key, written):
    """O-X2: sandbox and path aliases were not mapped."""
    settings = target_settings({key: written})
    assert settings.sandbox == written
    made = agent_arguments(settings, "", WORK, edits=True)
    assert made[made.index("--sandbox") + 1] == written


@pytest.mark.parametrize("key", ["codex_exec_path", "codex_path", "codex_cli_bin", "codex_bin"])
def test_a_path_by_any_of_its_names_is_what_is_run(key):
    assert target_settings({key: "/opt/codex"}).path == "/opt/codex"


@pytest.mark.parametrize(
    ("environ", "path", "sandbox"),
    [
        ({}, "codex", "workspace-write"),
        ({"CODEX_PATH": "c", "CODEX_SANDBOX": "read-only"}, "c", "read-only"),
        ({"CODEX_PATH": "c", "CODEX_CLI_BIN": "b", "CODEX_SANDBOX_MODE": "read-only"}, "b", "read-only"),
        ({"CODEX_EXEC_PATH": "a", "CODEX_CLI_BIN": "b"}, "a", "workspace-write"),
        ({"TARGET_CODEX_EXEC_PATH": "t", "CODEX_EXEC_PATH": "a"}, "t", "workspace-write"),
    ],
)
def test_variables_are_asked_in_order(environ, path, sandbox):
    settings = target_settings({}, environ)
    assert (settings.path, settings.sandbox) == (path, sandbox)
    assert target_settings({"codex_exec_path": "mine"}, environ).path == "mine"


def target_settings(model: dict, environ: dict[str, str] | None = None) -> CodexExecSettings:
    settings: CodexExecSettings = (
        load_config({"model": {"backend": "codex", **model}}, environ=environ or {}).backends["target"].settings
    )
    return settings
