import http.client
import json
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from skillopt_testkit.servers import ChatServer, Reply


def post(server: ChatServer, **body: object) -> dict:
    request = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body).encode(), {"X-Trace": "7"})
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.loads(response.read())


def text_of(answer: dict) -> str | None:
    return answer["choices"][0]["message"]["content"]


def test_replies_come_in_order_and_the_last_one_stays():
    with ChatServer(["one", Reply("two", finish_reason="length", usage=None)]) as server:
        answers = [post(server, model="m", messages=[]) for _ in range(3)]
    assert [text_of(answer) for answer in answers] == ["one", "two", "two"]
    assert answers[0]["usage"]["total_tokens"] == 15
    assert "usage" not in answers[1]
    assert answers[1]["choices"][0]["finish_reason"] == "length"
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].headers["x-trace"] == "7"
    assert server.requests[0].body["model"] == "m"


def test_a_function_answers_from_the_request():
    def script(body):
        return body["messages"][-1]["content"].upper()

    with ChatServer(script) as server, ThreadPoolExecutor(8) as pool:
        texts = [{"role": "user", "content": f"word {i}"} for i in range(20)]
        answers = list(pool.map(lambda message: text_of(post(server, messages=[message])), texts))
    assert answers == [f"WORD {i}" for i in range(20)]
    assert len(server.requests) == 20


def test_a_fault_has_its_status_and_headers():
    fault = Reply("slow down", status=429, headers={"Retry-After": "2"})
    with ChatServer([fault, "fine"]) as server:
        with pytest.raises(urllib.error.HTTPError) as caught:
            post(server)
        assert caught.value.code == 429
        assert caught.value.headers["Retry-After"] == "2"
        assert json.loads(caught.value.read())["error"]["message"] == "slow down"
        assert text_of(post(server)) == "fine"


def test_a_dropped_connection_gives_no_answer():
    with ChatServer([Reply(drop=True), "fine"]) as server:
        with pytest.raises((http.client.RemoteDisconnected, urllib.error.URLError, ConnectionError)):
            post(server)
        assert text_of(post(server)) == "fine"


def test_tool_calls_and_raw_bodies():
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    with ChatServer([Reply(tool_calls=(call,)), Reply(body=b"[]")]) as server:
        choice = post(server)["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"] == {"role": "assistant", "content": None, "tool_calls": [call]}
        assert post(server) == []


def test_models_are_listed():
    with ChatServer(models=("a", "b")) as server, urllib.request.urlopen(f"{server.url}/models") as response:
        assert [row["id"] for row in json.loads(response.read())["data"]] == ["a", "b"]


def test_an_empty_script_is_refused():
    with pytest.raises(ValueError, match="at least one reply"):
        ChatServer([])
