"""Claude Code as a program: what messages say of it, its settings, and what it is given to sign in and keep quiet."""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import attrs
from attrs import field, frozen
from skillopt_kernel.config.fields import option
from skillopt_kernel.errors import PermanentError
from skillopt_kernel.interfaces import Finding

from skillopt_lib_agent.failures import Program
from skillopt_lib_agent.settings import ProgramSettings

PUBLIC = "https://api.anthropic.com"
"""Where the models are that Anthropic serves itself."""

MODEL = "claude-sonnet-4-6"
"""The model of a role that names none."""

OLDEST = "2.1.197"

FLAGS = (
    "--print", "--output-format", "--input-format", "--verbose", "--model", "--tools", "--setting-sources",
    "--strict-mcp-config", "--no-session-persistence", "--effort",
)  # fmt: skip
"""Flags that are used in every role."""

IMAGES = ("--input-format", "stream-json")
"""With what a message comes as JSON. Older versions read it from pipes only, and say nothing."""

QUIET = {
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",
}
"""Every request is made once, since the kernel retries; and nothing gets into one that the job did not put there: no
memory, no skill but the trained one, no CLAUDE.md of a folder above, no file because a text says `@path`."""


def web_address(_: Any, attribute: attrs.Attribute[Any], value: str) -> None:
    """A check for the address of an API; empty: the program's own."""
    try:
        parts = urlsplit(value.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if value.strip() and not usable:
        raise ValueError(f"must be an address like {PUBLIC} or http://127.0.0.1:8000, not {value!r}")


def _secret(variable: str, description: str) -> Any:
    about = {"description": f"{description} ({variable})", "secret": True, "env": variable}
    return field(default="", repr=False, metadata=about)


@frozen
class ClaudeSettings(ProgramSettings):
    """The settings of both backends on Claude Code. What it signs in with has the names that it has everywhere."""

    api_key: str = _secret("ANTHROPIC_API_KEY", "the key of Anthropic's API, or of the gateway at base_url")
    auth_token: str = _secret("ANTHROPIC_AUTH_TOKEN", "a bearer token in place of the key, for gateways")
    oauth_token: str = _secret("CLAUDE_CODE_OAUTH_TOKEN", "a subscription's token, as `claude setup-token` gives it")
    base_url: str = option(
        "",
        "where the API is; empty: at Anthropic (ANTHROPIC_BASE_URL)",
        web_address,
        env="ANTHROPIC_BASE_URL",
        free=True,
    )
    config_dir: Path | None = option(
        None, "a folder in which Claude Code is signed in, used as it is; empty: a private one for each job", free=True
    )

    @property
    def address(self) -> str:
        """Where the API is, without a login or a query, as messages and prices name it."""
        parts = urlsplit(self.base_url.strip() or PUBLIC)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path.rstrip("/"), "", ""))

    @property
    def credentials(self) -> dict[str, str]:
        """Variable -> what the program signs in with, of those that are set."""
        told = {"ANTHROPIC_API_KEY": self.api_key, "ANTHROPIC_AUTH_TOKEN": self.auth_token,
                "CLAUDE_CODE_OAUTH_TOKEN": self.oauth_token}  # fmt: skip
        return {name: text.strip() for name, text in told.items() if text.strip()}

    @property
    def only_key(self) -> bool:
        """Whether a key or a bearer token is all that it signs in with, which its bare mode can do."""
        others = self.oauth_token.strip() or self.config_dir or self.pass_variables
        return bool(self.credentials) and not others

    def require_sign_in(self, program: Program) -> None:
        """Raises `PermanentError`, with what to do, where there is nothing to sign in with."""
        severity, sentence = self.sign_in_finding(program)
        if severity == "error":
            raise PermanentError(sentence)

    def sign_in_finding(self, program: Program) -> Finding:
        """What it signs in with, as a finding. Variables handed on may be those of another cloud, and are believed."""
        handed = [name for name in self.pass_variables if os.environ.get(name)]
        how = [*self.credentials, *([f"the folder {self.config_dir}"] if self.config_dir else ()), *handed]
        if how:
            return "ok", f"{program.name} signs in at {self.address} with {', '.join(how)}"
        return "error", f"{program.name} has nothing to sign in with. {program.sign_in}"

    def variables(self, home: Path) -> dict[str, str]:
        """What it is given beside its credentials."""
        where = {"ANTHROPIC_BASE_URL": self.base_url.strip()} if self.base_url.strip() else {}
        return {**QUIET, **where, "CLAUDE_CONFIG_DIR": str(self.config_dir or home / ".claude")}


def program(prefix: str, role: str) -> Program:
    """Claude Code as messages speak of it, for a backend whose settings begin with `prefix`."""
    return Program(
        name="Claude Code",
        command="claude",
        setting=f"`model.{prefix}path`",
        install="npm install -g @anthropic-ai/claude-code",
        sign_in=(
            f"Set ANTHROPIC_API_KEY (`model.{prefix}api_key`); for a subscription run `claude setup-token`, and set "
            f"CLAUDE_CODE_OAUTH_TOKEN (`model.{prefix}oauth_token`) to what it gives."
        ),
        model_setting=f"model.{role}",
        upgrade="npm install -g @anthropic-ai/claude-code@latest",
    )


def effort_of(asked: str | None) -> tuple[list[str], dict[str, str]]:
    """Arguments and variables for a reasoning effort: `none` is no thinking at all, `minimal` the least there is."""
    effort = (asked or "").strip().lower()
    if effort in ("", "off", "none"):
        return [], {"MAX_THINKING_TOKENS": "0"} if effort == "none" else {}
    return ["--effort", "low" if effort == "minimal" else effort], {}


def prompt_input(prompt: str, images: Mapping[str, bytes] | None = None) -> tuple[list[str], str]:
    """Arguments, and what is written to standard input: the text as it is, or with images one message in JSON.

    A text that begins with `/` would be taken for a command of the program's; a line before it makes it a text.
    """
    text = f"\n{prompt}" if prompt.startswith("/") or not prompt else prompt
    if not images:
        return [], text
    content: list[dict[str, Any]] = [{"type": "text", "text": text}]
    for name, data in images.items():
        ending = name.rpartition(".")[2]
        kind = "image/jpeg" if ending == "jpg" else f"image/{ending}"
        source = {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode("ascii")}
        content += [{"type": "text", "text": f"{name}:"}, {"type": "image", "source": source}]
    return list(IMAGES), json.dumps({"type": "user", "message": {"role": "user", "content": content}}) + "\n"
