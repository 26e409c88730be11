"""`skillopt calls`: sums, the list, one call in full, on finished and living runs, and what is wrong in a sentence."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from skillopt_analysis.calls import calls
from skillopt_kernel.cli.main import main
from skillopt_kernel.errors import PassingError
from skillopt_kernel.models.call_text import CallKey
from skillopt_kernel.models.calling import ModelCaller, RetryPolicy
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.models.requests import ChatReply, ChatRequest, ImagePart, Message, TextPart, Tool
from skillopt_kernel.records import ToolCall, Usage
from skillopt_testkit.project import Project


class Endpoint:
    """A chat model with replies in order; what it uses is told by the reply."""

    model = "gpt-4o-mini"

    def __init__(self, *replies: ChatReply | Exception) -> None:
        self.replies = list(replies)

    def complete(self, request: ChatRequest) -> ChatReply:
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run whose ledger holds four calls: two told what they used, one did not, one failed."""
    ledger = Ledger(tmp_path / "calls.sqlite")

    def ask(role: str, stage: str, key: CallKey, request: ChatRequest, reply: ChatReply | Exception) -> None:
        address = "https://api.openai.com/v1"
        policy = RetryPolicy(tries=1)
        made = ModelCaller(Endpoint(reply), role, address, backend="openai_compatible", policy=policy, ledger=ledger)
        made.complete(ChatRequest(request.messages, request.tools, schema=request.schema, stage=stage), key)

    picture = Message("user", (TextPart("What is this?"), ImagePart(b"\x89" * 2048, "image/png")))
    asked = ChatRequest((Message("system", "# Skill\n" * 40), picture), (Tool("look", "Looks.", {"type": "object"}),))
    tool = ToolCall("c1", "look", '{"at": "it"}')
    first = ChatReply("", (tool,), "tool_calls", Usage(1, 1000, 20, 400, 10), "I should look.")
    ask("target", "rollout", CallKey("abc/t1", 0, 1, 2), asked, first)
    ask("target", "rollout", CallKey("abc/t1", 0, 1, 2), asked, first)  # served
    secret = ChatRequest((Message("user", "api_key=sk-abcdefghijklmnop"),), schema={"type": "object"})
    ask("optimizer", "analyst", CallKey("step_0002/analyst/fail_000", 0, 1, 2), secret, ChatReply("{}", usage=Usage(1)))
    ask("judge", "judge", CallKey("abc/t1", 0), secret, ChatReply("yes", usage=Usage(1, 5, 1)))
    with pytest.raises(PassingError):
        ask("optimizer", "merge", CallKey("step_0002/merge/merge_final", 0, 1, 2), secret, PassingError("503 busy"))
    ledger.close()
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    code = main(["calls", *map(str, words)])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    return captured.out


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    code = main(["calls", *map(str, words)])
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert "Traceback" not in captured.err
    return captured.err


def test_the_table_sums_by_role_and_stage_and_says_what_it_leaves_out(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = told(capsys, run)
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in out.splitlines()[2:-2]}
    assert rows["target", "rollout"][:7] == ["1", "0", "1", "1,000", "20", "400", "10"]
    assert rows["optimizer", "analyst"][:8] == ["1", "0", "0", "-", "-", "-", "-", "-"], "unknown is no zero"
    assert rows["optimizer", "merge"][:2] == ["1", "1"]
    assert rows["optimizer", "all"][:2] == ["2", "1"] and ("target", "all") not in rows, "it has one stage"
    assert out.splitlines()[-3].split()[:5] == ["all", "all", "4", "1", "1"]
    assert "replayed" not in out
    assert "1 call did not tell its tokens" in out and "1 call has no known price" in out


