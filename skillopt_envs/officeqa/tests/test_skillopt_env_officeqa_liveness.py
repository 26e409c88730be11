"""Each key of `env` that this environment owns changes what the target or the service receives, or what a score is."""

import attrs
import pytest
from officeqa_world import TASK, ScriptedModel, SearchService, call, calls, environment, queries, result
from skillopt_env_officeqa.settings import OfficeQASettings
from skillopt_kernel.records import Task

ONLINE = {"search_mode": "custom_search"}
PAGES = {"source_files": TASK.reference["source_files"], "source_docs": TASK.reference["source_docs"]}
TOLD = Task(TASK.id, TASK.kind, {**TASK.inputs, **PAGES}, TASK.reference)

CHANGES = {
    "data_dirs": ({}, "docs"),
    "docs_dirs": ({}, "docs"),
    "index_dir": ({}, "index"),
    "search_mode": ({}, "custom_search"),
    "use_local_tools": ({"gold_sources": True}, False),
    "gold_sources": ({}, True),
    "max_tool_turns": ({}, 2),
    "max_completion_tokens": ({}, 9),
    "tolerance": ({}, 0.05),
    "max_queries_per_turn": (ONLINE, 1),
    "search_api_url": (ONLINE, "ANOTHER"),
    "search_auth_env": (ONLINE, "ANOTHER_VARIABLE"),
    "search_provider": (ONLINE, "another"),
    "search_max_num_results": (ONLINE, 1),
    "search_timeout_seconds": (ONLINE, 1),
}
"""Key -> what else must be set for it to count, and another value than its default."""


@pytest.fixture
def services():
    with SearchService((200, [result(1), result(2)])) as one, SearchService((200, [])) as another:
        yield one, another


def seen(services, folder, settings):
    """What came of an attempt with these settings: requests, what the service was asked, score, files."""
    one, another = services
    one.asked.clear()
    if "search_api_url" in settings:
        settings = {**settings, "search_api_url": another.url}
    folders = {name: (folder / settings[name],) for name in ("data_dirs", "docs_dirs") if name in settings}
    folders |= {name: folder / settings[name] for name in ("index_dir",) if name in settings}
    made = environment(**{"search_api_url": one.url, **settings, **folders})
    look = calls(call("glob", pattern="*"), call("search", 2, query="Customs"), text=queries("a", "b", "c"))
    model = ScriptedModel(look, look, "<answer>640</answer>")
    task = TOLD if made.notes() and settings.get("gold_sources") else TASK
    seconds = getattr(made._service, "timeout", None) if settings.get("search_mode") else None
    attempt = made.attempt(task.hidden(), "# Skill", model.target())
    score = made.score(task, attempt, None)
    kept = sorted(path.name for path in (folder / "index").glob("*"))
    return model.requests, one.asked[:], score.hard, kept, seconds


def test_every_key_has_a_change():
    assert set(CHANGES) == {field.name for field in attrs.fields(OfficeQASettings)}


def test_what_is_compared_is_the_same_another_time(tmp_path, services):
    assert seen(services, tmp_path, {}) == seen(services, tmp_path, {})


@pytest.mark.parametrize("key", CHANGES)
def test_a_key_changes_something(tmp_path, services, monkeypatch, key):
    monkeypatch.setenv("OFFICEQA_CUSTOM_SEARCH_AUTH", "search-token-0123456789")
    monkeypatch.setenv("ANOTHER_VARIABLE", "another-token-0123456789")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "other.txt").write_text("Customs of another corpus")
    others, value = CHANGES[key]
    assert seen(services, tmp_path, dict(others)) != seen(services, tmp_path, {**others, key: value})
