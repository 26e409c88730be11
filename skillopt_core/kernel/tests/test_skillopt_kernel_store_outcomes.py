"""The journal of outcomes: nothing committed is lost, nothing missing counts, nothing is written over."""

import json
import shutil
import signal
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import attrs
import pytest
from skillopt_kernel.errors import RunDirectoryError, SkillOptError
from skillopt_kernel.records import Ask, Attempt, Missing, Outcome, Score, Task, ToolCall, Trajectory, Turn, Usage
from skillopt_kernel.store.fields import (
    outcome_fields,
    outcome_from_fields,
    result_row,
    structure,
)
from skillopt_kernel.store.files import read_lines
from skillopt_kernel.store.outcomes import OutcomeStore
from skillopt_kernel.store.redaction import MARKER, Redactor

SKILL = "Answer in one word."
FOLDER = "steps/step_0001/rollout"
TURNS = (
    Turn("system", "You answer."),
    Turn("user", "What?", step=1),
    Turn("assistant", "", (ToolCall("c1", "search", '{"q": "x"}'),)),
    Turn("tool", "found", tool_call_id="c1"),
    Turn("environment", "one step left"),
    Turn("assistant", "half a pair \ud800, a line\u2028separator and ä"),
)
ATTEMPT = Attempt(
    "z", TURNS, {"rows": [1, 2.5, None]}, {"out/a.txt": b"\x00\xff"}, None, Usage(2, 10, 5, None, 0, 0.25, 1), 1.5
)
SCORE = Score(0.0, 0.25, "wrong: 'z'", {"em": 0.0, "f1": 0.25})


def ask(task: str = "q1", skill: str = SKILL, sample: int = 0, **more: Any) -> Ask:
    return Ask(skill, Task(task, inputs={"question": "What?"}, reference=["a"], **more), sample)


def outcome(
    of: Ask, attempt: Attempt | None = ATTEMPT, score: Score | None = SCORE, missing: Missing | None = None
) -> Outcome:
    return Outcome(of.task.id, of.task.kind, "", of.sample, attempt, score, missing, FOLDER)


def missing(of: Ask, reason: str = "endpoint", attempt: Attempt | None = None) -> Outcome:
    return outcome(of, attempt, None, Missing(reason, "it was down"))


def test_what_is_put_is_found_whole_now_and_after_reopening(tmp_path: Path) -> None:
    with OutcomeStore(tmp_path) as store:
        put = store.put(ask(), outcome(ask()))
        assert put == store.find(ask())
        assert put.attempt is not None
        assert (put.score, put.attempt.trajectory, put.attempt.files) == (SCORE, (), {})
        assert put.folder == f"{FOLDER}/predictions/q1"
        assert store.with_trajectory(put).attempt == ATTEMPT
    with OutcomeStore(tmp_path) as store:
        assert store.find(ask()) == put
        assert store.with_trajectory(put).attempt == ATTEMPT
        assert store.count == 1
        assert store.expected_seconds(ask()) == 1.5
        assert store.expected_seconds(ask("unknown")) == 0.0
    folder = tmp_path / put.folder
    assert (folder / "target_system_prompt.txt").read_text() == "You answer."
    assert (folder / "target_user_prompt.txt").read_text() == "What?"
    stored = json.loads((folder / "files.json").read_text())["out/a.txt"]
    assert (folder / stored).read_bytes() == b"\x00\xff"


def test_a_prompt_that_was_written_before_is_kept_once(tmp_path: Path) -> None:
    """Thousands of attempts are shown the same skill; each has its files, and an attempt's own are nobody else's."""
    names = ("target_system_prompt.txt", "target_user_prompt.txt", "conversation.json")
    with OutcomeStore(tmp_path) as store:
        first, second, third = (tmp_path / store.put(ask(name), outcome(ask(name))).folder for name in ("a", "b", "c"))
        for name in names:
            assert (first / name).read_bytes() == (second / name).read_bytes() == (third / name).read_bytes()
        same = [(first / name).samefile(second / name) and (first / name).samefile(third / name) for name in names]
        assert same == [True, True, False]
        assert not any(path.samefile(second / path.name) for path in first.iterdir() if path.name not in names)


