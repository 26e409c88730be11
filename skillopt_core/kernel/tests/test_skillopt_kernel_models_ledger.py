"""The ledger of calls: committed one by one, served by key, summed over processes, unknown never zero."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from skillopt_kernel.config.schema import Price
from skillopt_kernel.errors import PassingError, PermanentError, RefusedError, RunDirectoryError
from skillopt_kernel.models.call_text import CallKey, describe_request, read_reply, reply_document
from skillopt_kernel.models.calling import ModelCaller, RetryPolicy
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.models.pricing import estimate_tokens, usd_of
from skillopt_kernel.models.requests import (
    AgentJob,
    AgentResult,
    ChatReply,
    ChatRequest,
    ImagePart,
    Message,
    TextPart,
    Tool,
)
from skillopt_kernel.models.spending import token_summary, tokens_by_stage
from skillopt_kernel.records import ToolCall, Turn, Usage
from skillopt_kernel.store.redaction import Redactor
from skillopt_kernel_models_probes import ScriptedModel, ask, in_threads, reply

SKILL = "# Skill\n" + "- Be short.\n" * 40
FIRST = CallKey("attempt", 0)


def used(prompt: int | None, completion: int | None, **more: float) -> Usage:
    return Usage(calls=1, prompt_tokens=prompt, completion_tokens=completion, **more)  # type: ignore[arg-type]


def caller(ledger: Ledger, model: ScriptedModel, role: str = "target", **options: Any) -> ModelCaller:
    return ModelCaller(
        model, role=role, ledger=ledger, policy=RetryPolicy(tries=2, first_wait=0.001), backend="lab", **options
    )


def filled(ledger: Ledger | None = None) -> Ledger:
    """Three calls of the target, one failed and one that did not tell, and one of the optimizer."""
    ledger = ledger or Ledger()
    failure = PassingError("503")
    target = ScriptedModel(reply("a", used(10, 5)), reply("b", used(None, None)), failure, failure)
    step = CallKey(epoch=1, step=1)
    made = caller(ledger, target)
    made.complete(ask(), step)
    made.complete(ask(), step)
    with pytest.raises(PassingError):
        made.complete(ask(), step)
    optimizer = caller(ledger, ScriptedModel(reply("{}", used(100, 50, cached_tokens=40, usd=0.02))), "optimizer")
    optimizer.complete(ask(stage="analyst"), CallKey(epoch=2))
    return ledger


# Sums ---------------------------------------------------------------------------------------------------


def test_tokens_have_the_names_of_a_record() -> None:
    assert tokens_by_stage(filled()) == {
        "analyst": {"calls": 1, "prompt_tokens": 100, "completion_tokens": 50, "cached_tokens": 40, "usd": 0.02},
        "rollout": {
            "calls": 3, "prompt_tokens": 10, "completion_tokens": 5, "failed_calls": 1, "unknown_calls": 1,
        },
    }  # fmt: skip


def test_a_stage_that_told_nothing_is_unknown() -> None:
    ledger = Ledger()
    caller(ledger, ScriptedModel(reply("a", used(None, None)))).complete(ask())
    assert tokens_by_stage(ledger)["rollout"] == {
        "calls": 1, "prompt_tokens": None, "completion_tokens": None, "unknown_calls": 1,
    }  # fmt: skip
    summary = token_summary(ledger)
    assert summary["rollout"]["total_tokens"] is None
    assert summary["_total"]["prompt_tokens"] is None
    assert "usd" not in summary["_total"]


def test_the_summary_has_every_stage_every_role_and_the_total() -> None:
    summary = token_summary(filled())
    assert set(summary) == {"rollout", "analyst", "_target", "_optimizer", "_total"}
    assert summary["_total"]["total_tokens"] == 165
    assert (summary["_total"]["calls"], summary["_total"]["unknown_calls"]) == (4, 1)
    assert summary["rollout"]["total_tokens"] == summary["_target"]["total_tokens"] == 15
    assert summary["_total"]["unpriced_calls"] == 2, "what the dollars do not cover is told"
    assert token_summary(Ledger())["_total"]["calls"] == 0


def test_the_spend_of_each_role() -> None:
    """A runner at $0.10 a call beside an optimizer at $1: neither is lost."""
    ledger = Ledger()
    for role, usd, calls in (("target", 0.10, 5), ("optimizer", 1.00, 2)):
        made = caller(ledger, ScriptedModel(reply("{}", used(1, 1, usd=usd))), role)
        for _ in range(calls):
            made.complete(ask(stage=role))
    summary = token_summary(ledger)
    assert [summary[name]["usd"] for name in ("_target", "_optimizer", "_total")] == pytest.approx([0.5, 2.0, 2.5])


def test_sums_of_a_step_and_of_an_epoch_s_end() -> None:
    ledger = filled()
    assert set(tokens_by_stage(ledger, step=1)) == {"rollout"}
    assert set(tokens_by_stage(ledger, epoch=2, step=None)) == {"analyst"}
    assert tokens_by_stage(ledger, step=2) == tokens_by_stage(ledger, epoch=1, step=None) == {}


def test_a_failed_call_counts_with_what_it_used_if_that_is_known() -> None:
    ledger, refused = Ledger(), RefusedError("no")
    refused.usage = used(30, 0)
    for error in (refused, PermanentError("no key")):
        with pytest.raises(type(error)):
            caller(ledger, ScriptedModel(error)).complete(ask())
    assert tokens_by_stage(ledger)["rollout"] == {
        "calls": 2, "prompt_tokens": 30, "completion_tokens": 0, "failed_calls": 2,
    }  # fmt: skip
    assert [(call["status"], call["usd"]) for call in ledger.calls()] == [
        ("RefusedError", None),
        ("PermanentError", None),
    ]


def test_the_next_process_goes_on_with_the_sums(tmp_path: Path) -> None:
    for process in (1, 2):
        ledger = filled(Ledger(tmp_path / "calls.sqlite"))
        assert [row["calls"] for row in ledger.sums()] == [4 * process]
        assert {call["process"] for call in ledger.calls()} == set(range(1, process + 1))
        ledger.close()


# Serving ------------------------------------------------------------------------------------------------


def test_a_finished_call_is_served_to_the_next_process_and_is_no_new_call(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    answer = attrs.evolve(
        reply("the answer \U0001f600", used(10, 5)), reasoning="r", tool_calls=(ToolCall("1", "t", '{"a": "\ud83d"}'),)
    )
    model, replies = ScriptedModel(answer), []
    for _ in range(2):
        ledger = Ledger(tmp_path / "calls.sqlite")
        replies.append(caller(ledger, model, emit=events.append).complete(ask(), FIRST))
        (total,) = ledger.sums()
        ledger.close()
    assert replies == [answer, answer], "the same reply, usage and all"
    assert (len(model.requests), len(events)) == (1, 1)
    assert (total["calls"], total["prompt_tokens"], total["served_calls"]) == (1, 10, 1)


def test_what_is_served_is_this_very_call() -> None:
    ledger, model = Ledger(), ScriptedModel("one", "two", "three", "four", "five", "six")
    made = caller(ledger, model)
    request = ChatRequest((Message("system", SKILL), Message("user", "Which?")), effort="low", stage="rollout")
    assert made.complete(request, FIRST).text == "one"
    unrelated = attrs.evolve(request, deadline=1e12, stage="selection")
    assert made.complete(unrelated, FIRST).text == "one", "what it is for and how long it may take change no reply"
    assert made.complete(request, CallKey("attempt", 1)).text == "two", "asking again is another call"
    assert made.complete(request, CallKey("other", 0)).text == "three"
    assert caller(ledger, model, "judge").complete(request, FIRST).text == "four"
    changed = attrs.evolve(request, messages=(Message("system", SKILL + "."), request.messages[1]))
    assert made.complete(changed, FIRST).text == "five", "one byte of the skill"
    assert made.complete(request, FIRST).text == "one", "and what was answered before still stands"
    assert made.complete(changed, FIRST).text == "five"
    assert made.complete(attrs.evolve(request, effort="high"), FIRST).text == "six"
    nobodys = caller(ledger, ScriptedModel("new", "newer"))
    assert [nobodys.complete(request).text for _ in range(2)] == ["new", "newer"]


@pytest.mark.parametrize(
    "change",
    [
        {"tools": (Tool("t", "does", {}),)}, {"schema": {"type": "object"}}, {"max_tokens": 7}, {"temperature": 0.5},
        {"seed": 1}, {"messages": (Message("user", (TextPart("hello"), ImagePart(b"2", "image/png"))),)},
    ],
)  # fmt: skip
def test_all_that_can_change_a_reply_is_in_the_digest(change: dict[str, Any]) -> None:
    request = ChatRequest((Message("user", (TextPart("hello"), ImagePart(b"1", "image/png"))),))
    digests = {describe_request("lab", "m", each).digest for each in (request, attrs.evolve(request, **change))}
    digests |= {describe_request("lab", "other", request).digest, describe_request("other", "m", request).digest}
    assert len(digests) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"prompt": "do that"}, {"skill": "# Other"}, {"files": {"a.csv": b"2"}}, {"files": {"b": b"1"}}, {"files": {}},
        {"collect": ("*.csv",)}, {"edits": True}, {"max_turns": 3},
    ],
)  # fmt: skip
def test_all_that_can_change_what_an_agent_does_is_in_the_digest(change: dict[str, Any]) -> None:
    job = AgentJob("do this", "# Skill", {"a.csv": b"1"})
    assert len({describe_request("lab", "m", each).digest for each in (job, attrs.evolve(job, **change))}) == 2


def test_where_an_agents_files_lie_and_until_when_it_may_work_is_not_in_the_digest(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"1")
    (tmp_path / "there").write_bytes(b"1")
    job = AgentJob("do this", "# Skill", {"a.csv": b"1"})
    others = [attrs.evolve(job, files={"a.csv": tmp_path / name}) for name in ("here", "there")]
    others += [attrs.evolve(job, stage="test"), attrs.evolve(job, deadline=9.0)]
    assert {describe_request("lab", "m", each).digest for each in others} == {describe_request("lab", "m", job).digest}


class Harness:
    """Does one job; a second one would be one too many."""

    model = "agent-1"

    def __init__(self, result: AgentResult) -> None:
        self.results = [result]

    def run(self, job: AgentJob) -> AgentResult:
        return self.results.pop()


def test_an_agents_job_is_done_once_and_its_files_are_kept_by_their_content(tmp_path: Path) -> None:
    data = bytes(range(256)) * 400
    done = AgentResult("done", {"out/a.bin": data, "out/b.bin": data}, usage=used(70, 7, usd=0.25))
    job, events = AgentJob("do this", SKILL, {"in.txt": b"1"}, stage="rollout"), list[dict[str, Any]]()
    made = caller(Ledger(tmp_path / "calls.sqlite"), Harness(done), emit=events.append)  # type: ignore[arg-type]
    assert made.run(job, FIRST) == done
    ledger = Ledger(tmp_path / "calls.sqlite")
    again = caller(ledger, Harness(done))  # type: ignore[arg-type]
    assert again.run(attrs.evolve(job, deadline=1e12), FIRST) == done
    (total,) = ledger.sums()
    assert (total["calls"], total["prompt_tokens"], total["usd"], total["served_calls"]) == (1, 70, 0.25, 1)
    shown = ledger.call(1)
    assert shown is not None and (shown["request"]["prompt"], shown["request"]["skill"]) == ("do this", SKILL)
    assert {file["bytes"] for file in shown["reply"]["files"]} == {len(data)}
    assert "finish" not in events[0]
    with sqlite3.connect(tmp_path / "calls.sqlite") as database:
        assert database.execute("SELECT count(*) FROM contents").fetchone() == (2,), "the skill, and one file for both"
    ledger.close()


def test_a_failed_call_is_never_served() -> None:
    ledger, failure = Ledger(), PassingError("503")
    model = ScriptedModel(failure, failure, "done")
    with pytest.raises(PassingError):
        caller(ledger, model).complete(ask(), FIRST)
    assert caller(ledger, model).complete(ask(), FIRST).text == "done"
    assert [call["status"] for call in ledger.calls()] == ["PassingError", "ok"]
    assert caller(ledger, model).complete(ask(), FIRST).text == "done"
    assert len(model.requests) == 3


def test_replies_that_came_to_nothing_are_not_served_again() -> None:
    ledger, model = Ledger(), ScriptedModel("vague", "clear")
    assert caller(ledger, model, "judge").complete(ask(), FIRST).text == "vague"
    caller(ledger, ScriptedModel("kept")).complete(ask(), FIRST)
    ledger.retire("judge", "attempt")
    assert caller(ledger, model, "judge").complete(ask(), FIRST).text == "clear"
    assert caller(ledger, model, "judge").complete(ask(), FIRST).text == "clear"
    assert caller(ledger, ScriptedModel("new")).complete(ask(), FIRST).text == "kept", "another role's replies stand"


def test_what_was_answered_before_a_call_failed_stands() -> None:
    ledger, failure = Ledger(), PassingError("503")
    judge = ScriptedModel("the first of two", failure, failure, "the second")
    for _ in range(2):
        made = caller(ledger, judge, "judge")
        try:
            said = [made.complete(ask(), CallKey("attempt", at)).text for at in range(2)]
        except PassingError:
            ledger.retire("judge", "attempt")
    assert said == ["the first of two", "the second"]
    assert len(judge.requests) == 4


def test_many_threads_record_every_call_once_and_find_it_again(tmp_path: Path) -> None:
    ledger, model = Ledger(tmp_path / "calls.sqlite"), ScriptedModel("done")
    made, numbers = caller(ledger, model), iter(range(1000))
    keys = [CallKey(f"attempt {number}", turn) for number in range(24) for turn in range(5)]

    def work() -> list[str]:
        number = next(numbers) % 24
        return [made.complete(ask(f"{number}"), key).text for key in keys[5 * number : 5 * number + 5]]

    for _ in range(2):
        assert in_threads(24, work) == [["done"] * 5] * 24
    assert len(model.requests) == 120
    (total,) = ledger.sums()
    assert (total["calls"], total["served_calls"]) == (120, 120)
    assert len({call["number"] for call in ledger.calls()}) == 120
    ledger.close()


# What is kept -------------------------------------------------------------------------------------------


def test_a_text_that_many_requests_share_is_stored_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "calls.sqlite")
    made = caller(ledger, ScriptedModel("done"))
    for number in range(50):
        made.complete(ChatRequest((Message("system", SKILL), Message("user", f"{number}"))))
    ledger.close()
    with sqlite3.connect(tmp_path / "calls.sqlite") as database:
        assert database.execute("SELECT count(*) FROM contents").fetchone() == (1,)
    shown = Ledger(tmp_path / "calls.sqlite", read_only=True).call(50)
    assert shown is not None
    assert [message["content"] for message in shown["request"]["messages"]] == [SKILL, "49"]
    assert shown["reply"]["text"] == "done"


def test_an_image_is_kept_as_its_hash() -> None:
    ledger = Ledger()
    content = (TextPart("look"), ImagePart(b"\x89" * 5000, "image/png"))
    caller(ledger, ScriptedModel("a cat")).complete(ChatRequest((Message("user", content),)))
    shown = ledger.call(1)
    assert shown is not None
    said, image = shown["request"]["messages"][0]["content"]
    assert (said, image["media_type"], image["bytes"], len(image["image"])) == ("look", "image/png", 5000, 32)
    assert ledger.call(2) is None


def test_credentials_are_replaced_before_anything_is_stored_and_patterns_alter_nothing(tmp_path: Path) -> None:
    key, looks_like_one = "s3cret-credential", "api_key=sk-abcdefghijklmnop"
    ledger = Ledger(tmp_path / "calls.sqlite")
    model = ScriptedModel(f"{key} and {looks_like_one}", PermanentError(f"rejected {key}; {looks_like_one}"))
    made = caller(ledger, model, redactor=Redactor([key]))
    said = f"{key} is {looks_like_one} " * 30
    made.complete(ask(said), CallKey(f"task {key}"))
    with pytest.raises(PermanentError):
        made.complete(ask(said))
    shown, failed = ledger.call(1), ledger.call(2)
    assert shown is not None and failed is not None
    assert shown["request"]["messages"][0]["content"] == said.replace(key, "[redacted]")
    assert shown["reply"]["text"] == f"[redacted] and {looks_like_one}"
    assert looks_like_one not in failed["error"], "an error is for people to read"
    assert key not in f"{shown}{failed}"
    assert made.complete(ask(said), CallKey(f"task {key}")).text == shown["reply"]["text"]
    ledger.close()
    assert oct((tmp_path / "calls.sqlite").stat().st_mode & 0o777) == "0o600"


def test_a_reply_comes_back_as_it_was() -> None:
    whole = ChatReply("t", (ToolCall("1", "n", "{}"),), "tool_calls", Usage(1, 2, None, 3, None, 0.1), "why")
    turns = (Turn("assistant", "I look.", (ToolCall("1", "n", "{}"),)), Turn("tool", "found", tool_call_id="1", step=2))
    done = AgentResult("done", {"answer.txt": b"42", "sha256": bytes(range(256))}, turns, Usage(3, 5), isolated=True)
    for said in (whole, ChatReply(""), done, AgentResult("")):
        document, contents = reply_document(said)
        assert read_reply(document, contents.__getitem__) == said


# What can be wrong with the file ------------------------------------------------------------------------


def test_a_look_at_a_live_ledger_changes_nothing_and_waits_for_nobody(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    ledger = filled(Ledger(path))
    view = Ledger(path, read_only=True)
    assert view.sums()[0]["calls"] == 4
    caller(ledger, ScriptedModel("more")).complete(ask())
    assert view.sums()[0]["calls"] == 5
    view.close()
    ledger.close()
    before = sorted(each.name for each in tmp_path.iterdir())
    view = Ledger(path, read_only=True)
    assert view.sums()[0]["calls"] == 5
    view.close()
    assert sorted(each.name for each in tmp_path.iterdir()) == before == ["calls.sqlite"]


@pytest.mark.parametrize("content", [b"this is no database\n" * 100, None])
def test_a_damaged_file_is_told_with_the_cure(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "calls.sqlite"
    filled(Ledger(path)).close()
    if content is None:  # the pages behind the first are lost
        content = path.read_bytes()[:4096] + b"\xff" * (path.stat().st_size - 4096)
    path.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(RunDirectoryError, match=r"calls\.sqlite is damaged .*move it away"):
            Ledger(path, read_only=read_only).sums("stage")


def test_a_ledger_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    filled(Ledger(path)).close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 2")
    for read_only in (False, True):
        with pytest.raises(RunDirectoryError, match=r"newer version of SkillOpt .*upgrade"):
            Ledger(path, read_only=read_only)


def test_a_file_that_was_only_just_made_is_told_and_taken_up(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    path.write_bytes(b"")
    with pytest.raises(RunDirectoryError, match="holds no calls yet"):
        Ledger(path, read_only=True)
    assert filled(Ledger(path)).sums()[0]["calls"] == 4


FULL = """
import resource, signal, sys
from pathlib import Path
from skillopt_kernel.models.call_text import CallKey
from skillopt_kernel.models.calling import ModelCaller
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel_models_probes import ScriptedModel, ask
import random, string
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
made = ModelCaller(ScriptedModel("done"), role="target", ledger=Ledger(Path("calls.sqlite")))
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
count = 0
try:
    while True:
        made.complete(ask("".join(random.choices(string.printable, k=20_000))))
        count += 1
