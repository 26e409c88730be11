"""Calls served from the ledger of another run: which, in which order, as what they are recorded; what is refused."""

from __future__ import annotations

import logging
import pickle
from pathlib import Path
from typing import Any

import attrs
import pytest
from skillopt_backend_replay.backend import Replay, make_backend
from skillopt_backend_replay.ledgers import FAULTS, RecordedCalls, ReplayError, ReplayLedger
from skillopt_kernel.errors import CallTimeout, ConfigError, PassingError, RejectedRequest, RunDirectoryError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.models.call_text import CallKey, describe_request
from skillopt_kernel.models.ledger import CallRecord, Ledger
from skillopt_kernel.models.requests import AgentJob, AgentResult, ChatReply, ChatRequest, Message
from skillopt_kernel.records import Usage

SKILL = "# Skill\n" + "\n".join(f"- Rule {number} of the skill." for number in range(40))
ATTEMPT = CallKey("abc123/content/0/train-3", 0, epoch=1, step=2)
SITE = CallKey("step_0002/analyst/fail_000", 0, epoch=1, step=2)
USAGE = Usage(1, 100, 7, usd=0.5)


def asked(text: str = "Which?", **more: Any) -> Any:
    return describe_request("lab", "m", ChatRequest((Message("system", SKILL), Message("user", text)), **more))


WHICH = asked()


def tell(
    ledger: Ledger, key: CallKey, reply: Any = None, status: str = "ok", role: str = "target", asked: Any = WHICH
) -> None:
    """A call that has ended: with a reply, or so."""
    known = {"role": role, "stage": "rollout", "backend": "lab", "model": "m", "started": "2026-01-01T00:00:00.000Z"}
    record = CallRecord(
        **known,
        status=status,
        error=None if reply else f"no: {status}",
        usage=USAGE if reply else None,
        seconds=1.0,
        tries=2,
    )
    ledger.record(record, key, asked, reply)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def replay_of(run: Path) -> ReplayLedger:
    folder = run.with_name("again")
    folder.mkdir(exist_ok=True)
    return ReplayLedger(folder / "calls.sqlite", RecordedCalls(run / "calls.sqlite"))


def test_a_replayed_call_is_recorded_with_its_usage_and_marked_and_then_served_from_the_own_ledger(run: Path) -> None:
    tell(Ledger(run / "calls.sqlite"), ATTEMPT, ChatReply("42", usage=USAGE))
    before = (run / "calls.sqlite").read_bytes()
    for served in (0, 1):
        ledger = replay_of(run)
        reply = ledger.find("target", ATTEMPT, asked())
        assert isinstance(reply, ChatReply) and reply.text == "42"
        (total,) = ledger.sums()
        assert (total["calls"], total["replayed_calls"], total["served_calls"]) == (1, 1, served)
        assert (total["prompt_tokens"], total["usd"], total["seconds"]) == (100, 0.5, 0.0)
        assert ledger.sums(replayed=0) == [], "what was spent here"
        assert ledger.sums(step=2, epoch=1) and ledger.calls()[0]["tries"] == 0
        ledger.close()
    assert (run / "calls.sqlite").read_bytes() == before


def test_an_agents_files_come_with_it_and_a_replay_can_be_replayed(run: Path) -> None:
    job = describe_request("lab", "m", AgentJob("sum", SKILL, {"a.csv": b"1"}))
    done = AgentResult("done", {"out.bin": bytes(range(256))}, usage=USAGE)
    tell(Ledger(run / "calls.sqlite"), ATTEMPT, done, asked=job)
    first = replay_of(run)
    assert first.find("target", ATTEMPT, job) == done
    first.close()
    second = ReplayLedger(run / "third.sqlite", RecordedCalls(run.with_name("again") / "calls.sqlite"))
    assert second.find("target", ATTEMPT, job) == done


def test_an_attempt_gets_its_calls_in_their_order_faults_included_also_after_a_kill(run: Path) -> None:
    source = Ledger(run / "calls.sqlite")
    tell(source, ATTEMPT, status="Cancelled")
    for status in ("CallTimeout", "PermanentError", "RejectedRequest"):
        tell(source, ATTEMPT, status=status)
    tell(source, ATTEMPT, ChatReply("at last"))
    for fault in (CallTimeout, RejectedRequest):
        ledger = replay_of(run)
        with pytest.raises(fault, match=f"no: {fault.__name__}") as caught:
            ledger.find("target", ATTEMPT, asked())
        assert type(caught.value) is fault
        ledger.close()
    ledger = replay_of(run)
    assert ledger.find("target", ATTEMPT, asked()).text == "at last"  # type: ignore[union-attr]
    assert [call["status"] for call in ledger.calls()] == ["CallTimeout", "RejectedRequest", "ok"]


