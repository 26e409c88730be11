"""Training over real HTTP, against a loopback server that misbehaves in every way that endpoints do."""

import json
import re
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

RULE = "- Answer with the number alone."
KEY = "sk-very-secret-0123456789"


def answer(body: Mapping[str, Any]) -> Reply:
    """A model: the target is right once the rule is in its prompt, the optimizer proposes the rule."""
    system = body["messages"][0]["content"]
    if body["model"] == "target":
        return Reply("<answer>42</answer>" if RULE[2:] in system else "<answer>it is 42</answer>")
    if "selected_indices" in system:
        return Reply('{"reasoning": "", "selected_indices": [0]}')
    edits = [{"op": "append", "content": RULE, "support_count": 3, "source_type": "failure"}]
    patch = {"reasoning": "", "edits": edits}
    return Reply(json.dumps({"batch_size": 3, "failure_summary": [], "success_patterns": [], **patch, "patch": patch}))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, {"OPENAI_COMPATIBLE_API_KEY": KEY})
    number = 0
    for split, count in (("train", 8), ("val", 6), ("test", 6)):
        items = []
        for _ in range(count):
            number += 1
            items.append(
                {"id": f"t{number}", "question": f"Which number is {number}?", "context": "", "answers": ["42"]}
            )
        project.write(f"data/{split}/items.json", json.dumps(items))
    return project


