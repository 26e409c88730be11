"""The test kit's project, used as an author uses it: a run, a mistake, a kill, the loopback server."""

from __future__ import annotations

import json

import pytest
from skillopt_testkit import Reply


def test_a_project_trains_on_its_simulated_world(skillopt_project):
    done = skillopt_project.run("train", "config.yaml", "--out", "run").ok()
    assert "best_skill.md" in done.out
    summary = skillopt_project.json("run/summary.json")
    assert summary["status"] == "finished"
    assert summary["best_selection_hard"] > summary["baseline_selection_hard"]


def test_a_mistake_is_refused_with_a_sentence(skillopt_project):
    skillopt_project.write("wrong.yaml", "_base_: config.yaml\ntrain: {batch_sise: 3}\n")
    refused = skillopt_project.run("train", "wrong.yaml").refused("wrong.yaml:2", "batch_sise", "batch_size")
    with pytest.raises(AssertionError, match="exit code 2"):
        refused.ok()
    with pytest.raises(AssertionError, match="exit code 0"):
        skillopt_project.run("plugins").refused()


def test_a_killed_run_goes_on(skillopt_project):
    slow = ("train", "config.yaml", "--out", "run", "-o", "model.target_simulated_latency=0.05")
    finished = []

    def some_attempts_are_done():
        lines = skillopt_project.lines("run/events.jsonl")
        finished[:] = [event for event in lines if event["event"] == "attempt_finished"]
        return len(finished) >= 15

    killed = skillopt_project.kill_when(some_attempts_are_done, *slow)
    assert killed.code < 0
    assert not (skillopt_project.folder / "run/summary.json").exists()
    skillopt_project.run(*slow).ok()
    every = [event for event in skillopt_project.lines("run/events.jsonl") if event["event"] == "attempt_finished"]
    asked = [(event["skill_hash"], event["task"], event["sample"]) for event in every if "hard" in event]
    assert len(set(asked)) == len(asked), "no finished attempt is repeated"
    assert len(asked) > len(finished)


def test_waiting_for_what_never_comes_fails_the_test(skillopt_project):
    with pytest.raises(AssertionError, match="ended by itself"):
        skillopt_project.kill_when(lambda: False, "plugins")


def test_a_project_trains_over_http(skillopt_project, chat_server):
    def script(body):
        if body["model"] == "learner":
            skill = body["messages"][0]["content"]
            return "<answer>right</answer>" if "Say right." in skill else Reply("<answer>wrong</answer>")
        return json.dumps({"patch": {"edits": [{"op": "append", "content": "- Say right."}]}, "selected_indices": [0]})

    chat_server.script = script
    items = {split: [] for split in ("train", "val", "test")}
    for number in range(12):
        item = {"id": f"q{number}", "question": f"Say the word {number}.", "context": "", "answers": ["right"]}
        items[list(items)[number % 3]].append(item)
    for split, rows in items.items():
        skillopt_project.write(f"data/{split}/items.json", json.dumps(rows))
    models = "{backend: openai_compatible, optimizer: teacher, target: learner}"
    skillopt_project.write("http.yaml", f"_base_: config.yaml\nmodel: {models}\n")
    options = [f"model.openai_compatible_base_url={chat_server.url}", "model.optimizer_backend=openai_compatible"]
    options += ["model.target_backend=openai_compatible", "model.openai_compatible_api_key=none"]
    skillopt_project.run("train", "http.yaml", "--out", "run", *(word for o in options for word in ("-o", o))).ok()
    assert "Say right." in (skillopt_project.folder / "run/best_skill.md").read_text(encoding="utf-8")
    assert {received.body["model"] for received in chat_server.requests} == {"teacher", "learner"}
