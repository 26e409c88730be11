"""One writer, the layout, the fingerprint, what is committed, and the view of a live run."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest
from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.store.directory import RunDirectory
from skillopt_kernel.store.event_log import EventLog
from skillopt_kernel.store.files import read_text
from skillopt_kernel.store.lock import RunLock, holder
from skillopt_kernel.store.reading import read_run
from skillopt_kernel.store.state import History, RunState

FINGERPRINT = {"train": {"batch_size": 40, "seed": 0}, "data": "abc", "models": ["a", "b"]}
STATE = RunState(
    last_completed_step=2,
    current_skill_path="skills/skill_v0002.md",
    current_score=0.0,
    current_origin="initial_skill",
    best_skill_path="skills/skill_v0001.md",
    best_score=0.5,
    best_step=1,
    best_origin="step_0001",
    extra={"memory": [{"step": 1}], "plugins": {"mine": {"n": 1}}},
)


def begun(root: Path) -> RunDirectory:
    directory = RunDirectory.open(root, FINGERPRINT)
    directory.begin({"train": {"batch_size": 40}}, FINGERPRINT)
    return directory


# The lock --------------------------------------------------------------------------------------------------

HOLDING = """
import sys, time
from pathlib import Path
from skillopt_kernel.store.lock import RunLock
with RunLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_process_is_refused_with_the_name_of_the_first_until_that_one_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    try:
        with (
            pytest.raises(RunDirectoryError, match=f"in use by process {process.pid} on .* --fresh"),
            RunLock(tmp_path),
        ):
            pass
        held = holder(tmp_path)
        assert held is not None
        assert held["pid"] == process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert holder(tmp_path) is None
    with RunLock(tmp_path):
        held = holder(tmp_path)
        assert held is not None
        assert held["pid"] == os.getpid()
        with pytest.raises(RunDirectoryError, match=f"process {os.getpid()}"), RunLock(tmp_path):
            pass
    assert holder(tmp_path) is None


def test_two_directories_can_be_held_by_one_process(tmp_path: Path) -> None:
    with RunLock(tmp_path / "a"), RunLock(tmp_path / "b"):
        assert holder(tmp_path / "a") is not None
        assert holder(tmp_path / "b") is not None


# The directory ---------------------------------------------------------------------------------------------


