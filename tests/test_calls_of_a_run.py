"""The calls of whole runs over HTTP: killed and resumed, no finished one is made again, and the sums are the same."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.models.ledger import Ledger
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Received, Reply

RULES = ("Answer with the number alone.", "Answer odd lines in words.", "Answer without a full stop.")
KEY = "sk-very-secret-0123456789"

TURNS = """
import json
from skillopt_kernel import PLUGIN_API, Attempt, Manifest, Message, Score, Splits, Task

plugin = Manifest(
    kind="env", name="turns", api=PLUGIN_API, summary="three turns each, and a judge", factory="turns:Turns",
)

def task(name):
    return Task(name, "", {"question": f"Which number is {name}?"}, reference="42")

class Turns:
    targets, isolation = frozenset({"chat"}), "thread"

    def __init__(self, settings, context):
        pass

    def splits(self):
        sizes = {"train": 8, "val": 6, "test": 4}
        return Splits(*(tuple(map(task, (f"{name}-{n}" for n in range(size)))) for name, size in sizes.items()))

    def attempt(self, task, skill, target):
        said = [Message("system", f"You count.\\n{skill}"), Message("user", task.inputs["question"])]
        for turn in range(3):
            reply = target.chat(said)
            said += [Message("assistant", reply.text), Message("user", f"Go on, {turn}.")]
        return Attempt(reply.text)

    def score(self, task, attempt, judge):
        asked = f"{task.inputs['question']} Answer: {attempt.output} Reference: {task.reference}"
        verdict = judge.chat([Message("system", "Is it right?"), Message("user", asked)]).text
        return Score(float("yes" in verdict), 0.5, verdict)
