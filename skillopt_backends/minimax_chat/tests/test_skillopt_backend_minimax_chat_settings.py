"""Regions, models by role, thinking, and the platform's own way to say that something is wrong."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from skillopt_backend_minimax_chat.backend import make_backend
from skillopt_backend_minimax_chat.settings import MiniMaxChatSettings
from skillopt_kernel.config import load_config
from skillopt_kernel.errors import ConfigError, PassingError, PermanentError, RefusedError, RejectedRequest
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Message, Tool
from skillopt_testkit.servers import ChatServer, Reply

ASK = ChatRequest((Message("user", "hello"),), max_tokens=64_000, effort="high")
KEY = "minimax-key-0123456789"


def called(
    reply: Reply | str = "fine", *, model: str | None = None, request: ChatRequest = ASK, **told: Any
) -> tuple[ChatReply, Any]:
    """The reply and what the server got."""
    with ChatServer([reply]) as server:
        settings = MiniMaxChatSettings(base_url=server.url, api_key=KEY, **told)
        backend = make_backend(settings, DriverContext(logging.getLogger("test"), model=model))
        found = backend.open_chat("target").complete(request)
        backend.close()
        return found, server.requests[0]


def resolved(model: dict[str, Any], environ: dict[str, str]) -> Any:
    told = {"backend": "minimax", "optimizer_backend": "minimax", **model}
    return load_config({"model": told}, environ=environ).backends


def test_what_is_sent() -> None:
    _, received = called()
    assert received.body == {
        "model": "MiniMax-M3", "messages": [{"role": "user", "content": "hello"}], "max_completion_tokens": 64_000,
        "temperature": 0.7, "thinking": {"type": "disabled"}, "reasoning_split": True,
    }  # fmt: skip
    assert received.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(
    ("model", "enabled", "kind"),
    [
        ("MiniMax-M3", True, "adaptive"), ("MiniMax-M3", False, "disabled"), ("MiniMax-M2", False, "adaptive"),
        ("MiniMax-M2.7-highspeed", False, "adaptive"),
    ],
)  # fmt: skip
def test_thinking(model: str, enabled: bool, kind: str) -> None:
    assert called(model=model, enable_thinking=enabled)[1].body["thinking"] == {"type": kind}


def test_a_temperature_that_is_off_and_a_choice_that_is_none_are_not_sent() -> None:
    assert "temperature" not in called(temperature="off")[1].body
    tool = Tool("look", "Look.", {"type": "object"})
    sent = called(request=ChatRequest(ASK.messages, tools=(tool,)))[1].body
    assert "tools" in sent and "tool_choice" not in sent


def test_what_it_thinks_comes_apart_from_the_answer() -> None:
    message = {"content": "four", "reasoning_details": [{"type": "reasoning.text", "text": "so"}]}
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "base_resp": {"status_code": 0}}
    reply, _ = called(Reply(body=json.dumps(answer).encode()))
    assert (reply.text, reply.reasoning) == ("four", "so")


# Where it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("region", "address"),
    [
        ("", "https://api.minimax.io/v1"), ("global_en", "https://api.minimax.io/v1"),
        ("Global-EN", "https://api.minimax.io/v1"), ("cn_zh", "https://api.minimaxi.com/v1"),
        (" CN-zh ", "https://api.minimaxi.com/v1"),
    ],
)  # fmt: skip
def test_regions(region: str, address: str) -> None:
    assert MiniMaxChatSettings(region=region).address == address


def test_a_base_url_wins_over_the_region_wherever_each_is_set() -> None:
    elsewhere = {"MINIMAX_BASE_URL": "http://127.0.0.1:9/v1/"}
    found = resolved({"target_minimax_region": "cn_zh"}, elsewhere)
    assert found["target"].settings.address == "http://127.0.0.1:9/v1"
    found = resolved({"target_minimax_region": "cn-zh"}, {})
    assert {role: each.settings.address for role, each in found.items()} == {
        "optimizer": "https://api.minimax.io/v1", "target": "https://api.minimaxi.com/v1",
        "judge": "https://api.minimax.io/v1",
    }  # fmt: skip


def test_a_model_for_each_role() -> None:
    """The earlier system had one model for both roles, and its default overruled what the role named."""
    assert {each.model for each in resolved({}, {}).values()} == {"MiniMax-M3"}
    found = resolved({"optimizer_minimax_model": "MiniMax-M2.7", "target": "MiniMax-M3.1"}, {"MINIMAX_MODEL": "other"})
    assert {role: each.model for role, each in found.items()} == {
        "optimizer": "MiniMax-M2.7", "target": "MiniMax-M3.1", "judge": "MiniMax-M2.7",
    }  # fmt: skip


def test_numbers_that_older_files_hold_in_quotes() -> None:
    quoted = {"minimax_temperature": "0.3", "minimax_max_tokens": "900", "minimax_enable_thinking": "true"}
    settings = resolved(quoted, {})["target"].settings
    assert (settings.temperature, settings.max_tokens, settings.enable_thinking) == (0.3, 900, True)


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("region", "mars", "expected one of global_en, cn_zh, got 'mars'"),
        ("base_url", "api.minimax.io", "must be an address"),
        ("temperature", 9, "from 0 to 2"),
    ],
)
def test_a_wrong_value_is_told_with_its_key(key: str, value: Any, part: str) -> None:
    with pytest.raises(ConfigError, match=part) as caught:
        resolved({f"minimax_{key}": value}, {})
    assert f"model.minimax_{key}" in str(caught.value)


def test_a_missing_key_is_told_before_anything_is_sent() -> None:
    backend = make_backend(MiniMaxChatSettings(), DriverContext(logging.getLogger("test")))
    with pytest.raises(PermanentError, match="TARGET_MINIMAX_API_KEY"):
        backend.open_chat("target").complete(ASK)
    ((kind, sentence),) = backend.check("optimizer")
    assert kind == "error" and "OPTIMIZER_MINIMAX_API_KEY" in sentence


# Errors inside an answer of status 200 ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "kind", "part"),
    [
        (1002, PassingError, "rate limit"), (1041, PassingError, "1041"), (1000, PassingError, "1000"),
        (1004, PermanentError, "MINIMAX_API_KEY"), (2049, PermanentError, "MINIMAX_API_KEY"),
        (1008, PermanentError, "no credit or quota left"), (1026, RefusedError, "content policy"),
        (1027, RefusedError, "content policy"), (2013, RejectedRequest, "2013"), ("odd", PassingError, "odd"),
    ],
)  # fmt: skip
def test_the_platform_s_codes(code: Any, kind: type[Exception], part: str) -> None:
    answer = {"choices": None, "base_resp": {"status_code": code, "status_msg": "rate limit or so"}}
    with pytest.raises(kind, match=part) as caught:
        called(Reply(body=json.dumps(answer).encode()))
    assert KEY not in str(caught.value)
