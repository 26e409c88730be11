"""The thinking policy and the other settings, and what of them reaches the wire."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from skillopt_backend_qwen_chat.backend import make_backend
from skillopt_backend_qwen_chat.settings import QwenChatSettings, thinking_of
from skillopt_kernel.config import load_config
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Message, Tool
from skillopt_testkit.servers import ChatServer, Reply

CONTEXT = DriverContext(logging.getLogger("test"))


def called(reply: Reply | str = "fine", *, request: ChatRequest | None = None, **told: Any) -> tuple[ChatReply, Any]:
    """The reply and what the server got."""
    with ChatServer([reply]) as server:
        backend = make_backend(QwenChatSettings(base_url=server.url, **told), CONTEXT)
        found = backend.open_chat("target").complete(request or ChatRequest((Message("user", "hello"),)))
        backend.close()
        return found, server.requests[0]


def body(**told: Any) -> dict[str, Any]:
    return dict(called(**told)[1].body)


def test_what_is_sent_when_nothing_is_set() -> None:
    _, received = called()
    assert received.body == {
        "model": "Qwen/Qwen3.5-4B", "messages": [{"role": "user", "content": "hello"}], "temperature": 0.7,
    }  # fmt: skip
    assert received.headers["authorization"] == "Bearer dummy", "a server without keys is not bothered with one"


@pytest.mark.parametrize(
    ("spellings", "policy"),
    [
        (("", " ", "server_default", "unset", "AUTO", "none", "null"), "server_default"),
        (("enabled", "true", "Yes", "on", "1"), "enabled"),
        (("disabled", "false", "no", "OFF", "0"), "disabled"),
    ],
)
def test_the_three_states_however_they_are_spelt(spellings: tuple[str, ...], policy: str) -> None:
    assert {thinking_of(spelling) for spelling in spellings} == {policy}


@pytest.mark.parametrize(
    ("told", "sent"),
    [
        ({}, None), ({"thinking_mode": "server_default"}, None), ({"thinking_mode": "enabled"}, True),
        ({"thinking_mode": "disabled"}, False), ({"enable_thinking": True}, True), ({"enable_thinking": False}, None),
        ({"enable_thinking": True, "thinking_mode": "on"}, True),
        ({"enable_thinking": False, "thinking_mode": "disabled"}, False),
        ({"enable_thinking": False, "thinking_mode": "server_default"}, None),
    ],
)  # fmt: skip
def test_the_policy_on_the_wire(told: dict[str, Any], sent: bool | None) -> None:
    expected = None if sent is None else {"enable_thinking": sent}
    assert body(**told).get("chat_template_kwargs") == expected


@pytest.mark.parametrize(("enable", "mode"), [("true", "disabled"), ("true", "server_default"), ("false", "enabled")])
def test_settings_that_contradict_each_other_are_refused(enable: str, mode: str) -> None:
    model = {"qwen_chat_enable_thinking": enable == "true", "qwen_chat_thinking_mode": mode}
    with pytest.raises(ConfigError, match=f"is {mode} and qwen_chat_enable_thinking {enable}, which contradict"):
        load_config({"model": {"backend": "qwen", "optimizer_backend": "qwen", **model}}, environ={})


@pytest.mark.parametrize(
    ("key", "value", "part"),
    [
        ("thinking_mode", "sometimes", "expected one of server_default, enabled, disabled, got 'sometimes'"),
        ("temperature", "warm", "expected a number from 0 to 2, or off"),
        ("temperature", 2.5, "from 0 to 2"),
        ("base_url", "localhost:8000", "must be an address"),
        ("base_url", "", None),
        ("max_tokens", 0, "must be greater than 0"),
    ],
)
def test_a_wrong_value_is_told_with_its_key(key: str, value: Any, part: str | None) -> None:
    model = {"backend": "qwen", "optimizer_backend": "qwen", f"qwen_chat_{key}": value}
    if part is None:  # empty: not set
        assert load_config({"model": model}, environ={}).backends["target"].settings == QwenChatSettings()
        return
    with pytest.raises(ConfigError, match=part) as caught:
        load_config({"model": model}, environ={})
    assert f"model.qwen_chat_{key}" in str(caught.value)


def test_a_variable_holds_where_the_file_says_nothing() -> None:
    """The earlier system's own defaults overruled the variables, and a role's empty key the shared one."""
    environ = {"QWEN_CHAT_THINKING_MODE": "disabled", "TARGET_QWEN_CHAT_TEMPERATURE": "off", "QWEN_CHAT_MODEL": "q"}
    model = {"backend": "qwen", "optimizer_backend": "qwen", "target_qwen_chat_thinking_mode": ""}
    found = load_config({"model": model}, environ=environ).backends
    assert {role: choice.settings.thinking for role, choice in found.items()} == dict.fromkeys(found, "disabled")
    assert (found["target"].settings.temperature, found["optimizer"].settings.temperature) == ("off", 0.7)
    assert found["target"].model == "q"
    found = load_config({"model": {**model, "qwen_chat_thinking_mode": True}}, environ=environ).backends
    assert found["target"].settings.thinking == "enabled"


def test_a_temperature_that_is_off_is_not_sent() -> None:
    assert "temperature" not in body(temperature="off")
    assert body(temperature=0.0)["temperature"] == 0.0


def test_an_optimizer_s_long_reply_is_asked_for_in_full() -> None:
    """The earlier system cut every reply at 8,000 tokens."""
    asked = ChatRequest((Message("user", "hello"),), max_tokens=64_000, effort="high")
    sent = called(request=asked)[1].body
    assert sent["max_tokens"] == 64_000
    assert "reasoning_effort" not in sent, "Qwen models know none"
    assert called(request=asked, use_max_completion_tokens=True)[1].body["max_completion_tokens"] == 64_000
    assert called(request=asked, max_tokens=8_000)[1].body["max_tokens"] == 8_000


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"content": "<think>\nso\n</think>\n\nfour"}, "four"),
        ({"content": "four", "reasoning_content": "so"}, "four"),
        ({"content": "so</think>four"}, "four"),
    ],
)
def test_what_it_thinks_is_kept_apart(message: dict[str, Any], words: str) -> None:
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}]}
    reply, _ = called(Reply(body=json.dumps(answer).encode()))
    assert (reply.text, reply.reasoning, reply.finish) == (words, "so", "stop")


def test_thinking_that_was_cut_off_is_no_answer() -> None:
    reply, _ = called(Reply("<think>and then", finish_reason="length"))
    assert (reply.text, reply.finish) == ("", "length")


def test_tools_are_sent_without_what_a_strict_gateway_may_reject() -> None:
    tool = Tool("look", "Look.", {"type": "object"})
    sent = called(request=ChatRequest((Message("user", "hello"),), tools=(tool,)))[1].body
    assert set(sent) == {"model", "messages", "temperature", "tools"}


def test_the_check_warns_of_a_policy_that_nobody_chose() -> None:
    with ChatServer(models=("Qwen/Qwen3.5-4B",)) as server:
        for mode, warned in (("", True), ("disabled", False)):
            settings = QwenChatSettings(base_url=server.url, api_key="k", thinking_mode=mode)
            findings = make_backend(settings, CONTEXT).check("target")
            assert [kind for kind, _ in findings] == (["ok", "warning"] if warned else ["ok"])
