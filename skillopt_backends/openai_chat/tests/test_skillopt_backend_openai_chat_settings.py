"""The settings: from YAML and environment, by role, and what they make of the place and the way to sign in."""

from __future__ import annotations

from typing import Any

import pytest
from skillopt_backend_openai_chat.backend import options_of
from skillopt_backend_openai_chat.settings import OpenAIChatSettings
from skillopt_backend_openai_chat.tokens import tokens_of
from skillopt_kernel.config import load_config
from skillopt_kernel.errors import ConfigError
from skillopt_lib_chat.options import ChatOptions

AZURE = "https://my-resource.openai.azure.com"


def options(model: str = "gpt-4o", **told: Any) -> ChatOptions:
    settings = OpenAIChatSettings(**told)
    return options_of(settings, model, "target", tokens_of(settings))


# Where it is, and how it signs in -----------------------------------------------------------------------------


def test_without_an_azure_endpoint_it_is_the_openai_api() -> None:
    found = options(openai_api_key="public", azure_openai_api_key="azure")
    assert (found.base_url, found.api_key, found.azure_api_version) == ("https://api.openai.com/v1", "public", "")
    assert found.needs_key and found.token is None and found.lists_models
    elsewhere = options(openai_base_url="http://127.0.0.1:8000/v1/chat/completions")
    assert (elsewhere.base_url, elsewhere.needs_key) == ("http://127.0.0.1:8000/v1", False)


def test_an_azure_endpoint_gets_its_own_key_only() -> None:
    found = options(openai_api_key="public", azure_openai_api_key="azure", azure_openai_endpoint=f"{AZURE}/")
    assert (found.base_url, found.api_key) == (f"{AZURE}/openai", "azure")
    assert found.azure_api_version == "2024-12-01-preview"
    found = options("gpt-5.5", azure_openai_api_key="azure", azure_openai_endpoint=AZURE)
    assert (found.api, found.azure_api_version) == ("responses", "2025-04-01-preview"), "the older one has no Responses"
    found = options(azure_openai_api_key="k", azure_openai_endpoint=AZURE, azure_openai_api_version="2024-10-21")
    assert found.azure_api_version == "2024-10-21"


@pytest.mark.parametrize(
    "pasted",
    [
        AZURE, f"{AZURE}/", f" {AZURE}/openai ", f"{AZURE}/openai/",
        f"{AZURE}/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21", f"{AZURE}/openai/responses",
    ],
)  # fmt: skip
def test_an_endpoint_as_people_paste_it(pasted: str) -> None:
    assert options(azure_openai_api_key="k", azure_openai_endpoint=pasted).base_url == f"{AZURE}/openai"


def test_azure_s_newer_address_is_asked_like_the_openai_api() -> None:
    found = options(azure_openai_api_key="k", azure_openai_endpoint=f"{AZURE}/openai/v1/")
    assert (found.base_url, found.azure_api_version) == (f"{AZURE}/openai/v1", "")


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("api_key", "api_key"), ("KEY", "api_key"), ("azure_cli", "azure_cli"),
        (" Managed_Identity ", "managed_identity"),
        ("aad", "managed_identity"), ("azure_ad", "managed_identity"), ("openai_compatible", "openai_compatible"),
        ("compat", "openai_compatible"), ("openai", "openai_compatible"), ("", "azure_cli"),
    ],
)  # fmt: skip
def test_the_modes_and_their_aliases(written: str, mode: str) -> None:
    settings = OpenAIChatSettings(azure_openai_endpoint=AZURE, azure_openai_auth_mode=written)
    assert settings.mode == mode
    assert (tokens_of(settings) is not None) == (mode in ("azure_cli", "managed_identity"))


def test_a_key_is_used_where_one_is_set() -> None:
    assert OpenAIChatSettings(azure_openai_endpoint=AZURE, azure_openai_api_key="k").mode == "api_key"
    named = OpenAIChatSettings(
        azure_openai_endpoint=AZURE, azure_openai_api_key="k", azure_openai_auth_mode="azure_cli"
    )
    assert named.mode == "azure_cli"


def test_an_endpoint_that_is_not_azure() -> None:
    found = options(azure_openai_endpoint="http://127.0.0.1:1/v1", azure_openai_auth_mode="compat")
    assert (found.base_url, found.azure_api_version, found.needs_key) == ("http://127.0.0.1:1/v1", "", False)


