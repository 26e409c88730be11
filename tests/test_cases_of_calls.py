"""Cases of users whose endpoint was slow, busy, broken or refused them: O-T1 to O-T4."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from http_world import answer, configure, make_project
from skillopt_testkit.servers import ChatServer, Reply

WAIT = 2


def test_o_t1_a_rate_limit_during_reflection_loses_no_step(tmp_path: Path) -> None:
    project, lock = make_project(tmp_path), threading.Lock()
    refused: list[float] = []
    arrived: list[float] = []

    def limited(body: Mapping[str, Any]) -> Reply | str:
        with lock:
            if body["model"] == "optimizer" and len(refused) < 3:
                refused.append(time.monotonic())
                return Reply("slow down", status=429, headers={"Retry-After": str(WAIT)})
            arrived.append(time.monotonic())
        return answer(body)

    with ChatServer(answer) as server:
        project.run("train", configure(project, server), "--out", "whole").ok()
    with ChatServer(limited) as server:
        done = project.run("train", configure(project, server, env={"workers": 8}), "--out", "run").ok()
    assert len(refused) == 3
    assert "stamina" not in done.err, "a retry is an event of the run, and no line of a library's"
    whole, steps = (project.json(f"{out}/history.json") for out in ("whole", "run"))
    assert [step["action"] for step in steps] == [step["action"] for step in whole]
    assert project.json("run/summary.json")["model_failures"] == {}
    calls = [event for event in project.lines("run/events.jsonl") if event["event"] == "model_called"]
    assert sum(event["tries"] - 1 for event in calls) == 3
    assert max(event["waited"] for event in calls if event["role"] == "optimizer") >= WAIT - 0.05
    assert min(event["at_once"] for event in calls) < max(event["at_once"] for event in calls)
    for moment in refused:  # whoever asks this endpoint waits as it was told, the target's workers too
        assert not [at for at in arrived if moment + 1.2 < at < moment + WAIT - 0.05]


def test_o_t2_a_passing_failure_is_no_zero_and_is_asked_again_after_a_stop(tmp_path: Path) -> None:
    project, broken = make_project(tmp_path), True

    def failing(body: Mapping[str, Any]) -> Reply | str:
        if broken and "line 3?" in str(body["messages"]):
            return Reply("come back tomorrow", status=429, headers={"Retry-After": "86400"})
        return answer(body)

    with ChatServer(failing) as server:
        config = configure(project, server)
        asked = ("eval", config, "--skill", "skill.md", "--split", "train", "--out", "scored")
        assert project.run(*asked).code == 3, "it is not complete"
        first = project.json("scored/eval_summary.json")
        broken, before = False, len(server.requests)
        project.run(*asked).ok()
        later = [json.dumps(received.body) for received in server.requests[before:]]
    second = project.json("scored/eval_summary.json")
    assert (first["n_items"], first["n_scored"], second["n_scored"]) == (8, 7, 8)
    assert len(later) == 1 and "line 3?" in later[0], "a genuine zero stays, and what has no score is asked again"
    rows = [row for row in project.lines("scored/outcomes.jsonl") if row["id"] == "t3"]
    assert ["hard" in row for row in rows] == [False] * (len(rows) - 1) + [True]
    assert first["hard"] == second["hard"] == 0.0


def test_o_t3_a_timeout_is_the_configured_one(tmp_path: Path) -> None:
    project = make_project(tmp_path)

    def slow(body: Mapping[str, Any]) -> Reply | str:
        return Reply("late", delay=40) if "line 3?" in str(body["messages"]) else answer(body)

    with ChatServer(slow) as server:
        config = configure(project, server, env={"exec_timeout": 5}, evaluation={"missing_retries": 0})
        done = project.run("eval", config, "--skill", "skill.md", "--split", "train", "--out", "scored")
    assert (done.code, "within" in done.err) == (3, True), done.err
    (row,) = [row for row in project.lines("scored/outcomes.jsonl") if row["id"] == "t3"]
    assert row["missing"]["reason"] == "call_timeout"
    (ended,) = [event for event in project.lines("scored/events.jsonl") if event.get("missing")]
    assert 4.9 < ended["seconds"] < 35
    assert project.json("scored/config.json")["env"]["exec_timeout"] == 5.0


def test_o_t4_a_failure_of_everything_ends_the_run_at_once(tmp_path: Path) -> None:
    project = make_project(tmp_path, train=200)
    with ChatServer(lambda _: Reply("invalid key", status=401)) as server:
        config = configure(project, server, train={"batch_size": 200})
        project.run("train", config, "--out", "run").refused("was rejected", "OPENAI_COMPATIBLE_API_KEY")
        assert len(server.requests) <= 8, "what the workers had begun, and nothing more"
    assert not (tmp_path / "run/summary.json").exists()
    assert not any("hard" in row for row in project.lines("run/outcomes.jsonl"))
