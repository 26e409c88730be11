"""What a configuration or the environment may say of Codex."""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import attrs
from attrs import frozen
from skillopt_kernel.config.fields import option
from skillopt_lib_agent.settings import ProgramSettings

Sandbox = Literal["read-only", "workspace-write", "danger-full-access"]
Effort = Literal["", "none", "minimal", "low", "medium", "high", "xhigh"]


def _web_address(_: object, attribute: attrs.Attribute[Any], value: str) -> None:
    try:
        parts = urlsplit(value.strip())
        usable = not value or (parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0)
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(f"must be an address like https://host/v1, not {value!r}")


def _use_sdk(_: object, attribute: attrs.Attribute[Any], value: bool | str) -> None:
    if not isinstance(value, bool) and value not in ("auto", "cli", "sdk"):
        raise ValueError(f"must be auto, sdk or cli, not {value!r}")


def _profile_name(_: object, attribute: attrs.Attribute[Any], value: str) -> None:
    if value and (Path(value).name != value or value.startswith("-")):
        raise ValueError(f"must be a profile's name, not {value!r}")


@frozen
class CodexExecSettings(ProgramSettings):
    """Settings of the backend; those that every program has are in `ProgramSettings`."""

    path: str = option(
        "codex",
        "name or path of the program",
        env="CODEX_EXEC_PATH",
        more_env=("CODEX_CLI_BIN", "CODEX_PATH"),
        free=True,
    )
    sandbox: Sandbox = option(
        "workspace-write",
        "the most that commands may write: read-only, workspace-write or danger-full-access (everything)",
        more_env=("CODEX_SANDBOX_MODE", "CODEX_SANDBOX"),
    )
    use_sdk: bool | str = option(
        "auto", "sdk: through the Codex SDK for Python (an extra); cli and auto: not", _use_sdk, free=True
    )
    network_access: bool = option(False, "whether commands reach the network")
    web_search: bool = option(False, "whether Codex may search the web")
    approval_policy: Literal["never", "on-request", "on-failure", "untrusted"] = option(
        "never", "when Codex asks before it runs a command; nobody answers, so that what it asks for is refused"
    )
    reasoning_effort: Effort = option("", "reasoning effort, where a call names none; empty: the model's own")
    profile: str = option(
        "", "a profile of yours, CODEX_HOME/NAME.config.toml, laid over these settings", _profile_name
    )
    base_url: str = option("", "an endpoint that speaks Responses; empty: Codex's own", _web_address, free=True)
    api_key: str = option(
        "", "the endpoint's key; empty: as you are signed in", secret=True, more_env=("CODEX_API_KEY", "OPENAI_API_KEY")
    )
    auth_file: Path | None = option(
        None, "the file Codex signs in with; empty: auth.json of CODEX_HOME or ~/.codex", path="lazy", free=True
    )