def test_a_prompt_is_written_anew_where_the_earlier_one_is_gone(tmp_path: Path) -> None:
    with OutcomeStore(tmp_path) as store:
        first = tmp_path / store.put(ask("a"), outcome(ask("a"))).folder
        (first / "target_system_prompt.txt").unlink()
        second = tmp_path / store.put(ask("b"), outcome(ask("b"))).folder
    assert (second / "target_system_prompt.txt").read_text() == "You answer."


def test_an_outcome_is_found_only_by_the_same_skill_content_and_sample(tmp_path: Path) -> None:
    with OutcomeStore(tmp_path) as store:
        store.put(ask(), outcome(ask()))
        for other in (ask("q2"), ask(skill="Another."), ask(sample=1), ask(kind="b")):
            assert store.find(other) is None


def test_the_first_scored_outcome_stands(tmp_path: Path) -> None:
    with OutcomeStore(tmp_path) as store:
        first = store.put(ask(), outcome(ask()))
        again = store.put(ask(), outcome(ask(), score=Score(1.0, 1.0)))
        assert again == first == store.find(ask())
    assert len(list(read_lines(tmp_path / "outcomes.jsonl"))) == 1


def test_a_missing_outcome_is_written_down_but_never_answers(tmp_path: Path) -> None:
    with OutcomeStore(tmp_path) as store:
        put = store.put(ask(), missing(ask()))
        assert put.missing == Missing("endpoint", "it was down")
        assert not put.scored
        assert (store.find(ask()), store.count) == (None, 0)
        assert store.unscored_attempt(ask()) is None
    with OutcomeStore(tmp_path) as store:
        assert store.find(ask()) is None
        store.put(ask(), outcome(ask()))
        assert store.count == 1
    assert ["missing" in row for _, row in read_lines(tmp_path / "outcomes.jsonl")] == [True, False]


def test_an_attempt_whose_scoring_failed_is_kept_for_scoring_alone(tmp_path: Path) -> None:
    with OutcomeStore(tmp_path) as store:
        unscored = store.put(ask(), missing(ask(), "judge", ATTEMPT))
    with OutcomeStore(tmp_path) as store:
        kept = store.unscored_attempt(ask())
        assert kept == ATTEMPT
        scored = store.put(ask(), outcome(ask(), kept))
        assert scored.folder != unscored.folder
        assert store.with_trajectory(scored).attempt == ATTEMPT
        assert store.unscored_attempt(ask()) is None
    with OutcomeStore(tmp_path) as store:
        assert store.unscored_attempt(ask()) is None
        assert store.find(ask()) == scored


def test_another_attempt_does_not_write_over_one_that_was_kept(tmp_path: Path) -> None:
    with OutcomeStore(tmp_path) as store:
        first = store.put(ask(), missing(ask(), "judge", ATTEMPT))
        second = store.put(ask(), missing(ask(), "judge", attrs.evolve(ATTEMPT, output="other")))
        assert first.folder != second.folder
        assert store.with_trajectory(first).attempt == ATTEMPT


def test_samples_and_names_that_differ_by_case_have_folders_of_their_own(tmp_path: Path) -> None:
    asks = [ask("Q 1"), ask("q 1"), ask("Q"), ask("q"), ask("q", sample=1), ask("q", skill="other"), ask("q-2")]
    with OutcomeStore(tmp_path) as store:
        put = [store.put(one, outcome(one, attrs.evolve(ATTEMPT, output=str(at)))) for at, one in enumerate(asks)]
        assert len({one.folder.casefold() for one in put}) == len(asks)
    with OutcomeStore(tmp_path) as store:
        for at, one in enumerate(asks):
            found = store.find(one)
            assert found is not None
            whole = store.with_trajectory(found)
            assert whole.attempt == attrs.evolve(ATTEMPT, output=str(at))
        late = store.put(ask("Q", sample=2), outcome(ask("Q", sample=2)))
        assert late.folder not in {one.folder for one in put}


