"""custom_search: queries as text, a search service over HTTP, its faults, and where its credential may go."""

import pytest
from attrs import evolve
from officeqa_world import TASK, ScriptedModel, SearchService, environment, queries, result
from skillopt_env_officeqa.settings import OfficeQASettings
from skillopt_env_officeqa.web_search import web_search
from skillopt_kernel.errors import ConfigError, EnvironmentFailure
from skillopt_testkit.scripted import ScriptedTarget

TOKEN = "search-token-0123456789"


@pytest.fixture(autouse=True)
def variables(monkeypatch):
    monkeypatch.setenv("OFFICEQA_CUSTOM_SEARCH_AUTH", TOKEN)
    monkeypatch.delenv("OFFICEQA_SEARCH_API_URL", raising=False)


def online(service, **settings):
    return environment(search_mode="custom_search", search_api_url=service.url, data_dirs=(), **settings)


def service_of(service, **settings):
    settings = OfficeQASettings(search_mode="custom_search", search_api_url=service.url, **settings)
    waited = []
    return evolve(web_search(settings), wait=waited.append), waited


def test_queries_are_searched_for_and_their_results_come_back():
    with SearchService((200, {"results": [result(1), result(2), result(3)]})) as service:
        made = online(service, search_max_num_results=2)
        model = ScriptedModel(queries("customs, June 1942", "customs"), "<answer>636.6</answer>")
        attempt = made.attempt(TASK.hidden(), "", model.target())
    assert attempt.output == "636.6"
    assert model.requests[0].tools == ()
    assert service.asked == [
        ({"query": query, "max_num_results": 2, "provider": "duckduckgo"}, f"Bearer {TOKEN}")
        for query in ("customs, June 1942", "customs")
    ]
    told = model.requests[1].messages[-1].text
    assert told.startswith("## Results for: customs, June 1942\n\n1. Title 1\nhttps://example.org/1\nExcerpt 1")
    assert "Title 2" in told
    assert "Title 3" not in told
    assert [turn.role for turn in attempt.trajectory] == ["system", "user", "assistant", "user", "assistant"]
    assert made.targets == frozenset({"chat"})
    assert "searched the web (duckduckgo)" in made.notes()[0]
    assert TOKEN not in repr(attempt) + repr(made)


def test_no_more_queries_than_allowed_and_none_in_the_last_turn():
    with SearchService((200, [result(1)])) as service:
        model = ScriptedModel(queries("a", "b", "c"), queries("d"))
        made = online(service, max_queries_per_turn=2, max_tool_turns=2)
        attempt = made.attempt(TASK.hidden(), "", model.target())
    assert [body["query"] for body, _ in service.asked] == ["a", "b"]
    assert "1 were left out" in model.requests[1].messages[-2].text
    assert "no more searches" in model.requests[1].messages[-1].text
    assert (attempt.output, attempt.ended) == ("", "max_turns")


@pytest.mark.parametrize("where", ["results", "items", "data", "organic", "web", "hits"])
def test_results_are_found_where_services_put_them(where):
    with SearchService(
        (200, {"meta": 1, where: {"results": [result(1)]} if where == "web" else [result(1)]})
    ) as service:
        assert service_of(service)[0].search("q", ScriptedTarget("")).startswith("1. Title 1")


@pytest.mark.parametrize("answer", [{}, [], {"results": []}, {"results": "none"}, [1, None], "text", 3])
def test_answers_without_results_are_told_so(answer):
    with SearchService((200, answer)) as service:
        assert service_of(service)[0].search("q", ScriptedTarget("")) == "[nothing was found]"


def test_passing_faults_are_tried_again():
    with SearchService((503, {}), (429, {}), (200, [result(1)])) as service:
        search, waited = service_of(service)
        assert "Title 1" in search.search("q", ScriptedTarget(""))
    assert waited == [1.0, 2.0]


