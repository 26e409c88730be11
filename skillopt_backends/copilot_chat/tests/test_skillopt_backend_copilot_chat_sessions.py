"""What the endpoint receives of a call through Copilot: the whole conversation, no tools, nothing of the operator's."""

from __future__ import annotations

import base64
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from skillopt_backend_copilot_chat.backend import CopilotChatBackend, make_backend
from skillopt_backend_copilot_chat.settings import CopilotChatSettings
from skillopt_kernel.errors import CallTimeout, ConfigError, PassingError, PermanentError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.requests import ChatRequest, ImagePart, Message, TextPart, Tool
from skillopt_kernel.records import ToolCall
from skillopt_lib_copilot.program import NEEDED, cache_folder
from skillopt_testkit import ChatServer, Reply
from skillopt_testkit.programs import stand_in, write_program

KEY = "sk-copilot-0123456789abcdef"
PIXEL = bytes.fromhex("89504e470d0a1a0a")
ASKED = (Message("system", "Answer in few words."), Message("user", "Say ok."))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stand_in(tmp_path_factory.mktemp("programs"), "copilot")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(["ok"]) as server:
        yield server


@pytest.fixture
def backend(program: Path, server: ChatServer) -> Callable[..., CopilotChatBackend]:
    def make(**settings: Any) -> CopilotChatBackend:
        told = {"copilot_exec_path": str(program), "copilot_provider_base_url": server.url, **settings}
        context = DriverContext(logging.getLogger("skillopt.test"), model=told.pop("model", "any"))
        return make_backend(CopilotChatSettings(copilot_provider_api_key=KEY, **told), context)

    return make


def sent(server: ChatServer) -> tuple[str, str]:
    """The instructions and the user's message of the one request."""
    (received,) = server.requests
    system, user = (message["content"] for message in received.body["messages"])
    return system, user if isinstance(user, str) else "".join(part.get("text", "") for part in user)


def test_no_tool_reaches_the_model(backend, server) -> None:
    backend().open_chat("target").complete(ChatRequest(ASKED))
    (received,) = server.requests
    assert "tools" not in received.body
    assert received.headers["authorization"] == f"Bearer {KEY}"


def test_long_texts_of_any_language_arrive_whole(backend, server) -> None:
    """O-W2: neither prompt nor skill is on the command line, and UTF-8 is pinned."""
    skill, question = "Regel: é 経費 🙂\n" * 3000, "Wörter 🙂 " * 8000
    backend().open_chat("target").complete(ChatRequest((Message("system", skill), Message("user", question))))
    system, user = sent(server)
    assert skill.strip() in system
    assert question.strip() in user


def test_a_conversation_arrives_in_order_with_who_said_what(backend, server) -> None:
    said = [("system", "Be brief."), ("user", "Which city?"), ("assistant", "Paris."), ("user", "And which river?")]
    messages = tuple(Message(role, text) for role, text in said)
    backend().open_chat("target").complete(ChatRequest(messages))
    system, user = sent(server)
    assert "Be brief." in system
    places = [user.index(words) for _, words in said[1:]]
    assert places == sorted(places)
    assert "assistant" in user[places[0] : places[1]].casefold()


