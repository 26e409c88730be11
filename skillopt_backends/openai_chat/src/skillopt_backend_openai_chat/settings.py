"""What a configuration or the environment may say of the backend, and what follows for how it signs in."""

from __future__ import annotations

import re
from typing import Any, Literal

import attrs
from attrs import field, frozen
from skillopt_kernel.config.fields import above
from skillopt_lib_chat.options import TokenLimitField, base_address, plain_address
from skillopt_lib_chat.settings import optional_web_address, seconds
from skillopt_lib_chat.settings import temperature as check_temperature

from skillopt_backend_openai_chat.facts import takes_tokens

Mode = Literal["api_key", "azure_cli", "managed_identity", "openai_compatible"]

_MODES: dict[str, Mode] = {
    "api_key": "api_key",
    "key": "api_key",
    "azure_cli": "azure_cli",
    "managed_identity": "managed_identity",
    "aad": "managed_identity",
    "azure_ad": "managed_identity",
    "openai_compatible": "openai_compatible",
    "compat": "openai_compatible",
    "openai": "openai_compatible",
}
"""What people write -> the mode."""

_FREE = {"free": True}


def _mode(_: Any, attribute: attrs.Attribute[Any], value: str) -> None:
    if value.strip() and value.strip().lower() not in _MODES:
        raise ValueError(f"expected one of {', '.join(dict.fromkeys(_MODES.values()))}, got {value!r}")


def _resource(settings: Any, attribute: attrs.Attribute[Any], value: str) -> None:
    optional_web_address(settings, attribute, value.partition("?")[0])  # documentation shows it with a version


def _free(variable: str) -> dict[str, Any]:
    """Metadata of a field of Azure's: free, and its other variables by role (`AZURE_OPENAI_OPTIMIZER_ENDPOINT`)."""
    return {"free": True, "role_env": (f"AZURE_OPENAI_{{}}_{variable}",)}


@frozen
class OpenAIChatSettings:
    """Settings of the backend. Without azure_openai_auth_mode, an Azure resource whose key is not set gets a token.

    openai_base_url         where the OpenAI API is, up to and with its version, when azure_openai_endpoint is not set
    openai_api_key          the key of that API
    azure_openai_endpoint   the Azure resource, such as https://my-resource.openai.azure.com; empty: the OpenAI API
    azure_openai_api_key    the key of that resource
    azure_openai_auth_mode  api_key, azure_cli, managed_identity, openai_compatible (no Azure); empty: by the key
    azure_openai_api_version  the version of Azure's API; empty: the newest that this backend knows
    azure_openai_ad_scope   what a token of azure_cli and managed_identity is asked for
    azure_openai_managed_identity_client_id  which managed identity, where a machine has several
    openai_chat_api         chat_completions, responses, or auto: as the model wants it
    openai_chat_base_model  which model it is, where its name does not say so, such as an Azure deployment's
    openai_chat_timeout_seconds    seconds that one call may take, whatever its deadline allows
    openai_chat_max_tokens         the most tokens that a reply may have; null: what each call asks for
    openai_chat_temperature        the sampling temperature, for models that take one; null: the endpoint's own
    openai_chat_token_limit_field  how Chat Completions call the limit of a reply
    openai_chat_structured_output  whether JSON schemas are sent for replies that have one
    openai_chat_send_seed          whether a `seed` is sent to Chat Completions
    """

    openai_base_url: str = field(default="https://api.openai.com/v1", validator=optional_web_address, metadata=_FREE)
    openai_api_key: str = field(default="", repr=False, metadata={"secret": True})
    azure_openai_endpoint: str = field(default="", validator=_resource, metadata=_free("ENDPOINT"))
    azure_openai_api_key: str = field(default="", repr=False, metadata={"secret": True, **_free("API_KEY")})
    azure_openai_auth_mode: str = field(default="", validator=_mode, metadata=_free("AUTH_MODE"))
    azure_openai_api_version: str = field(default="", metadata={**_free("API_VERSION"), "free": False})
    azure_openai_ad_scope: str = field(
        default="https://cognitiveservices.azure.com/.default", metadata=_free("AD_SCOPE")
    )
    azure_openai_managed_identity_client_id: str = field(default="", metadata=_free("MANAGED_IDENTITY_CLIENT_ID"))
    openai_chat_api: Literal["auto", "chat_completions", "responses"] = "auto"
    openai_chat_base_model: str = ""
    openai_chat_timeout_seconds: float = field(default=300.0, validator=seconds, metadata=_FREE)
    openai_chat_max_tokens: int | None = field(default=None, validator=above(0))
    openai_chat_temperature: float | None = field(default=None, validator=check_temperature)
    openai_chat_token_limit_field: TokenLimitField = "max_completion_tokens"
    openai_chat_structured_output: bool = False
    openai_chat_send_seed: bool = False

    @property
    def model(self) -> str:
        """The model of a role that names none."""
        return "gpt-4o"

    @property
    def mode(self) -> Mode:
        """How it signs in."""
        told = self.azure_openai_auth_mode.strip().lower()
        if told:
            return _MODES[told]
        if not self.endpoint:
            return "openai_compatible"
        return "api_key" if self.azure_openai_api_key.strip() else "azure_cli"

    @property
    def endpoint(self) -> str:
        """The Azure resource's address without what follows it in documentation; "" where none is set."""
        text = re.sub(r"\?.*", "", self.azure_openai_endpoint.strip())
        return base_address(re.sub(r"/openai(/deployments/.*|/responses)?/?$", "", text))

    def __attrs_post_init__(self) -> None:
        mode, named = self.mode, bool(self.azure_openai_auth_mode.strip())
        if mode == "openai_compatible":
            return
        if not self.endpoint:
            raise ValueError(
                f"azure_openai_auth_mode is {mode}, which is a way to sign in to Azure, but no endpoint is named; set "
                "azure_openai_endpoint (AZURE_OPENAI_ENDPOINT), or leave the mode empty for the OpenAI API"
            )
        if mode != "api_key" and not takes_tokens(self.endpoint):
            why = "" if named else " (as it does where azure_openai_api_key is not set)"
            raise ValueError(
                f"it signs in with {mode}{why}, and a token goes to https addresses of Azure only, not to "
                f"{plain_address(self.endpoint)!r}; set azure_openai_api_key (AZURE_OPENAI_API_KEY), or "
                "azure_openai_auth_mode: openai_compatible for an endpoint that is not Azure"
            )