"""


def model(body: Mapping[str, Any]) -> Reply:
    """All roles. The more rules the skill holds, the more tasks the target solves; the optimizer adds one at a time."""
    texts = [str(message["content"]) for message in body["messages"]]
    usage = {"prompt_tokens": sum(map(len, texts)) // 4, "completion_tokens": len(texts)}
    if body["model"] == "target":
        known = sum(rule in texts[0] for rule in RULES)
        right = int(re.findall(r"-(\d+)\?", texts[1])[0]) % 4 < 1 + known
        said = f"{'good' if right else 'bad'} answer {len(texts)} with {zlib.crc32(texts[0].encode()):x}"
        return Reply(said, usage=usage, delay=0.03)
    if body["model"] == "judge":
        return Reply("yes" if "Answer: good" in texts[1] else "no", usage=usage, delay=0.03)
    missing = [rule for rule in RULES if rule not in texts[-1]] or [f"Mind line {len(texts[-1])}."]
    edits = [{"op": "append", "content": f"- {missing[0]}", "support_count": 3}]
    whole = {"reasoning": "", "edits": edits, "slow_update_content": f"- {missing[0]}", "meta_skill_content": "Go on."}
    return Reply(json.dumps({**whole, "patch": {"reasoning": "", "edits": edits}}), usage=usage, delay=0.15)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, {"OPENAI_COMPATIBLE_API_KEY": KEY, "PYTHONPATH": str(tmp_path / "plugins")})
    project.write("plugins/turns.py", TURNS)
    project.write("plugins/turns-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: turns\nVersion: 1.0\n")
    project.write("plugins/turns-1.0.dist-info/entry_points.txt", "[skillopt.envs]\nturns = turns:plugin\n")
    return project


def configure(project: Project, server: ChatServer, **changes: Any) -> str:
    sections = {
        "_base_": "package:skillopt_kernel/default.yaml",
        "train": {"num_epochs": 2, "batch_size": 4},
        "gradient": {"minibatch_size": 2},
        "evaluation": {"use_gate": False},  # so that how much is asked does not depend on what arrives first
        "model": {
            "backend": "openai_compatible", "openai_compatible_base_url": server.url,
            "optimizer": "optimizer", "target": "target", "judge": "judge",
        },
        "env": {"name": "turns", "workers": 4},
        **changes,
    }  # fmt: skip
    return project.write("config.yaml", json.dumps(sections)).name


Said = tuple[str, tuple[tuple[str, str], ...]]
"""What tells two requests apart: the model and its messages."""


def sent(received: Iterable[Received]) -> list[Said]:
    whole = [each.body for each in received if each.body]  # one that a kill cut off has none
    return [said(body["model"], body["messages"]) for body in whole]


def said(model: str, messages: Iterable[Mapping[str, Any]]) -> Said:
    return model, tuple((message["role"], message["content"]) for message in messages)


def recorded(folder: Path) -> list[Said]:
    """What the calls in the ledger had been sent."""
    if not (folder / "calls.sqlite").exists():
        return []
    ledger = Ledger(folder / "calls.sqlite", read_only=True)
    calls = [ledger.call(row["number"]) or {} for row in ledger.calls()]
    ledger.close()
    return [said(call["model"], call["request"]["messages"]) for call in calls]


def sums(project: Project, run: str) -> dict[str, Any]:
    summary = project.json(f"{run}/summary.json")
    steps, ends = project.json(f"{run}/history.json"), summary["epoch_stats"]
    return {
        "steps": [step["tokens"] for step in steps],
        "ends": [epoch["tokens"] for epoch in ends],
        "run": summary["token_summary"],
    }


def test_killed_and_resumed_no_finished_call_is_made_again_and_the_sums_are_the_same(project: Project) -> None:
    with ChatServer(model) as server:
        project.run("train", configure(project, server), "--out", "unbroken").ok()
        whole = sorted(sent(server.requests))
    expected = sums(project, "unbroken")
    assert len(set(whole)) == len(whole), "else a request that is sent twice does not tell a call that is made twice"
    assert sorted(recorded(project.folder / "unbroken")) == whole

    def asked(text: str, role: str) -> Callable[[list[Said]], bool]:
        return lambda new: any(name == role and text in str(messages) for name, messages in new)

    moments: tuple[Callable[[list[Said]], bool], ...] = (
        lambda new: len(new) >= 10,  # in the middle of the first conversations
        asked("Reference", "judge"),
        asked("edits", "optimizer"),
        lambda new: len(new) >= 30,
        asked("slow_update_content", "optimizer"),
        asked("test-", "target"),
    )
    run = project.folder / "run"
    with ChatServer(model) as server:
        config = configure(project, server)
        for moment in moments:
            finished, before = set(recorded(run)), len(server.requests)
            project.kill_when(
                lambda: moment(sent(server.requests[before:])),  # noqa: B023 - it is called at once
                "train", config, "--out", "run",
            )  # fmt: skip
            assert not finished & set(sent(server.requests[before:])), "a finished call was made again"
        finished, before = set(recorded(run)), len(server.requests)
        project.run("train", config, "--out", "run").ok()
        assert not finished & set(sent(server.requests[before:]))
        twice = len(sent(server.requests)) - len(whole)
        assert 0 < twice <= 8 * len(moments), "only what was in flight at a kill"
    assert sorted(recorded(run)) == whole
    assert sums(project, "run") == expected
    assert (run / "best_skill.md").read_text("utf-8") == (project.folder / "unbroken/best_skill.md").read_text("utf-8")
    ledger = Ledger(run / "calls.sqlite", read_only=True)
    assert {call["process"] for call in ledger.calls()} == set(range(1, len(moments) + 2))
    assert ledger.sums()[0]["served_calls"] > 0
    ledger.close()


def test_every_call_is_in_one_sum_and_the_roles_make_up_the_total(project: Project) -> None:
    with ChatServer(model) as server:
        project.run("train", configure(project, server), "--out", "run").ok()
    told = sums(project, "run")
    total = told["run"]["_total"]
    for name in ("calls", "total_tokens"):
        assert sum(told["run"][f"_{role}"][name] for role in ("target", "optimizer", "judge")) == total[name]
        assert sum(row[name] for stage, row in told["run"].items() if not stage.startswith("_")) == total[name]
    assert total["calls"] == len(server.requests)
    assert {"slow_update"} <= set(told["ends"][1]) and not told["ends"][0].keys() & {"slow_update"}
    inside = sum(row["calls"] for part in told["steps"] + told["ends"] for row in part.values())
    baseline_and_test = [
        row for row in project.lines("run/events.jsonl") if row["event"] == "model_called" and "epoch" not in row
    ]
    assert inside + len(baseline_and_test) == total["calls"]


def test_a_conversation_that_broke_off_goes_on_and_a_judge_that_failed_is_asked_alone(project: Project) -> None:
    broken = True

    def breaking(body: Mapping[str, Any]) -> Reply:
        text = str(body["messages"])
        third_turn = body["model"] == "target" and "train-0?" in text and len(body["messages"]) == 6
        if broken and (third_turn or (body["model"] == "judge" and "train-4?" in text)):
            return Reply(delay=15)
        return model(body)

    options = ("-o", "train.num_epochs=1", "train.batch_size=8", "env.exec_timeout=6")
    with ChatServer(breaking) as server:
        config = configure(project, server)
        project.kill_when(
            lambda: any(each.body["model"] == "optimizer" for each in server.requests),
            "train", config, "--out", "run", *options,
        )  # fmt: skip
        rows = project.lines("run/outcomes.jsonl")
        missing = {row["id"]: row["missing"]["reason"] for row in rows if "missing" in row}
        before, broken = sent(server.requests), False
        project.run("train", config, "--out", "run", *options).ok()
        after = sent(server.requests[len(before) :])
    assert missing == {"train-0": "call_timeout", "train-4": "judge"}
    start = before[0][1][0]
    with_start = {each for each in after if each[0] == "target" and each[1][0] == start and "train-" in each[1][1][1]}
    assert [(messages[1][1], len(messages)) for _, messages in with_start] == [("Which number is train-0?", 6)]
    assert with_start < set(before)
    judged = {messages for name, messages in after if name == "judge"} & {messages for _, messages in before}
    assert len([messages for messages in judged if "train-4?" in messages[1][1]]) == 1
    assert not any("train-1?" in messages[1][1] for messages in judged)


@pytest.mark.skipif(os.name == "nt", reason="no read-only folders for a test there")
@pytest.mark.parametrize("content", [b"no database at all" * 400, None])
def test_a_ledger_that_cannot_be_used_is_one_sentence(project: Project, content: bytes | None) -> None:
    with ChatServer(model) as server:
        config = configure(project, server)
        project.kill_when(lambda: len(server.requests) > 20, "train", config, "--out", "run")
        path = project.folder / "run" / "calls.sqlite"
        for name in ("-wal", "-shm"):
            path.with_name(path.name + name).unlink(missing_ok=True)
        if content is None:
            path.unlink()
            path.mkdir()
            project.run("train", config, "--out", "run").refused("calls.sqlite", "cannot write")
            path.rmdir()
        else:
            path.write_bytes(content)
            project.run("train", config, "--out", "run").refused("calls.sqlite is damaged", "move it away")
            path.unlink()
        project.run("train", config, "--out", "run").ok()