def test_images_are_attached(backend, server) -> None:
    content = (TextPart("What is it?"), ImagePart(PIXEL, "image/png"))
    backend().open_chat("target").complete(ChatRequest((Message("user", content),)))
    (received,) = server.requests
    images = [part["image_url"]["url"] for part in received.body["messages"][-1]["content"] if "image_url" in part]
    assert images == [f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"]


LOOK = Tool("look", "Look at something.", {"type": "object", "properties": {"at": {"type": "string"}}})
CALLED = '{"content": "", "tool_calls": [{"name": "look", "arguments": "{\\"at\\": \\"sky\\"}"}]}'


@pytest.mark.parametrize("said", [CALLED, f"I look.\n\n```json\n{CALLED}\n```"])
def test_tools_of_a_request_are_told_of_and_asked_for_in_words(backend, server, said: str) -> None:
    server.script = lambda _: Reply(said)
    reply = backend().open_chat("target").complete(ChatRequest(ASKED, tools=(LOOK,)))
    assert (reply.finish, reply.tool_calls) == ("tool_calls", (ToolCall("call_0", "look", '{"at": "sky"}'),))
    assert "tools" not in server.requests[0].body
    assert "Look at something." in sent(server)[0]


def test_effort_and_the_limit_of_a_reply_are_sent(backend, server) -> None:
    request = ChatRequest(ASKED, effort="high", max_tokens=77)
    backend().open_chat("optimizer").complete(request)
    backend(copilot_chat_send_effort=False).open_chat("optimizer").complete(request)
    first, second = (received.body for received in server.requests)
    assert (first["reasoning_effort"], first["max_tokens"]) == ("high", 77)
    assert "reasoning_effort" not in second


def test_use_is_told_with_what_was_cached_and_thought(backend, server) -> None:
    usage = {
        "prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 60}, "completion_tokens_details": {"reasoning_tokens": 7},
    }  # fmt: skip
    server.script = lambda _: Reply("fine", usage=usage)
    used = backend().open_chat("target").complete(ChatRequest(ASKED)).usage
    assert (used.prompt_tokens, used.completion_tokens, used.cached_tokens, used.reasoning_tokens) == (100, 20, 60, 7)
    server.script = lambda _: Reply("fine", usage=None)
    used = backend().open_chat("target").complete(ChatRequest(ASKED)).usage
    assert (used.prompt_tokens, used.unknown_calls) == (None, 1)


@pytest.mark.parametrize(
    ("reply", "finish", "text"),
    [
        (Reply("the end", finish_reason="length"), "length", "the end"),
        (Reply("", finish_reason="content_filter"), "filtered", ""),
        (Reply(""), "empty", ""),
    ],
)
def test_how_a_reply_ended(backend, server, reply: Reply, finish: str, text: str) -> None:
    server.script = lambda _: reply
    found = backend().open_chat("optimizer").complete(ChatRequest(ASKED))
    assert (found.finish, found.text) == (finish, text)


def test_the_program_obeys_a_wait_that_the_endpoint_asks_for(program: Path) -> None:
    limited = Reply("slow down", status=429, headers={"Retry-After": "0.1"})
    with ChatServer([limited, "ok"]) as server:
        told = CopilotChatSettings(copilot_exec_path=str(program), copilot_provider_base_url=server.url)
        made = make_backend(told, DriverContext(logging.getLogger("skillopt.test"), model="any"))
        assert made.open_chat("target").complete(ChatRequest(ASKED)).text == "ok"
        assert len(server.requests) == 2
    with ChatServer([limited]) as server:
        told = CopilotChatSettings(copilot_exec_path=str(program), copilot_provider_base_url=server.url)
        made = make_backend(told, DriverContext(logging.getLogger("skillopt.test"), model="any"))
        with pytest.raises(PassingError) as caught:
            made.open_chat("target").complete(ChatRequest(ASKED))
    assert caught.value.overloaded


TELLING = """
import json, os, sys
if "--version" in sys.argv: print("GitHub Copilot CLI 1.0.102."); sys.exit()
if "--help" in sys.argv: print({flags!r}); sys.exit()
home = os.environ["HOME"]
seen = sorted(os.path.relpath(os.path.join(folder, name), home) for folder, _, names in os.walk(home) for name in names)
told = {{"variables": dict(os.environ), "arguments": sys.argv[1:], "folder": sorted(os.listdir(".")), "home": seen}}
told["config"] = open(home + "/.copilot/config.json").read() if ".copilot/config.json" in seen else ""
told["instructions"] = open(home + "/.copilot/copilot-instructions.md").read()
content = json.dumps(told)
print(json.dumps({{"type": "model.call_finished", "data": {{"turnId": "0", "outcome": "success"}}}}))
print(json.dumps({{"type": "assistant.message", "data": {{"turnId": "0", "content": content, "toolRequests": []}}}}))
print(json.dumps({{"type": "result", "exitCode": 0}}))
"""
"""A program that answers with what it sees."""


def surroundings(tmp_path: Path, **settings: Any) -> Any:
    telling = write_program(tmp_path / "telling", "copilot", TELLING.format(flags=" ".join(NEEDED)))
    told = CopilotChatSettings(copilot_exec_path=str(telling), **settings)
    made = make_backend(told, DriverContext(logging.getLogger("skillopt.test"), model="any"))
    return json.loads(made.open_chat("target").complete(ChatRequest(ASKED)).text)


def test_the_program_gets_a_home_of_its_own_and_no_variable_of_the_operators(tmp_path: Path, monkeypatch) -> None:
    """O-X3, O-X4: no credential beside its own, and no switch that would allow it everything."""
    for name in ("COPILOT_ALLOW_ALL", "OPENAI_API_KEY", "GITHUB_TOKEN", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"):
        monkeypatch.setenv(name, "true")
    endpoint = {"copilot_provider_base_url": "http://127.0.0.1:9/v1", "copilot_provider_api_key": KEY}
    seen = surroundings(tmp_path, **endpoint)
    variables = seen["variables"]
    assert not {"COPILOT_ALLOW_ALL", "OPENAI_API_KEY", "GITHUB_TOKEN", "COPILOT_CUSTOM_INSTRUCTIONS_DIRS"} & set(
        variables
    )
    assert variables["HOME"] != str(Path.home())
    assert (variables["COPILOT_OFFLINE"], variables["COPILOT_PROVIDER_API_KEY"]) == ("true", KEY)
    assert "COPILOT_GITHUB_TOKEN" not in variables and "COPILOT_PROVIDER_BEARER_TOKEN" not in variables
    assert variables["COPILOT_AUTO_UPDATE"] == "false"
    assert not seen["folder"] and seen["home"] == [".copilot/copilot-instructions.md"]
    assert KEY not in " ".join(seen["arguments"])
    assert "--available-tools=none" in seen["arguments"]
    assert not [word for word in seen["arguments"] if word.startswith("--allow-")]


def test_of_a_home_that_is_signed_in_only_the_sign_in_is_used(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "skills" / "mine").mkdir(parents=True)
    (home / "skills" / "mine" / "SKILL.md").write_text("mine", "utf-8")
    (home / "copilot-instructions.md").write_text("mine", "utf-8")
    (home / "config.json").write_text('{"loggedInUsers": []}', "utf-8")
    seen = surroundings(tmp_path, copilot_exec_home=home, copilot_github_token="ghp-0123456789abcdef")
    assert seen["home"] == [".copilot/config.json", ".copilot/copilot-instructions.md"]
    assert seen["config"] == '{"loggedInUsers": []}'
    assert "mine" not in seen["instructions"] and "Answer in few words." in seen["instructions"]
    assert seen["variables"]["COPILOT_GITHUB_TOKEN"] == "ghp-0123456789abcdef"
    assert "COPILOT_OFFLINE" not in seen["variables"] and "COPILOT_PROVIDER_BASE_URL" not in seen["variables"]


def findings(backend: CopilotChatBackend) -> list[str]:
    return [sentence for severity, sentence in backend.check("target") if severity == "error"]


def test_what_is_wrong_is_told_before_anything_is_spent(backend, tmp_path: Path, server) -> None:
    assert findings(backend()) == []
    (missing,) = findings(backend(copilot_exec_path=str(tmp_path / "nowhere")))
    assert "npm install -g @github/copilot" in missing and "model.copilot_exec_path" in missing
    (unnamed,) = findings(backend(model=""))
    assert "no model is named" in unnamed
    (no_home,) = findings(backend(copilot_provider_base_url="", copilot_exec_home=tmp_path))
    assert "is no home of Copilot" in no_home
    (old,) = findings(backend(copilot_exec_path=str(stand_in(tmp_path / "old", "copilot", "old"))))
    assert "does not have --usage-output-file" in old
    assert not server.requests


@pytest.mark.parametrize("settings", [{"copilot_github_token": "ghp-0123456789abcdef"}, {"copilot_exec_home": "home"}])
def test_a_check_says_how_the_program_signs_in(backend, tmp_path: Path, settings: dict[str, Any]) -> None:
    (tmp_path / "config.json").write_text("{}", "utf-8")
    told = settings | ({"copilot_exec_home": tmp_path} if "copilot_exec_home" in settings else {})
    assert findings(backend(copilot_provider_base_url="", **told)) == []
    (unsigned,) = findings(backend(copilot_provider_base_url=""))
    assert "COPILOT_GITHUB_TOKEN" in unsigned and "model.copilot_exec_home" in unsigned


def test_the_cache_is_shared_where_one_can_be_made(tmp_path: Path) -> None:
    variable = "LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME"
    found = cache_folder({variable: str(tmp_path / "cache")})
    assert found == tmp_path / "cache" / "skillopt" / "copilot"
    assert not found.exists(), "the program makes it when it is first run"


def test_a_program_that_is_not_signed_in_ends_the_run_with_what_to_do(backend) -> None:
    with pytest.raises(PermanentError, match="COPILOT_GITHUB_TOKEN"):
        backend(copilot_provider_base_url="").open_chat("target").complete(ChatRequest(ASKED))


def test_a_call_whose_time_is_over_is_not_begun(backend, server) -> None:
    with pytest.raises(CallTimeout, match="before it was begun"):
        backend().open_chat("target").complete(ChatRequest(ASKED, deadline=time.monotonic() - 1))
    assert not server.requests


def test_it_is_no_agent(backend) -> None:
    with pytest.raises(ConfigError, match="copilot_exec"):
        backend().open_agent("target")


@pytest.mark.parametrize(
    "wrong",
    [
        {"copilot_chat_timeout": 0},
        {"copilot_provider_base_url": "127.0.0.1:8000"},
        {"copilot_provider_base_url": "http://"},
    ],
)
def test_settings_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must be"):
        CopilotChatSettings(**wrong)


def test_the_endpoint_is_named_without_what_may_be_secret_in_it() -> None:
    told = CopilotChatSettings(copilot_provider_base_url="https://user:word@host:8443/v1?key=1")
    assert told.endpoint == "https://host:8443/v1"
    assert CopilotChatSettings().endpoint == "copilot"


def test_the_end_of_the_run_ends_its_sessions(backend, server) -> None:
    asked, release = threading.Event(), threading.Event()

    def hold(_: object) -> str:
        asked.set()
        release.wait(120)
        return "late"

    server.script = hold
    made = backend()
    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(made.open_chat("target").complete, ChatRequest(ASKED))
        assert asked.wait(120)
        made.close()
        with pytest.raises(PassingError, match="the run is over"):
            under_way.result(timeout=120)
    release.set()