def test_hostile_ids_and_file_names_stay_inside_their_folder(tmp_path: Path) -> None:
    run = tmp_path / "run"
    names = {
        "../../escape": b"1", "/etc/passwd": b"2", "conversation.json": b"3", "files.json": b"4", "a": b"5",
        "a/b": b"6", "A": b"7", "..\\..\\w": b"8", "": b"9", "target_user_prompt.txt": b"10", "nul": b"11",
    }  # fmt: skip
    hostile = ask("../../../up")
    attempt = attrs.evolve(ATTEMPT, files=names)
    with OutcomeStore(run) as store:
        put = store.put(hostile, outcome(hostile, attempt))
        assert store.with_trajectory(put).attempt == attempt
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert all("steps" in path.parts for path in run.rglob("*") if path.is_file() and path.name != "outcomes.jsonl")


def test_credentials_are_in_no_file_and_in_no_answer(tmp_path: Path) -> None:
    secret = "sk-0123456789abcdef"
    turns = (Turn("user", f"key {secret}"), Turn("assistant", "", (ToolCall("1", "f", f'{{"k": "{secret}"}}'),)))
    attempt = Attempt(secret, turns, {"k": [secret]}, {"log.txt": secret.encode(), "raw": b"\xff" + b"x"})
    with OutcomeStore(tmp_path, Redactor([secret])) as store:
        put = store.put(ask(), outcome(ask(), attempt, Score(0, 0, f"saw {secret}")))
        lost = store.put(ask("q2"), outcome(ask("q2"), None, None, Missing("endpoint", f"key {secret} refused")))
        assert put.score is not None
        assert put.attempt is not None
        assert lost.missing is not None
        assert (put.score.feedback, put.attempt.output) == (f"saw {MARKER}", MARKER)
        assert lost.missing.message == f"key {MARKER} refused"
    assert all(secret.encode() not in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    "wrong", [{"state": {"rows": {1, 2}}}, {"state": {"x": float("nan")}}, {"state": {("a", "b"): 1}}, {"output": None}]
)
def test_what_no_file_can_hold_is_refused_in_a_sentence_and_leaves_nothing(
    wrong: dict[str, Any], tmp_path: Path
) -> None:
    with OutcomeStore(tmp_path) as store:
        with pytest.raises(
            SkillOptError, match=r"the outcome of task 'q1' cannot be stored: .* JSON values for `state`"
        ):
            store.put(ask(), outcome(ask(), attrs.evolve(ATTEMPT, **wrong)))
        assert store.find(ask()) is None
        put = store.put(ask(), outcome(ask()))
        assert put.folder == f"{FOLDER}/predictions/q1"
    assert len(list(read_lines(tmp_path / "outcomes.jsonl"))) == 1


def test_a_journal_torn_at_every_byte_of_its_last_line_asks_that_task_again(tmp_path: Path) -> None:
    with OutcomeStore(tmp_path) as store:
        store.put(ask("q1"), outcome(ask("q1")))
        size = (tmp_path / "outcomes.jsonl").stat().st_size
        store.put(ask("q2"), outcome(ask("q2")))
    whole = (tmp_path / "outcomes.jsonl").read_bytes()
    for cut in range(size, len(whole)):
        (tmp_path / "outcomes.jsonl").write_bytes(whole[:cut])
        with OutcomeStore(tmp_path) as store:
            assert store.count == 1
            assert store.find(ask("q2")) is None
    with OutcomeStore(tmp_path) as store:
        put = store.put(ask("q2"), outcome(ask("q2"), attrs.evolve(ATTEMPT, files={})))
        assert put.folder.endswith("/q2")
        assert not (tmp_path / put.folder / "files.json").exists()  # nothing is left of the one without a line


def test_a_lost_conversation_leaves_the_score_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with OutcomeStore(tmp_path) as store:
        put = store.put(ask(), outcome(ask()))
        for damage in (b"", b"[{]", b'[{"role": "king", "content": ""}]', b'{"a": 1}'):
            (tmp_path / put.folder / "conversation.json").write_bytes(damage)
            assert store.with_trajectory(put) == put
        shutil.rmtree(tmp_path / put.folder)
        assert store.with_trajectory(put) == put
    assert "predictions/q1 cannot be read back" in caplog.text