def test_the_layout_has_the_names_that_people_know(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    paths = {
        directory.step(3): "steps/step_0003",
        directory.rollout(3): "steps/step_0003/rollout",
        directory.rollout(3, 0): "steps/step_0003/batch_0/rollout",
        directory.patches(3): "steps/step_0003/patches",
        directory.patches(3, 1): "steps/step_0003/batch_1/patches",
        directory.selection_eval(12345): "steps/step_12345/selection_eval",
        directory.slow_update(2): "slow_update/epoch_02",
        directory.meta_skill(2): "meta_skill/epoch_02",
        directory.skill(0): "skills/skill_v0000.md",
    }
    for path, name in paths.items():
        assert directory.relative(path) == name
    assert list(tmp_path.iterdir()) == []


def test_the_default_name_depends_on_the_fingerprint_and_not_on_its_order() -> None:
    name = RunDirectory.default_name("my config", FINGERPRINT)
    assert name == RunDirectory.default_name("my config", dict(reversed(FINGERPRINT.items())))
    assert name != RunDirectory.default_name("my config", {**FINGERPRINT, "data": "other"})
    assert name.startswith("my_config-")
    int(name[-8:], 16)


def test_a_directory_is_fresh_then_unfinished_then_finished(tmp_path: Path) -> None:
    root = tmp_path / "run"
    assert not RunDirectory(root).begun
    begun(root)
    assert RunDirectory(root).begun
    assert not RunDirectory(root).finished
    (root / "summary.json").write_text('{"status": "incomplete"}')
    assert not RunDirectory(root).finished
    (root / "summary.json").write_text('{"status": "finished", "best_step": 3}')
    assert RunDirectory(root).finished
    assert RunDirectory.open(root, FINGERPRINT).summary()["best_step"] == 3
    if os.name == "posix":
        assert root.stat().st_mode & 0o777 == 0o700


def test_a_process_killed_before_the_fingerprint_left_a_fresh_directory(tmp_path: Path) -> None:
    for name in ("config.json", "run.lock", "run.lock.json", ".fingerprint.json.9.tmp"):
        (tmp_path / name).write_text("{}")
    assert not RunDirectory.open(tmp_path, FINGERPRINT).begun


def test_fresh_begins_beside_what_is_there(tmp_path: Path) -> None:
    assert RunDirectory.open(tmp_path / "run", FINGERPRINT, fresh=True).root == tmp_path / "run"
    begun(tmp_path / "run")
    begun(tmp_path / "run-2")
    assert RunDirectory.open(tmp_path / "run", {"other": 1}, fresh=True).root == tmp_path / "run-3"


def test_a_folder_that_holds_something_else_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(RunDirectoryError, match=r"not a run directory \(it holds thesis\.tex\); choose another folder"):
        RunDirectory.open(tmp_path, FINGERPRINT)
    with pytest.raises(RunDirectoryError, match="is a file, not a folder"):
        RunDirectory.open(tmp_path / "thesis.tex", FINGERPRINT)


def test_another_configuration_is_refused_key_by_key(tmp_path: Path) -> None:
    begun(tmp_path)
    other = {"train": {"batch_size": 20, "seed": 0, "accumulation": 2}, "models": ["a"], "prompts": "p" * 300}
    with pytest.raises(RunDirectoryError) as caught:
        RunDirectory.open(tmp_path, other)
    told = str(caught.value)
    assert "  train.batch_size: was 40, now 20\n" in told
    assert "  train.accumulation: was (not set), now 2\n" in told
    assert '  data: was "abc", now (not set)\n' in told
    assert '  models: was ["a", "b"], now ["a"]\n' in told
    assert "seed" not in told
    assert "--fresh" in told
    assert max(map(len, told.splitlines()[1:-1])) < 160


def test_what_may_change_is_left_to_the_caller(tmp_path: Path) -> None:
    begun(tmp_path)
    other = {**FINGERPRINT, "train": {"batch_size": 40, "seed": 1}}
    RunDirectory.open(tmp_path, other, may_change=lambda key, old, new: key == "train.seed" and new > old)
    with pytest.raises(RunDirectoryError, match=r"train\.seed: was 0, now 1"):
        RunDirectory.open(tmp_path, other, may_change=lambda key, old, new: new < old)
    assert RunDirectory(tmp_path).differences({**FINGERPRINT, "models": ("a", "b")}) == {}


def test_a_committed_skill_is_never_written_over(tmp_path: Path) -> None:
    directory = begun(tmp_path)
    directory.save_skill(3, "left by a killed process")
    directory.save_skill(3, "taken again")
    attrs.evolve(STATE, last_completed_step=3).save(tmp_path)
    directory.save_skill(3, "taken again")
    with pytest.raises(RunDirectoryError, match=r"skill_v0003\.md: the skill of step 3 is saved already"):
        directory.save_skill(3, "something else")
    assert read_text(directory.skill(3)) == "taken again"
    directory.save_skill(4, "left\r\n")
    assert read_text(directory.skill(4)) == "left\r\n"
    with pytest.raises(RunDirectoryError, match=r"skill_v0009\.md: No such file"):
        read_text(directory.skill(9))


# State and history -----------------------------------------------------------------------------------------


def test_a_state_survives_with_a_score_of_zero_and_none(tmp_path: Path) -> None:
    assert RunState.load(tmp_path) is None
    STATE.save(tmp_path)
    assert RunState.load(tmp_path) == STATE
    unknown = attrs.evolve(STATE, current_score=None, best_score=None)
    unknown.save(tmp_path)
    assert RunState.load(tmp_path) == unknown


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"last_completed_step": "2"}, "last_completed_step: must be int"),
        ({"current_score": True}, "current_score: must be float, not True"),
        (
            {"best_skill_path": "/elsewhere/skill.md"},
            "best_skill_path: the path '/elsewhere/skill.md' must lie inside the run directory",
        ),
        ({"current_skill_path": "../skill.md"}, "must lie inside the run directory"),
        ({"extra": []}, "extra: "),
    ],
)
def test_a_state_that_cannot_be_used_is_refused_with_its_field(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    STATE.save(tmp_path)
    row = json.loads((tmp_path / "runtime_state.json").read_text())
    (tmp_path / "runtime_state.json").write_text(json.dumps(row | change))
    with pytest.raises(RunDirectoryError, match=rf"runtime_state\.json: the saved state cannot be used: .*{message}"):
        RunState.load(tmp_path)


def test_a_truncated_or_empty_state_is_an_error_and_never_a_fresh_start(tmp_path: Path) -> None:
    STATE.save(tmp_path)
    whole = (tmp_path / "runtime_state.json").read_bytes()
    for cut in (0, 1, len(whole) // 2, len(whole) - 3):
        (tmp_path / "runtime_state.json").write_bytes(whole[:cut])
        with pytest.raises(RunDirectoryError, match=r"runtime_state\.json"):
            RunState.load(tmp_path)


def test_history_is_cut_to_the_committed_step(tmp_path: Path) -> None:
    history = History(tmp_path)
    assert history.load() == []
    assert history.truncate(0) == []
    records = [{"step": number, "score": 0.0, "action": "reject"} for number in (1, 2, 3)]
    history.write(records)
    assert json.loads((tmp_path / "history.json").read_text()) == records
    assert history.truncate(2) == records[:2] == history.load()
    with pytest.raises(RunDirectoryError, match=r"history\.json: the saved state stands at step 3"):
        history.truncate(3)
    (tmp_path / "history.json").write_text('{"step": 1}')
    with pytest.raises(RunDirectoryError, match="must be a list of step records"):
        history.load()


COMMITTING = """
import sys
from pathlib import Path
from skillopt_kernel.store.directory import RunDirectory
from skillopt_kernel.store.state import History, RunState
directory = RunDirectory(Path(sys.argv[1]))
state = RunState.load(directory.root)
step = state.last_completed_step if state else 0
records = History(directory.root).truncate(step)
if state:
    directory.save_best((directory.root / state.best_skill_path).read_text())
print("resumed", flush=True)
while True:
    step += 1
    directory.save_skill(step, f"skill {step} of {sys.argv[2]}" + "x" * 20_000)
    records.append({"step": step, "padding": "x" * 1000})
    History(directory.root).write(records)
    path = directory.relative(directory.skill(step))
    RunState(last_completed_step=step, current_skill_path=path, current_score=0.0, current_origin="", best_score=0.0,
             best_skill_path=path, best_step=step, best_origin="").save(directory.root)
    directory.save_best(directory.skill(step).read_text())
    print(step, flush=True)
"""


def test_case_o_r2_a_kill_between_any_two_writes_leaves_the_last_commit(tmp_path: Path) -> None:
    begun(tmp_path)
    committed = 0
    for turn, wait in enumerate((0.0, 0.004, 0.009, 0.013, 0.017)):
        process = subprocess.Popen(
            [sys.executable, "-c", COMMITTING, str(tmp_path), str(turn)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "resumed\n"
        if committed:
            best = (tmp_path / "best_skill.md").read_text()
            assert best.startswith(f"skill {committed} of")  # never of a step beyond the commit
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(wait)
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        assert not err
        told = [int(line) for line in out.splitlines(keepends=True) if line.endswith("\n")]
        state = RunState.load(tmp_path)
        if state is None:
            assert not told
            continue
        committed = state.last_completed_step
        assert committed >= (told[-1] if told else 0)
        assert len(History(tmp_path).load()) in (committed, committed + 1)
        skill = (tmp_path / state.current_skill_path).read_text()
        assert skill.startswith(f"skill {committed} of ")
        process.stdout.close()


# The view --------------------------------------------------------------------------------------------------


def test_a_live_run_is_seen_without_touching_it(tmp_path: Path) -> None:
    root = tmp_path / "searchqa-12345678"
    directory = begun(root)
    with RunLock(root), closing(EventLog(root, root.name)) as log:
        log.emit("run_started", config="searchqa", total_steps=8)
        for step in (1, 2, 3):
            log.emit("stage_started", epoch=1, step=step, stage="rollout")
        log.flush()
        History(root).write([{"step": 1}, {"step": 2}])
        STATE.save(root)
        with (root / "events.jsonl").open("ab") as handle:
            handle.write(b'{"seq": 5, "torn')
        before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.name != "run.lock"}
        view = read_run(directory.root)
        assert {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.name != "run.lock"} == before
    assert (view.status, view.problem, view.config_name) == ("running", "", "searchqa")
    assert (view.step, view.total_steps, view.current_score, view.best_score, view.best_step) == (2, 8, 0.0, 0.5, 1)
    assert view.at == {"epoch": 1, "step": 3, "stage": "rollout"}
    assert view.holder is not None
    assert view.holder["pid"] == os.getpid()
    assert view.updated
    assert [record["step"] for record in view.history] == [1, 2]
    assert read_run(root).status == "unfinished"
    (root / "summary.json").write_text('{"status": "finished"}')
    assert read_run(root).status == "finished"


def test_a_broken_or_foreign_folder_is_reported(tmp_path: Path) -> None:
    assert read_run(tmp_path).status == "foreign"
    assert read_run(tmp_path / "gone").problem.endswith("is not a folder.")
    begun(tmp_path / "run")
    (tmp_path / "run" / "events.jsonl").write_bytes(b"\xff\n[]\n")
    view = read_run(tmp_path / "run")
    assert (view.status, view.step, view.config_name, view.updated) == ("unfinished", 0, "run", "")
    for name, content in (("runtime_state.json", b"{"), ("summary.json", b"[]"), ("history.json", b"3")):
        (tmp_path / "run" / name).write_bytes(content)
        view = read_run(tmp_path / "run")
        assert view.status == "broken"
        assert name in view.problem
        (tmp_path / "run" / name).unlink()