def test_json_has_the_same_numbers_and_null_for_unknown(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found: dict[str, Any] = json.loads(told(capsys, run, "--json"))
    rows = {(row["role"], row["stage"]): row for row in found["calls"]}
    assert rows["optimizer", "analyst"]["prompt_tokens"] is rows["optimizer", "analyst"]["usd"] is None
    assert 0 < rows["target", "rollout"]["usd"] < 0.001
    assert [(row["role"], row["calls"]) for row in found["roles"]] == [("judge", 1), ("optimizer", 2), ("target", 1)]
    assert (found["total"]["calls"], found["total"]["failed_calls"], found["total"]["served_calls"]) == (4, 1, 1)


def test_the_list_has_a_line_for_each_call(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = told(capsys, run, "--list").splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["1", "2", "3", "4"]
    assert lines[2].endswith("abc/t1 0") and "PassingError" in lines[5]
    rows = [json.loads(line) for line in told(capsys, run, "--list", "--json").splitlines()]
    assert [(row["role"], row["served"]) for row in rows] == [
        ("target", 1), ("optimizer", 0), ("judge", 0), ("optimizer", 0),
    ]  # fmt: skip


def test_one_call_in_full(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = told(capsys, run, "--show", "1")
    for words in (
        "Call 1: target, stage rollout, epoch 1, step 2", "gpt-4o-mini of openai_compatible", "in 1,000",
        "served 1 times", "--- system\n# Skill\n# Skill\n", "What is this?\n[image image/png, 2,048 bytes, ",
        "--- reply (finish tool_calls)", '[calls look (c1): {"at": "it"}]', "--- reasoning\nI should look.",
        '"name": "look"',
    ):  # fmt: skip
        assert words in out, words
    failed = told(capsys, run, "--show", "4")
    assert "Status PassingError" in failed and "--- no reply: 503 busy" in failed and "schema: " in failed


def test_a_person_is_not_shown_what_looks_like_a_credential(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--show", "2"], ["--show", "2", "--json"]):
        out = told(capsys, run, *words)
        assert "sk-abcdefghijklmnop" not in out and "[redacted]" in out
    assert (
        json.loads(told(capsys, run, "--show", "1", "--json"))["request"]["messages"][0]["content"] == "# Skill\n" * 40
    )


def test_what_is_wrong_is_a_sentence(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no call 99; its calls are 1 to 4" in refused(capsys, run, "--show", "99")
    assert "is not a folder" in refused(capsys, tmp_path / "nowhere")
    assert "--list and --show" in refused(capsys, run, "--list", "--show", "1")
    (tmp_path / "other").mkdir()
    assert "holds no calls.sqlite" in refused(capsys, tmp_path / "other")
    (tmp_path / "other" / "calls.sqlite").write_bytes(b"no database " * 500)
    assert "is damaged" in refused(capsys, tmp_path / "other")
    with sqlite3.connect(run / "calls.sqlite") as database:
        database.execute("PRAGMA user_version = 99")
    assert "newer version" in refused(capsys, run)


def test_a_ledger_without_calls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Ledger(tmp_path / "calls.sqlite").close()
    assert "No model call was made yet." in told(capsys, tmp_path)
    assert "No model call was made yet." in told(capsys, tmp_path, "--list")
    assert json.loads(told(capsys, tmp_path, "--json"))["calls"] == []
    assert "it has made none yet" in refused(capsys, tmp_path, "--show", "1")


def test_a_run_in_progress_and_one_that_was_killed_can_be_looked_at(tmp_path: Path) -> None:
    project = Project.make(tmp_path / "project")
    seen: list[int] = []

    def looked() -> bool:
        if not (project.folder / "run" / "runtime_state.json").exists():
            return False
        found = project.run("calls", "run", "--json").ok()
        seen.append(json.loads(found.out)["total"]["calls"])
        return seen[-1] > seen[0]

    project.kill_when(looked, "train", "config.yaml", "--out", "run", "-o", "model.simulated_latency=0.1")
    total = json.loads(project.run("calls", "run", "--json").ok().out)["total"]
    assert total["calls"] >= seen[-1] > seen[0] > 0
    assert "rollout" in project.run("calls", "run").ok().out


def test_the_command_is_the_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    assert calls.name == "calls"
    assert main(["calls", "--help"]) == 0
    assert "reads only, also while it is running" in " ".join(capsys.readouterr().out.split())