def test_lines_of_another_kind_are_passed_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with OutcomeStore(tmp_path) as store:
        store.put(ask(), outcome(ask()))
    with (tmp_path / "outcomes.jsonl").open("ab") as handle:
        handle.write(
            b'{"id": "x"}\n{"id": 1, "skill_hash": 2, "content_hash": 3, "sample": 4, "folder": 5, "attempt": {}}\n'
        )
    with OutcomeStore(tmp_path) as store:
        assert store.count == 1
    assert caplog.text.count("is no outcome and was passed over") == 2


def test_a_run_directory_can_be_moved(tmp_path: Path) -> None:
    with OutcomeStore(tmp_path / "a") as store:
        store.put(ask(), outcome(ask()))
    (tmp_path / "a").rename(tmp_path / "b")
    with OutcomeStore(tmp_path / "b") as store:
        found = store.find(ask())
        assert found is not None
        assert store.with_trajectory(found).attempt == ATTEMPT


def test_many_threads_put_and_find_at_once(tmp_path: Path) -> None:
    asks = [ask(f"q{number}") for number in range(50)]
    results: list[list[Outcome]] = [[] for _ in range(8)]

    def work(mine: list[Outcome]) -> None:
        mine += [store.put(one, outcome(one, attrs.evolve(ATTEMPT, output=one.task.id))) for one in asks]

    with OutcomeStore(tmp_path) as store:
        threads = [threading.Thread(target=work, args=(mine,)) for mine in results]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(mine == results[0] for mine in results)
        assert store.count == len(asks)
        for one in results[0]:
            assert store.with_trajectory(one).attempt == attrs.evolve(ATTEMPT, output=one.task_id)
    assert len(list(read_lines(tmp_path / "outcomes.jsonl"))) == len(asks)
    assert len(list((tmp_path / FOLDER / "predictions").iterdir())) == len(asks)


PUTTING = """
import sys, threading
from pathlib import Path
from skillopt_kernel.records import Ask, Attempt, Missing, Outcome, Score, Task, Turn
from skillopt_kernel.store.outcomes import OutcomeStore
store, say = OutcomeStore(Path(sys.argv[1])), threading.Lock()
def work(thread):
    for number in range(100_000):
        ask = Ask("skill", Task(f"q{thread}-{number}"))
        attempt = Attempt(str(number), (Turn("user", "x" * 3000), Turn("assistant", str(number))))
        score, missing = (Score(0.5, 0.5), None) if number % 5 else (None, Missing("judge", "down"))
        store.put(ask, Outcome(ask.task.id, "", "", 0, attempt, score, missing, "rollout"))
        with say:
            print(ask.task.id, "kept" if missing else "scored", flush=True)
for thread in range(4):
    threading.Thread(target=work, args=(thread,)).start()
"""


def test_a_killed_process_loses_no_outcome_that_was_put(tmp_path: Path) -> None:
    for lines in (1, 57, 400):
        folder = tmp_path / str(lines)
        process = subprocess.Popen([sys.executable, "-c", PUTTING, str(folder)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(lines)]
        process.send_signal(signal.SIGKILL)
        said += process.communicate()[0].splitlines()
        with OutcomeStore(folder) as store:
            whole = [line.split() for line in said if line.rstrip().endswith((" kept", " scored"))]
            assert len(whole) >= lines
            for task_id, what in whole:
                one = Ask("skill", Task(task_id))
                attempt = store.unscored_attempt(one)
                if what == "scored":
                    found = store.find(one)
                    assert found is not None
                    attempt = store.with_trajectory(found).attempt
                assert attempt is not None
                assert attempt.trajectory[1].content == attempt.output == task_id.split("-")[1]


def test_memory_for_many_outcomes_is_small(tmp_path: Path) -> None:
    with OutcomeStore(tmp_path) as store:
        one = store.put(ask(), outcome(ask(), attrs.evolve(ATTEMPT, state={"text": "x" * 500})))
    line = (tmp_path / "outcomes.jsonl").read_text()
    count = 5_000
    with (tmp_path / "outcomes.jsonl").open("w") as handle:
        handle.writelines(
            line.replace('"id": "q1"', f'"id": "t{n}"').replace(one.folder, f"{one.folder}{n}") for n in range(count)
        )
    tracemalloc.start()
    with OutcomeStore(tmp_path) as store:
        used = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert store.count == count
    assert used / count < 600


def test_a_file_where_the_folder_belongs_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "steps").write_text("")
    with OutcomeStore(tmp_path) as store, pytest.raises(RunDirectoryError, match=r"cannot write .*predictions/q1"):
        store.put(ask(), outcome(ask()))


