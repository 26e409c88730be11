"""Keys and tokens on the wire: what is sent where, and what an error says of it."""

from __future__ import annotations

import base64
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from skillopt_kernel.errors import PassingError, PermanentError
from skillopt_kernel.models.requests import ChatRequest, Message
from skillopt_lib_chat.model import OpenAIChatModel
from skillopt_lib_chat.options import ChatOptions
from skillopt_testkit.servers import ChatServer, Reply

ASK = ChatRequest((Message("user", "hello"),))
TOKEN = "eyJ0b2tlbg.0123456789abcdef"
NAMES = {"api_key": "azure_openai_api_key", "base_url": "azure_openai_endpoint"}


def model(url: str, **told: Any) -> OpenAIChatModel:
    return OpenAIChatModel(ChatOptions("my deployment", url, "target", "openai_chat_", names=NAMES, **told))


@pytest.mark.parametrize("version", ["", "2025-04-01-preview"])
def test_a_token_is_asked_for_before_each_call_and_sent_as_a_bearer(version: str) -> None:
    given = iter(("first-token", "second-token"))
    with ChatServer() as server:
        url = f"{server.root}/openai" if version else server.url
        made = model(url, token=lambda: next(given), azure_api_version=version)
        made.complete(ASK)
        made.complete(ASK)
        sent = [received.headers["authorization"] for received in server.requests]
    assert sent == ["Bearer first-token", "Bearer second-token"]
    assert all("api-key" not in received.headers for received in server.requests)


def test_azure_s_paths() -> None:
    with ChatServer() as server:
        root, version = f"{server.root}/openai", "2025-04-01-preview"
        model(root, api_key="azure-key", azure_api_version=version).complete(ASK)
        model(root, api_key="azure-key", azure_api_version=version, api="responses").complete(ASK)
        chat, responses = server.requests
        assert model(root, api_key="azure-key", azure_api_version=version, lists_models=False).check() == [
            ("ok", f"{root} answers; whether it has 'my deployment', only a call tells")
        ]
    assert chat.path == f"/openai/deployments/my%20deployment/chat/completions?api-version={version}"
    assert responses.path == f"/openai/responses?api-version={version}"
    assert responses.body["model"] == "my deployment"
    assert {chat.headers["api-key"], responses.headers["api-key"]} == {"azure-key"}
    assert "azure-key" not in chat.headers.get("authorization", "")


@pytest.mark.parametrize("status", [301, 307, 308])
def test_a_key_of_azure_goes_to_no_other_address_than_the_one_that_is_set(status: int) -> None:
    with ChatServer() as other:
        there = f"{other.root}/openai/responses"
        with ChatServer([Reply("moved", status=status, headers={"Location": f"{there}?sig=a"})]) as server:
            root = f"{server.root}/openai"
            with pytest.raises(PermanentError) as caught:
                model(root, api_key="azure-key", azure_api_version="v", api="responses").complete(ASK)
        assert other.requests == []
    assert f"{other.root}/openai, and no other" in str(caught.value) and "sig" not in str(caught.value)
    assert "AZURE_OPENAI_ENDPOINT" in str(caught.value)


@pytest.mark.parametrize("token", [None, lambda: TOKEN])
def test_a_call_that_is_sent_on_elsewhere_takes_neither_key_nor_token_along(token: Any) -> None:
    with ChatServer() as other:
        moved = Reply("moved", status=308, headers={"Location": f"{other.url}/chat/completions"})
        with ChatServer([moved]) as server:
            assert model(server.url, api_key="own-key-0123456789", token=token).complete(ASK).text == "ok"
        (received,) = other.requests
    assert received.body["model"] == "my deployment"
    assert "own-key-0123456789" not in repr(received) and TOKEN not in repr(received)


def test_a_login_in_the_address_is_sent_in_place_of_a_key_and_shown_nowhere() -> None:
    with ChatServer(["ok", Reply("broken", status=500)]) as server:
        made = model(server.url.replace("://", "://somebody:pass%20word@"))
        assert made.complete(ASK).text == "ok"
        with pytest.raises(PassingError) as caught:
            made.complete(ASK)
        basic = "Basic " + base64.b64encode(b"somebody:pass word").decode()
        assert [received.headers["authorization"] for received in server.requests] == [basic, basic]
    assert "somebody" not in str(caught.value) and "pass" not in str(caught.value)


def test_a_variable_of_the_client_s_own_reaches_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "OPENAI_ORG_ID",
                 "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):  # fmt: skip
        monkeypatch.setenv(name, "from-the-environment")
    with ChatServer() as server:
        model(server.url, api_key="own-key").complete(ASK)
        model(server.url).complete(ASK)
        model(f"{server.root}/openai", api_key="own-key", azure_api_version="v").complete(ASK)
        model(f"{server.root}/openai", token=lambda: TOKEN, azure_api_version="v").complete(ASK)
    assert not [each for each in server.requests if "from-the-environment" in repr(each)]


@pytest.mark.parametrize("status", [401, 403])
def test_a_rejected_token_says_how_to_sign_in_and_shows_no_token(status: int) -> None:
    with ChatServer([Reply(f"{TOKEN} is not welcome" if status == 401 else "no role", status=status)]) as server:
        made = model(server.url, token=lambda: TOKEN, sign_in="Run `az login`.")
        with pytest.raises(PermanentError) as caught:
            made.complete(ASK)
    assert "rejected the token" in str(caught.value) and str(caught.value).endswith("Run `az login`.")
    assert TOKEN not in str(caught.value)


def test_no_token_is_the_error_of_who_gives_it() -> None:
    def none() -> str:
        raise PermanentError("nobody is signed in. Run `az login`.")

    with ChatServer() as server:
        for version in ("", "v"):
            made = model(f"{server.root}/openai" if version else server.url, token=none, azure_api_version=version)
            with pytest.raises(PermanentError, match="nobody is signed in"):
                made.complete(ASK)
            assert made.check() == [("error", "nobody is signed in. Run `az login`.")]
        assert server.requests == []


def test_a_key_that_is_needed_and_missing_is_told_before_anything_is_sent() -> None:
    with ChatServer() as server:
        made = model(server.url, needs_key=True)
        with pytest.raises(PermanentError, match="TARGET_AZURE_OPENAI_API_KEY"):
            made.complete(ASK)
        ((kind, sentence),) = made.check()
        assert kind == "error" and "there is no key" in sentence
        assert server.requests == [] and server.connections == 0


def test_many_threads_share_what_gives_the_tokens() -> None:
    lock, asked = threading.Lock(), 0

    def token() -> str:
        nonlocal asked
        with lock:
            asked += 1
        return TOKEN

    with ChatServer() as server, ThreadPoolExecutor(16) as pool:
        made = model(server.url, token=token)
        assert list(pool.map(lambda _: made.complete(ASK).text, range(32))) == ["ok"] * 32
    assert asked == 32
    assert {received.headers["authorization"] for received in server.requests} == {f"Bearer {TOKEN}"}