@pytest.mark.parametrize(
    ("told", "part"),
    [
        ({"azure_openai_auth_mode": "azure_cli"}, "AZURE_OPENAI_ENDPOINT"),
        ({"azure_openai_auth_mode": "api_key"}, "no endpoint is named"),
        ({"azure_openai_endpoint": "http://my-resource.openai.azure.com"}, "https addresses of Azure only"),
        (
            {"azure_openai_endpoint": "https://example.com", "azure_openai_auth_mode": "aad"},
            "not to 'https://example.com'",
        ),
        ({"azure_openai_endpoint": "http://127.0.0.1:9/v1"}, "openai_compatible for an endpoint that is not Azure"),
    ],
)
def test_what_cannot_be_is_refused_when_it_is_read(told: dict[str, Any], part: str) -> None:
    with pytest.raises(ConfigError, match=part) as caught:
        load_config({"model": {"backend": "openai", **told}}, environ={})
    assert len(caught.value.problems) == 1, "what holds for three roles is told once"


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        (
            "azure_openai_auth_mode",
            "password",
            "expected one of api_key, azure_cli, managed_identity, openai_compatible",
        ),
        ("azure_openai_endpoint", "my-resource", "must be an address"),
        ("openai_base_url", "ftp://a", "must be an address"),
        ("openai_base_url", "https://a/v1?key=b", "leave out what begins with"),
        ("openai_chat_api", "completions", "expected one of auto, chat_completions, responses"),
        ("openai_chat_timeout_seconds", 0, "must be greater than 0"),
        ("openai_chat_max_tokens", 0, "must be greater than 0"),
        ("openai_chat_temperature", 3, "from 0 to 2"),
        ("openai_chat_endpoint", "x", "is no key"),
        ("azure_openai_key", "x", "azure_openai_api_key"),
    ],
)
def test_a_wrong_value_is_told_with_its_key(key: str, value: Any, part: str) -> None:
    with pytest.raises(ConfigError, match=part) as caught:
        load_config({"model": {"backend": "openai", key: value}}, environ={})
    assert f"model.{key}" in str(caught.value)


# By role ----------------------------------------------------------------------------------------------------


def resolved(model: dict[str, Any], environ: dict[str, str]) -> dict[str, OpenAIChatSettings]:
    config = load_config({"model": {"backend": "openai", **model}}, environ=environ)
    return {role: choice.settings for role, choice in config.backends.items()}


def test_the_variables_of_the_openai_api() -> None:
    found = resolved({}, {"OPENAI_API_KEY": "shared", "TARGET_OPENAI_API_KEY": "own", "OPENAI_BASE_URL": "http://h/v1"})
    assert {role: each.openai_api_key for role, each in found.items()} == {
        "optimizer": "shared", "target": "own", "judge": "shared",
    }  # fmt: skip
    assert found["target"].openai_base_url == "http://h/v1"


@pytest.mark.parametrize(
    "suffix", ["endpoint", "api_version", "api_key", "auth_mode", "ad_scope", "managed_identity_client_id"]
)
def test_each_setting_of_azure_is_taken_from_the_nearest_place(suffix: str) -> None:
    field, upper = f"azure_openai_{suffix}", suffix.upper()
    value = {"endpoint": "https://{}.openai.azure.com", "auth_mode": "api_key"}.get(suffix, "{}-value")
    places = [  # the farthest first
        ({}, {f"AZURE_OPENAI_{upper}": value.format("shared-variable")}),
        ({}, {f"AZURE_OPENAI_TARGET_{upper}": value.format("other-variable")}),
        ({}, {f"TARGET_AZURE_OPENAI_{upper}": value.format("role-variable")}),
        ({field: value.format("shared-key")}, {}),
        ({f"target_{field}": value.format("role-key")}, {}),
    ]
    base = {} if suffix == "endpoint" else {"azure_openai_endpoint": AZURE}
    model: dict[str, Any] = {**base, "azure_openai_api_key": "k"} if suffix != "api_key" else base
    environ: dict[str, str] = {}
    for written, variables in places:
        model, environ = {**model, **written}, {**environ, **variables}
        (expected,) = [*written.values(), *variables.values()]
        assert getattr(resolved(model, environ)["target"], field) == expected


def test_a_variable_of_one_role_is_no_other_role_s() -> None:
    found = resolved({}, {"AZURE_OPENAI_OPTIMIZER_ENDPOINT": AZURE, "OPTIMIZER_AZURE_OPENAI_API_KEY": "k"})
    assert (found["optimizer"].endpoint, found["target"].endpoint) == (AZURE, "")
    assert found["judge"].endpoint == AZURE, "the judge asks where the optimizer asks"


def test_the_model_where_nothing_names_one() -> None:
    config = load_config({"model": {"backend": "azure"}}, environ={})
    assert {choice.model for choice in config.backends.values()} == {"gpt-4o"}
    config = load_config({"model": {"backend": "azure"}}, environ={"TARGET_DEPLOYMENT": "mine"})
    assert config.backends["target"].model == "mine"


def test_the_older_names_of_azure_s_keys() -> None:
    config = load_config({"backend": "azure", "azure_endpoint": AZURE, "azure_api_key": "key-0123456789"}, environ={})
    assert config.backends["target"].settings.endpoint == AZURE
    assert len(config.warnings) == 2, "one for each"