except RunDirectoryError as error:
    print(count, error)
"""


@pytest.mark.skipif(os.name == "nt", reason="a limit of a file's size stands for a full disk")
def test_a_full_disk_is_told_and_loses_no_committed_call(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    done = subprocess.run(
        [sys.executable, "-c", FULL], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    count, _, sentence = done.stdout.partition(" ")
    assert "cannot write calls.sqlite: " in sentence and "Free the space" in sentence
    assert int(count) > 3
    again = Ledger(tmp_path / "calls.sqlite")
    assert again.sums()[0]["calls"] == int(count)
    caller(again, ScriptedModel("more")).complete(ask())
    again.close()


# Prices -------------------------------------------------------------------------------------------------


def test_the_provider_s_own_price_wins() -> None:
    assert usd_of("anything", "simulated", used(1, 1, usd=0.5)) == 0.5


def test_a_price_given_by_hand_wins() -> None:
    prices = {"mine": Price(input=2.0, output=8.0, cached_input=0.5), "plain": Price(input=2.0, output=8.0)}
    for usage in (used(1_000_000, 500_000, usd=0.5), used(1_000_000, 500_000)):
        assert usd_of("mine", "simulated", usage, prices) == 6.0
    cached = used(1_000_000, 500_000, cached_tokens=400_000)
    assert usd_of("mine", "https://api.openai.com/v1", cached, prices) == 1.2 + 0.2 + 4.0
    assert usd_of("plain", "https://api.openai.com/v1", cached, prices) == 6.0
    assert usd_of("mine", "simulated", used(None, 5, usd=0.5), prices) == 0.5, "without tokens the provider's word"
    assert usd_of("other", "simulated", used(1, 1), prices) is None


def test_a_known_model_at_its_provider_has_a_price() -> None:
    price = usd_of("gpt-4o-mini", "https://api.openai.com/v1", used(1_000_000, 0))
    assert price is not None
    assert 0 < price < 10
    cached = usd_of("gpt-4o-mini", "https://api.openai.com/v1", used(1_000_000, 0, cached_tokens=900_000))
    assert cached is not None
    assert cached < price


@pytest.mark.parametrize(
    ("model", "endpoint", "usage"),
    [
        ("gpt-4o-mini", "http://127.0.0.1:8000/v1", used(10, 10)),
        ("no-such-model", "https://api.openai.com/v1", used(10, 10)),
        ("gpt-4o-mini", "https://api.openai.com/v1", used(None, 10)),
        ("gpt-4o-mini", "https://api.openai.com/v1", used(10, 10, cached_tokens=20)),
        ("simulated", "simulated", used(10, 10)),
    ],
)
def test_what_nobody_prices_costs_an_unknown_sum(model: str, endpoint: str, usage: Usage) -> None:
    assert usd_of(model, endpoint, usage) is None


def test_token_estimate() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "\u00e9" * 4)] == [0, 1, 1, 2, 2]
