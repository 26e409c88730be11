"""Whole runs over HTTP whose endpoint rejects requests: one costs its task, all of them end the run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from http_world import answer, configure, make_project
from skillopt_testkit.servers import ChatServer, Reply


def test_one_rejected_request_costs_its_task_and_no_more(tmp_path: Path) -> None:
    project = make_project(tmp_path)

    def strict(body: Mapping[str, Any]) -> Reply | str:
        if "line 3?" in str(body["messages"]) and body["model"] == "target":
            return Reply("invalid image in request 77", status=400)
        return answer(body)

    with ChatServer(strict) as server:
        project.run("train", configure(project, server), "--out", "run").ok()
        asked = [received for received in server.requests if "line 3?" in str(received.body["messages"])
                 and received.body["model"] == "target"]  # fmt: skip
    rows = [row for row in project.lines("run/outcomes.jsonl") if row["id"] == "t3"]
    assert {row["missing"]["reason"] for row in rows} == {"rejected"}
    assert all("hard" not in row and "invalid image" in row["missing"]["message"] for row in rows)
    assert len(asked) == len(rows), "what is invalid is not tried again"
    steps = project.json("run/history.json")
    assert sum(step["rollout_missing"] for step in steps) == 1
    assert all(step["action"] == "accept_new_best" for step in steps)


def test_a_rejected_optimizer_call_is_a_failed_call(tmp_path: Path) -> None:
    project, rejected = make_project(tmp_path), 0

    def strict(body: Mapping[str, Any]) -> Reply | str:
        nonlocal rejected
        if body["model"] == "optimizer" and not rejected:
            rejected += 1
            return Reply("unsupported character", status=422)
        return answer(body)

    with ChatServer(strict) as server:
        project.run("train", configure(project, server), "--out", "run").ok()
    assert project.json("run/summary.json")["model_failures"] == {"call_failed": 1}


def test_an_endpoint_that_rejects_everything_ends_the_run_with_the_cure(tmp_path: Path) -> None:
    project = make_project(tmp_path, train=40)

    def strict(_: Mapping[str, Any]) -> Reply:
        return Reply("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.", status=400)

    with ChatServer(strict) as server:
        changes: dict[str, Any] = {"train": {"batch_size": 40}}
        ended = project.run("train", configure(project, server, **changes), "--out", "run")
        ended.refused("openai_compatible_token_limit_field", "last 5 requests to the target", "model.max_rejections")
        assert len(server.requests) <= 5 + 4, "five, and what the other workers had begun"
    assert not (tmp_path / "run/summary.json").exists()
    assert all("hard" not in row for row in project.lines("run/outcomes.jsonl"))