def test_every_fault_after_which_a_run_goes_on_can_be_raised_again() -> None:
    for name, kind in FAULTS.items():
        assert type(kind("why")).__name__ == name
    assert issubclass(CallTimeout, PassingError)


def test_a_judge_that_was_asked_anew_answers_anew(run: Path) -> None:
    source = Ledger(run / "calls.sqlite")
    for text in ("vague", "clear"):
        tell(source, ATTEMPT, ChatReply(text), role="judge")
        source.retire("judge", ATTEMPT.scope)
    ledger = replay_of(run)
    assert ledger.find("judge", ATTEMPT, asked()).text == "vague"  # type: ignore[union-attr]
    ledger.retire("judge", ATTEMPT.scope)
    assert ledger.find("judge", ATTEMPT, asked()).text == "clear"  # type: ignore[union-attr]


def test_the_optimizer_gets_what_the_last_process_was_answered(run: Path) -> None:
    source = Ledger(run / "calls.sqlite")
    tell(source, SITE, status="PassingError", role="optimizer")
    tell(source, SITE, ChatReply("{}"), role="optimizer")
    assert replay_of(run).find("optimizer", SITE, asked()).text == "{}"  # type: ignore[union-attr]


# What the run cannot answer -----------------------------------------------------------------------------------


def refused(ledger: ReplayLedger, role: str, key: CallKey, **request: Any) -> str:
    with pytest.raises(ReplayError) as caught:
        ledger.find(role, key, asked(**request))
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args
    assert ledger.sums() == [], "nothing is recorded of it"
    return str(caught.value)


def test_another_prompt_is_shown_as_a_difference(run: Path) -> None:
    long = "word " * 200
    source = Ledger(run / "calls.sqlite")
    tell(source, ATTEMPT, ChatReply("42"), asked=asked(f"{long} old words {long}", max_tokens=7))
    told = refused(replay_of(run), "target", ATTEMPT, text=f"{long} new words {long}", max_tokens=7)
    assert f"the replay asks something else than {run} did: call 1 of the target at the task 'train-3'" in told
    assert "skill abc123, sample 0" in told and "stage rollout, epoch 1, step 2" in told
    assert f"--- call 1 of {run}\n+++ the replay" in told
    (old,), (new,) = ([line for line in told.splitlines() if line.startswith(f"{sign} ") or (line[1:5] == "word"
                       and line[0] == sign)] for sign in "-+")  # fmt: skip
    assert "old words" in old and "new words" in new and len(old) < 180, "the line that differs, and not the whole text"
    assert "Rule 7" not in told and "max_tokens" not in told, "what is the same is left out"


def test_what_looks_like_a_credential_is_not_shown_even_where_a_line_is_broken(run: Path) -> None:
    key = "sk-abcdefghijklmnopqrstuvwxyz0123456789"
    tell(Ledger(run / "calls.sqlite"), ATTEMPT, ChatReply("42"))
    told = refused(replay_of(run), "target", ATTEMPT, text="x" * 95 + f" {key} api_key={key}")
    assert "[redacted]" in told and key[4:20] not in told


def test_a_long_difference_is_cut_and_says_where_the_rest_is(run: Path) -> None:
    tell(Ledger(run / "calls.sqlite"), ATTEMPT, ChatReply("42"))
    told = refused(replay_of(run), "target", ATTEMPT, text="\n".join(f"line {number}" for number in range(500)))
    assert "+line 10\n" in told and "line 400" not in told
    assert f"\n+... 488 lines more\nskillopt calls {run} --show 1 has all of the old text" in told