# Fields ----------------------------------------------------------------------------------------------------


def test_every_field_of_an_outcome_survives_the_round_trip() -> None:
    light = attrs.evolve(ATTEMPT, trajectory=(), files={}, ended="max_turns")
    scored = Outcome("q", "kind", "hash", 3, light, SCORE, None, "folder")
    lost = Outcome("q", "", "hash", 0, None, None, Missing("program", "died"), "")
    for one in (scored, lost):
        assert outcome_from_fields(outcome_fields(one)) == one


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hard": True}, "score.hard: must be float, not True"),
        ({"hard": "1"}, "score.hard: must be float"),
        ({"hard": 1.5}, "from 0 to 1"),
        ({"sample": 1.0}, "sample: must be int"),
        ({"named": {"f1": None}}, r"score.named\['f1'\]: must be float"),
        ({"attempt": {"output": 3}}, "attempt.output: must be str"),
        ({"attempt": {"output": "", "ended": "bored"}}, "ended"),
        ({"attempt": {"output": "", "usage": {"calls": 1.5}}}, "attempt.usage.calls: must be int, not 1.5"),
        ({"missing": {"reason": "endpoint"}}, "exactly one"),
        ({"missing": {"reason": "bad luck"}}, "exactly one"),
        ({"id": None}, "task_id: must be str"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(change: dict[str, Any], message: str) -> None:
    row = {**outcome_fields(Outcome("q", "", "h", 0, None, SCORE)), **change}
    with pytest.raises(ValueError, match=message):
        outcome_from_fields(row)


def test_a_missing_field_and_a_wrong_turn_are_named() -> None:
    with pytest.raises(ValueError, match=r"^output: is missing$"):
        structure({}, Attempt)
    with pytest.raises(ValueError, match="reason"):
        outcome_from_fields({"id": "q", "kind": "", "skill_hash": "h", "sample": 0, "missing": {"reason": "bad luck"}})
    with pytest.raises(ValueError, match=r"\[1\].content: must be str, not None"):
        structure([{"role": "user", "content": ""}, {"role": "user", "content": None}], Trajectory)
    with pytest.raises(ValueError, match=r"\[0\]"):
        structure(["text"], Trajectory)


def test_a_row_of_results_keeps_the_names_that_people_know() -> None:
    row = result_row(Outcome("q", "k", "h", 1, ATTEMPT, SCORE, None, "f"), ask().task)
    known = {
        "id": "q", "hard": 0.0, "soft": 0.25, "n_turns": 2, "fail_reason": "wrong: 'z'", "task_type": "k",
        "predicted_answer": "z", "scores": {"em": 0.0, "f1": 0.25}, "seconds": 1.5, "missing": None, "folder": "f",
        "sample": 1, "skill_hash": "h", "question": "What?", "ended": None,
    }  # fmt: skip
    assert row == known
    light = attrs.evolve(ATTEMPT, trajectory=())
    assert result_row(Outcome("q", "", "h", 1, light, Score(1, 1, "right")))["fail_reason"] == ""
    assert result_row(Outcome("q", "", "h", 1, light, SCORE))["n_turns"] == 2
    lost = result_row(Outcome("q", "", "h", 1, missing=Missing("endpoint", "down")))
    assert (lost["hard"], lost["soft"], lost["fail_reason"], lost["missing"]) == (
        None, None, "endpoint: down", "endpoint",
    )  # fmt: skip


def test_a_task_is_the_same_wherever_its_files_lie():
    here = Task("t", inputs={"page": "0a1b"}, files={"page.png": "/here/page.png"})
    assert here.content_hash() == attrs.evolve(here, files={"page.png": "/there/page.png"}).content_hash()
    assert here.content_hash() != attrs.evolve(here, files={"other.png": "/here/page.png"}).content_hash()
    assert here.content_hash() != attrs.evolve(here, inputs={"page": "9f"}).content_hash()