def configure(project: Project, server: ChatServer, **changes: Mapping[str, Any]) -> str:
    sections: dict[str, Any] = {
        "_base_": "package:skillopt_kernel/default.yaml",
        "train": {"num_epochs": 1, "batch_size": 4},
        "optimizer": {"use_slow_update": False, "use_meta_skill": False},
        "model": {
            "backend": "openai_compatible",
            "openai_compatible_base_url": server.url,
            "optimizer": "optimizer",
            "target": "target",
        },
        "env": {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data", "workers": 4},
    }
    for name, change in changes.items():
        sections[name] = {**sections.get(name, {}), **change}
    return project.write("config.yaml", json.dumps(sections)).name


def test_a_rule_is_learned_over_http_and_usage_is_counted(project: Project) -> None:
    with ChatServer(answer) as server:
        project.run("train", configure(project, server), "--out", "run").ok()
    summary = project.json("run/summary.json")
    assert (summary["baseline_test_hard"], summary["test_hard"]) == (0.0, 1.0)
    assert RULE in (project.folder / "run" / "best_skill.md").read_text()
    total = summary["token_summary"]["_total"]
    assert total["calls"] == len(server.requests)
    assert total["prompt_tokens"] == 10 * total["calls"]
    sent = {received.headers["authorization"] for received in server.requests}
    assert sent == {f"Bearer {KEY}"}


def test_rate_limits_server_errors_and_dropped_connections_cost_no_attempt(project: Project) -> None:
    lock, count = threading.Lock(), 0

    def flaky(body: Mapping[str, Any]) -> Reply:
        nonlocal count
        with lock:
            count += 1
            mine = count
        if mine % 7 == 0:
            return Reply(status=429, headers={"Retry-After": "0.05"})
        if mine % 11 == 0:
            return Reply(status=503)
        if mine % 13 == 0:
            return Reply(drop=True)
        return answer(body)

    with ChatServer(flaky) as server:
        project.run("train", configure(project, server), "--out", "run").ok()
    summary = project.json("run/summary.json")
    assert (summary["test_hard"], summary["missing_outcomes"]) == (1.0, 0)
    calls = [event for event in project.lines("run/events.jsonl") if event["event"] == "model_called"]
    assert any(event["tries"] > 1 for event in calls)


@pytest.mark.parametrize(("status", "word"), [(401, "OPENAI_COMPATIBLE_API_KEY"), (404, "model")])
def test_a_permanent_error_ends_the_run_at_once_with_the_cure(project: Project, status: int, word: str) -> None:
    def refuse(body: Mapping[str, Any]) -> Reply:
        return Reply(f"no, {KEY} is wrong", status=status)

    with ChatServer(refuse) as server:
        done = project.run("train", configure(project, server), "--out", "run").refused(word)
        assert len(server.requests) <= 8
    text = done.err + done.out + "".join(p.read_text() for p in (project.folder / "run").rglob("*.json*"))
    assert KEY not in text
    with ChatServer(answer) as server:
        project.run("train", configure(project, server), "--out", "run").ok()


def test_replies_that_are_no_json_are_reminded_of_once_then_counted(project: Project) -> None:
    def chatty(body: Mapping[str, Any]) -> Reply:
        return answer(body) if body["model"] == "target" else Reply("Sorry, here are my thoughts on your skill.")

    with ChatServer(chatty) as server:
        done = project.run("train", configure(project, server), "--out", "run").ok()
    asked = [received for received in server.requests if received.body["model"] == "optimizer"]
    records = project.json("run/history.json")
    assert {record["action"] for record in records} == {"skip_no_patches"}
    failed = sum(record["model_failures"]["unusable_reply"] for record in records)
    assert len(asked) == 2 * failed
    assert "unusable_reply" in done.out
    patch = json.loads(next((project.folder / "run/steps/step_0001/patches").glob("*.json")).read_text())
    assert "Sorry, here are my thoughts" in patch["error"]


def test_a_reply_that_is_good_after_the_reminder_is_used(project: Project) -> None:
    def forgetful(body: Mapping[str, Any]) -> Reply:
        if body["model"] == "target" or "JSON only" in body["messages"][-1]["content"]:
            return answer(body)
        return Reply("Let me think about it.")

    with ChatServer(forgetful) as server:
        project.run("train", configure(project, server), "--out", "run").ok()
    assert project.json("run/summary.json")["test_hard"] == 1.0


def test_an_endpoint_that_answers_nothing_gives_no_score_and_loses_nothing(project: Project) -> None:
    with ChatServer(lambda body: Reply(delay=5)) as server:
        mine = configure(project, server, env={"exec_timeout": 1})
        done = project.run("train", mine, "--out", "run")
    assert done.code == 3, done.err
    assert "call_timeout" in done.err
    assert "Traceback" not in done.err
    assert not (project.folder / "run" / "summary.json").exists()
    with ChatServer(answer) as server:
        project.run("train", configure(project, server, env={"exec_timeout": 20}), "--out", "run").ok()


def test_a_final_test_without_a_score_is_incomplete_and_is_asked_again(project: Project) -> None:
    """O-R3: the run's earlier results are kept, the summary says what is missing, and the exit code too."""

    def down_at_the_end(body: Mapping[str, Any]) -> Reply:
        number = re.search(r"number is (\d+)", body["messages"][-1]["content"])
        if body["model"] == "target" and number is not None and int(number[1]) > 14:
            return Reply(status=400, body=b'{"error": {"message": "unsupported content", "code": "content_filter"}}')
        return answer(body)

    with ChatServer(down_at_the_end) as server:
        done = project.run("train", configure(project, server), "--out", "run")
    summary = project.json("run/summary.json")
    assert (summary["best_selection_hard"], done.code) == (1.0, 0)
    assert summary["test_hard"] == 0.0  # refused by the model: the target's own doing, scored

    def gone(body: Mapping[str, Any]) -> Reply:
        number = re.search(r"number is (\d+)", body["messages"][-1]["content"])
        if body["model"] == "target" and number is not None and int(number[1]) > 14:
            return Reply(delay=6)
        return answer(body)

    once = {"evaluation": {"missing_retries": 0}}
    with ChatServer(gone) as server:
        mine = configure(project, server, env={"exec_timeout": 3}, **once)
        done = project.run("train", mine, "--out", "other")
    summary = project.json("other/summary.json")
    assert (done.code, summary["status"], summary["test_n"]) == (3, "incomplete", 0)
    assert summary["best_selection_hard"] == 1.0
    with ChatServer(answer) as server:
        project.run("train", configure(project, server, **once), "--out", "other").ok()
        assert {received.body["model"] for received in server.requests} == {"target"}
    assert project.json("other/summary.json")["test_hard"] == 1.0