def test_another_model_is_told(run: Path) -> None:
    tell(Ledger(run / "calls.sqlite"), ATTEMPT, ChatReply("42"))
    recorded = RecordedCalls(run / "calls.sqlite")
    ledger = ReplayLedger(run / "again.sqlite", recorded, {"target": ("lab", "other")})
    request = ChatRequest((Message("system", SKILL), Message("user", "Which?")))
    with pytest.raises(ReplayError, match=r"-model m of lab\n\+model other of lab"):
        ledger.find("target", ATTEMPT, describe_request("lab", "other", request))


@pytest.mark.parametrize(
    ("role", "key", "nearest"),
    [
        ("target", attrs.evolve(ATTEMPT, scope="other/content/0/train-3"), "call 2 "),  # another skill
        ("target", attrs.evolve(ATTEMPT, scope="abc123/changed/0/train-3"), "call 2 "),  # other data
        ("target", attrs.evolve(ATTEMPT, ordinal=4), "call 3 "),  # one more turn
        ("optimizer", attrs.evolve(SITE, ordinal=1), "call 5 "),  # a reminder
        ("optimizer", attrs.evolve(SITE, scope="step_0002/analyst/succ_001"), "call 4 "),
    ],
)
def test_a_call_that_was_never_made_is_shown_beside_the_nearest_one(
    run: Path, role: str, key: CallKey, nearest: str
) -> None:
    source = Ledger(run / "calls.sqlite")
    tell(source, attrs.evolve(ATTEMPT, scope="old/content/0/train-3", step=1), ChatReply("1"), asked=asked("of step 1"))
    tell(source, ATTEMPT, ChatReply("2"), asked=asked("the first turn"))
    tell(source, attrs.evolve(ATTEMPT, ordinal=1), ChatReply("3"), asked=asked("the second turn"))
    tell(source, attrs.evolve(SITE, scope="step_0002/analyst/fail_001"), ChatReply("{}"), role="optimizer")
    tell(source, SITE, ChatReply("{}"), role="optimizer")
    told = refused(replay_of(run), role, key, text="new words")
    assert f"{run} never made this call: call {key.ordinal + 1} of the {role}" in told
    assert f"The nearest one there is {nearest}" in told and "+new words" in told


def test_a_call_without_any_like_it_and_one_too_many_are_sentences_of_their_own(run: Path) -> None:
    source = Ledger(run / "calls.sqlite")
    tell(source, ATTEMPT, status="PassingError")
    ledger = replay_of(run)
    told = refused(ledger, "judge", ATTEMPT)
    assert "never made this call, nor one like it: call 1 of the judge at the task 'train-3'" in told
    with pytest.raises(PassingError):
        ledger.find("target", ATTEMPT, asked())
    with pytest.raises(ReplayError, match=r"asks once more what .*: call 1 .*PassingError \(no: Pass"):
        ledger.find("target", ATTEMPT, asked())


# Opening ------------------------------------------------------------------------------------------------------


def context(common: Any = None, **more: Any) -> DriverContext:
    return DriverContext(logging.getLogger("lab"), common=common, **more)


def test_a_run_plays_its_models_as_they_were(run: Path) -> None:
    source = Ledger(run / "calls.sqlite")
    tell(source, SITE, ChatReply("{}"), role="optimizer")
    tell(source, ATTEMPT, AgentResult("done"), asked=describe_request("lab", "m", AgentJob("sum", SKILL)))
    replay = make_backend(None, context(run))
    for role, model in (("optimizer", None), ("target", "named"), ("judge", None)):
        assert replay.backend("backend", "lab", None, context(role=role, model=model)) is replay
    both = frozenset({"chat", "agent"})
    assert replay.capabilities == {"optimizer": frozenset({"chat"}), "target": frozenset({"agent"}), "judge": both}
    assert [replay.open_chat(role).model for role in ("optimizer", "target", "judge")] == ["m", "named", ""]
    assert replay.endpoint("target") == f"replayed from {run}"
    replay.close()


def test_what_cannot_be_replayed_is_refused_in_a_sentence(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="skillopt train CONFIG --replay RUN"):
        make_backend(None, context())
    with pytest.raises(RunDirectoryError, match=r"--replay: .*nowhere is not a folder"):
        Replay(tmp_path / "nowhere")
    with pytest.raises(RunDirectoryError, match=r"holds no calls\.sqlite"):
        Replay(run)
    Ledger(run / "calls.sqlite").close()
    with pytest.raises(RunDirectoryError, match="in its own directory"):
        Replay(run).ledger(run / "calls.sqlite")
