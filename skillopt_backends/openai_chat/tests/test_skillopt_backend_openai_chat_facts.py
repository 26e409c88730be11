"""What is known of models, and what of it reaches the wire."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from skillopt_backend_openai_chat.backend import make_backend
from skillopt_backend_openai_chat.facts import ModelFacts, facts_of, takes_tokens
from skillopt_backend_openai_chat.settings import OpenAIChatSettings
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import ChatRequest, Message, Tool
from skillopt_testkit.servers import ChatServer, Received

LOOK = Tool("look", "Look.", {"type": "object", "properties": {}})
TO_HIGH, TO_XHIGH, TO_MAX = (
    ("low", "medium", "high"), ("low", "medium", "high", "xhigh"), ("low", "medium", "high", "xhigh", "max"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("model", "api", "efforts"),
    [
        ("gpt-4o", "chat_completions", ()), ("gpt-4o-2024-11-20", "chat_completions", ()),
        ("gpt-4.1-mini", "chat_completions", ()), ("gpt-3.5-turbo", "chat_completions", ()),
        ("o3-mini", "chat_completions", TO_HIGH), ("o1-preview", "chat_completions", ()),
        ("gpt-5", "chat_completions", TO_HIGH), ("gpt-5-mini-2025-08-07", "chat_completions", TO_HIGH),
        ("gpt-5-chat-latest", "chat_completions", ()), ("gpt-5.1", "chat_completions", TO_HIGH),
        ("gpt-5.2", "chat_completions", TO_XHIGH), ("gpt-5.2-chat-latest", "chat_completions", ()),
        ("gpt-5-codex", "responses", TO_HIGH), ("gpt-5.1-codex", "responses", TO_HIGH),
        ("gpt-5.1-codex-max", "responses", TO_XHIGH), ("gpt-5.3-codex", "responses", TO_XHIGH),
        ("codex-mini-latest", "responses", TO_HIGH), ("o3-pro", "responses", TO_HIGH),
        ("o3-deep-research", "responses", ("medium",)), ("gpt-5-pro-2025-10-06", "responses", ("high",)),
        ("gpt-5.4-pro", "responses", ("medium", "high", "xhigh")), ("gpt-5.4", "responses", TO_XHIGH),
        ("gpt-5.5-2026-04-23", "responses", TO_XHIGH), ("gpt-5.6-sol", "responses", TO_MAX),
        ("gpt-6.1-terra", "responses", TO_MAX), ("openai/GPT-5", "chat_completions", TO_HIGH),
        ("ft:gpt-4o-2024-08-06:acme::1", "chat_completions", ()), ("my-deployment", "chat_completions", ()),
    ],
)  # fmt: skip
def test_what_models_can_do(model: str, api: str, efforts: tuple[str, ...]) -> None:
    found = facts_of(model)
    assert (found.api, found.efforts) == (api, efforts)
    assert found.temperature is (not efforts and model not in ("o1-preview",) and "chat-latest" not in model)


def test_a_model_that_nobody_knows_is_asked_for_the_least() -> None:
    assert facts_of("my-deployment") == ModelFacts("chat_completions", (), True)


def sent(model: str, effort: str | None = "medium", *, tools: tuple[Tool, ...] = (), **told: Any) -> Received:
    """What the server gets for one call of the model."""
    with ChatServer() as server:
        settings = OpenAIChatSettings(openai_base_url=server.url, openai_api_key="key", **told)
        backend = make_backend(settings, DriverContext(logging.getLogger("test"), model=model))
        request = ChatRequest((Message("user", "hello"),), tools=tools, effort=effort, max_tokens=16_384)
        backend.open_chat("optimizer").complete(request)
        backend.close()
        return server.requests[0]


def test_an_effort_is_not_sent_to_a_model_that_rejects_it() -> None:
    body = sent("gpt-4o").body
    assert "reasoning_effort" not in body and "reasoning" not in body
    assert body["max_completion_tokens"] == 16_384


@pytest.mark.parametrize(
    ("model", "asked", "level"), [("gpt-5", "medium", "medium"), ("gpt-5", "max", "high"), ("gpt-5", "", None)]
)
def test_an_effort_as_chat_completions_have_it(model: str, asked: str, level: str | None) -> None:
    assert sent(model, asked).body.get("reasoning_effort") == level


@pytest.mark.parametrize(
    ("model", "asked", "level"),
    [("gpt-5.5", "xhigh", "xhigh"), ("gpt-5.6-sol", "max", "max"), ("gpt-5-pro", "low", "high")],
)
def test_an_effort_as_responses_have_it(model: str, asked: str, level: str) -> None:
    """Tools beside an effort are what Chat Completions reject for these models, so they are not asked through it."""
    received = sent(model, asked, tools=(LOOK,))
    assert received.path == "/v1/responses"
    assert received.body["reasoning"] == {"effort": level}
    assert received.body["max_output_tokens"] == 16_384


@pytest.mark.parametrize(("api", "path"), [("chat_completions", "chat/completions"), ("responses", "responses")])
def test_the_api_can_be_forced(api: str, path: str) -> None:
    for model in ("gpt-4o", "gpt-5.3-codex"):
        assert sent(model, openai_chat_api=api).path == f"/v1/{path}"


def test_a_deployment_is_the_model_that_it_is_said_to_be() -> None:
    assert sent("team-a", openai_chat_base_model="gpt-5.3-codex").path == "/v1/responses"
    body = sent("team-a", "high", openai_chat_base_model="o3").body
    assert (body["model"], body["reasoning_effort"]) == ("team-a", "high")


def test_a_temperature_is_sent_to_models_that_take_one() -> None:
    assert sent("gpt-4o", openai_chat_temperature=0.5).body["temperature"] == 0.5
    assert "temperature" not in sent("gpt-5", openai_chat_temperature=0.5).body


@pytest.mark.parametrize(
    ("address", "taken"),
    [
        ("https://a.openai.azure.com", True), ("https://A.OpenAI.Azure.com/openai/v1", True),
        ("https://a.cognitiveservices.azure.com/", True), ("https://gateway.azure-api.net/x", True),
        ("http://a.openai.azure.com", False), ("https://a.openai.azure.com.evil.example", False),
        ("https://evil.example/.openai.azure.com", False), ("https://a.openai.azure.com@evil.example", False),
        ("https://evilopenai.azure.com", False), ("https://api.openai.com/v1", False), ("", False),
    ],
)  # fmt: skip
def test_a_token_goes_to_azure_only(address: str, taken: bool) -> None:
    assert takes_tokens(address) is taken