def test_a_service_that_stays_away_is_no_fault_of_the_target():
    with SearchService((503, {})) as service:
        search, waited = service_of(service)
        with pytest.raises(EnvironmentFailure, match=r"http://127\.0\.0\.1 does not answer: HTTP 503"):
            search.search("q", ScriptedTarget(""))
    assert (len(service.asked), waited) == (5, [1.0, 2.0, 4.0, 8.0])
    search, _ = service_of(service)  # it is gone now
    with pytest.raises(EnvironmentFailure, match="does not answer: ConnectError"):
        search.search("q", ScriptedTarget(""))
    for answer in (b"<html>", b"[" * 100_000, b"\xff"):
        with SearchService((200, answer)) as service, pytest.raises(EnvironmentFailure, match="no JSON"):
            service_of(service)[0].search("q", ScriptedTarget(""))


def test_an_answer_without_end_is_given_up():
    with SearchService((200, b" " * 4_000_001)) as service, pytest.raises(EnvironmentFailure, match="4,000,000 bytes"):
        service_of(service)[0].search("q", ScriptedTarget(""))
    with SearchService((200, b" " * 1000)) as service:
        service.pause = 0.02  # after each byte: each read is in time, and the whole is not
        search, _ = service_of(service, search_timeout_seconds=1)
        with pytest.raises(EnvironmentFailure, match="ReadTimeout: the answer had no end after 1 s"):
            evolve(search, pauses=()).search("q", ScriptedTarget(""))


def test_a_refused_query_is_told_to_the_target():
    with SearchService((422, {})) as service:
        told = service_of(service)[0].search("q", ScriptedTarget(""))
    assert told == "[the search service refused this query: HTTP 422]"
    assert len(service.asked) == 1


@pytest.mark.parametrize("status", [401, 403])
def test_a_refused_credential_ends_the_run(status):
    with SearchService((status, {})) as service, pytest.raises(ConfigError, match=r"refused the credential.*auth_env"):
        service_of(service)[0].search("q", ScriptedTarget(""))
    assert len(service.asked) == 1


def test_the_credential_follows_no_redirect_and_is_echoed_nowhere():
    with SearchService((307, {})) as service:
        assert "HTTP 307" in service_of(service)[0].search("q", ScriptedTarget(""))
    assert len(service.asked) == 1
    with SearchService((200, [result(1, snippet=f"you sent Bearer {TOKEN}")])) as service:
        told = service_of(service)[0].search("q", ScriptedTarget(""))
    assert TOKEN not in told
    assert "you sent" in told


@pytest.mark.parametrize(
    ("address", "token", "words"),
    [
        ("", TOKEN, "no search service is named"),
        ("http://search.example.org/s", TOKEN, "unencrypted"),
        ("ftp://search.example.org", TOKEN, "no address of the form"),
        ("https://", TOKEN, "no address of the form"),
        (
            "https://search.example.org",
            "",
            "OFFICEQA_CUSTOM_SEARCH_AUTH with the search service's credential is not set",
        ),
    ],
)
def test_what_is_missing_or_unsafe_is_told_before_the_run(address, token, words, split, monkeypatch):
    monkeypatch.setenv("OFFICEQA_CUSTOM_SEARCH_AUTH", token)
    made = environment(split_dir=split, search_mode="custom_search", search_api_url=address, data_dirs=())
    with pytest.raises(ConfigError, match=words):
        made.splits()


def test_the_address_may_stand_in_the_environment(monkeypatch):
    monkeypatch.setenv("OFFICEQA_SEARCH_API_URL", "https://search.example.org/s")
    monkeypatch.setenv("MINE", TOKEN)
    assert web_search(OfficeQASettings(search_auth_env="MINE")).address == "https://search.example.org/s"


def test_no_documents_are_needed_online(split):
    with SearchService((200, [])) as service:
        made = environment(split_dir=split, search_mode="custom", search_api_url=service.url, data_dirs=())
        assert len(made.splits().train) == 8
