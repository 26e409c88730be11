"""What a configuration or the environment may say of the Copilot CLI, whichever backend runs it.

The fields bear whole keys, since both backends read the same ones. What tells of an endpoint is called as the program
calls it.
"""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import attrs
from attrs import frozen
from skillopt_kernel.config.fields import at_least, option


def _web_address(_: object, attribute: attrs.Attribute[Any], value: str) -> None:
    try:
        parts = urlsplit(value.strip())
        usable = not value.strip() or (parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0)
    except ValueError:  # a port that is no number, brackets that do not close
        usable = False
    if not usable:
        raise ValueError(f"must be an address like https://host/v1 or http://127.0.0.1:8000/v1, not {value!r}")


@frozen
class CopilotSettings:
    """The settings that both backends have."""

    copilot_exec_path: str = option("copilot", "the Copilot CLI: its name in PATH, or its path", free=True)
    copilot_exec_home: Path | None = option(
        None,
        "home of a signed-in Copilot, as `~/.copilot`; its sign-in is used and nothing else",
        path="lazy",
        free=True,
    )
    copilot_github_token: str = option(
        "", "token of GitHub that Copilot signs in with; empty: the home's sign-in", secret=True, free=True
    )
    copilot_provider_base_url: str = option(
        "", "endpoint of your own in place of GitHub's models; empty: GitHub's", _web_address, free=True
    )
    copilot_provider_type: Literal["openai", "azure", "anthropic"] = option("openai", "what that endpoint speaks")
    copilot_provider_wire_api: Literal["completions", "responses"] = option(
        "completions", "which of OpenAI's protocols that is"
    )
    copilot_provider_api_key: str = option(
        "", "key of that endpoint; empty for one that asks for none", secret=True, free=True
    )
    copilot_provider_bearer_token: str = option("", "token of that endpoint, in place of a key", secret=True, free=True)
    copilot_provider_azure_api_version: str = option("", "version of Azure's interface; empty: its versionless one")

    copilot_provider_max_prompt_tokens: int | None = option(
        None, "the most tokens of a prompt there; empty: what Copilot knows of the model, else 128,000", at_least(1)
    )

    @property
    def own_endpoint(self) -> bool:
        """Whether the models are those of an endpoint of the user's own."""
        return bool(self.copilot_provider_base_url.strip())

    @property
    def signed_in_home(self) -> Path | None:
        """The folder in `copilot_exec_home`."""
        return None if self.copilot_exec_home is None else self.copilot_exec_home.expanduser()

    @property
    def endpoint(self) -> str:
        """What shares one limit of calls: the user's own endpoint without what may be secret in it, else GitHub."""
        parts = urlsplit(self.copilot_provider_base_url.strip())
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}" if self.own_endpoint else "copilot"

    @property
    def credentials(self) -> tuple[str, ...]:
        """What no message may show."""
        told = (self.copilot_github_token, self.copilot_provider_api_key, self.copilot_provider_bearer_token)
        return tuple(secret.strip() for secret in told if secret.strip())
