"""A whole training run as a user starts one: the packaged demo, in its own process and from Python."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import skillopt_core

COMMAND = [sys.executable, "-m", "skillopt_kernel.cli.main"]
DECIDED = ("skills", "best_skill.md", "history.json", "summary.json")
COSTS = {"timing", "tokens", "wall_time_s", "total_wall_time_s", "token_summary", "config"}


def skillopt(*args: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args],
        cwd=cwd,
        capture_output=True,
        encoding=environment.get("PYTHONIOENCODING", "utf-8"),
        timeout=120,
        env={**os.environ, **environment},
    )


def decided(folder: Path) -> dict[str, Any]:
    """All that must not depend on how often a run was killed: skills, decisions and scores."""

    def without_costs(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: without_costs(item) for name, item in value.items() if name not in COSTS}
        return [without_costs(item) for item in value] if isinstance(value, list) else value

    skills = {path.name: path.read_text(encoding="utf-8") for path in sorted((folder / "skills").iterdir())}
    files = {name: without_costs(json.loads((folder / name).read_text())) for name in ("history.json", "summary.json")}
    return {**files, "skills": skills, "best": (folder / "best_skill.md").read_text(encoding="utf-8")}


def asked(folder: Path) -> Counter[tuple[str, str, int]]:
    """How often each outcome was finished."""
    lines = (folder / "outcomes.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return Counter((row["skill_hash"], row["id"], row["sample"]) for row in rows if "hard" in row)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unbroken")
    done = skillopt("train", "demo", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_the_demo_ends_with_a_table_and_the_path_of_the_best_skill(unbroken: Path) -> None:
    done = skillopt("train", "demo", "--out", "run", cwd=unbroken.parent)
    assert done.returncode == 0
    assert "finished already" in done.stdout
    rows = [line for line in done.stdout.splitlines() if line.startswith(("first", "best (", "last"))]
    assert len(rows) == 3
    assert done.stdout.rstrip().endswith("best_skill.md")


def test_training_climbs_on_the_test_tasks_that_it_never_saw(unbroken: Path) -> None:
    summary = json.loads((unbroken / "summary.json").read_text())
    assert summary["test_hard"] > summary["baseline_test_hard"] + 0.2
    assert summary["total_accepts"] > 0
    assert summary["total_rejects"] > 0
    accepted = [
        r["selection_hard"] for r in json.loads((unbroken / "history.json").read_text()) if "accept" in r["action"]
    ]
    assert accepted == sorted(set(accepted))


def test_the_run_directory_is_complete_and_private(unbroken: Path) -> None:
    assert oct(unbroken.stat().st_mode & 0o777) == "0o700"
    for name in ("config.json", "history.json", "runtime_state.json", "summary.json", "events.jsonl", "outcomes.jsonl"):
        assert (unbroken / name).is_file(), name
    step = unbroken / "steps" / "step_0001"
    for name in (
        "merged_patch.json", "ranked_edits.json", "candidate_skill.md", "edit_apply_report.json",
        "trajectory_digest.json", "step_record.json", "rollout/results.jsonl",
    ):  # fmt: skip
        assert (step / name).is_file(), name
    assert list((step / "patches").glob("minibatch_fail_*.json"))
    conversations = list((step / "rollout" / "predictions").glob("*/conversation.json"))
    assert len(conversations) == 10
    assert [turn["role"] for turn in json.loads(conversations[0].read_text())][:2] == ["system", "user"]


def test_events_are_numbered_without_gaps_and_hold_no_text_of_tasks_or_skills(unbroken: Path) -> None:
    events = [json.loads(line) for line in (unbroken / "events.jsonl").read_text().splitlines()]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert (events[0]["event"], events[-1]["event"]) == ("run_started", "run_finished")
    text = (unbroken / "events.jsonl").read_text()
    assert "passage" not in text
    assert str(unbroken.parent) not in text


def test_selection_and_test_tasks_never_reach_the_optimizer(tmp_path: Path) -> None:
    """The leak rule, as far as the files of a run show it: what analysts saw are training tasks."""
    done = skillopt("train", "demo", "--out", "run", "-o", "train.num_epochs=1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    patches = list((tmp_path / "run" / "steps").glob("*/patches/*.json"))
    ids = {task for path in patches for task in json.loads(path.read_text())["task_ids"]}
    assert ids
    assert all(name.startswith("train-") for name in ids)


def test_training_twice_in_one_process_gives_the_same_as_once(unbroken: Path, tmp_path: Path) -> None:
    first = skillopt_core.train("demo", out=tmp_path / "a")
    second = skillopt_core.train(skillopt_core.load_config("demo"), out=tmp_path / "b")
    assert first.test_hard == second.test_hard
    assert decided(tmp_path / "a") == decided(tmp_path / "b") == decided(unbroken)


def test_kill_9_in_the_middle_of_a_step_repeats_no_finished_attempt(unbroken: Path, tmp_path: Path) -> None:
    command = [*COMMAND, "train", "demo", "--out", "run", "--quiet", "-o", "model.simulated_latency=0.03"]
    journal = tmp_path / "run" / "outcomes.jsonl"
    kills = 0
    for wanted in (15, 60, 150, 300):
        process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if journal.exists() and journal.read_bytes().count(b"\n") >= wanted:
                process.send_signal(signal.SIGKILL)
                kills += 1
                break
            time.sleep(0.01)
        process.wait()
    assert kills >= 3
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert max(asked(tmp_path / "run").values()) == 1
    assert decided(tmp_path / "run") == decided(unbroken)


def test_interrupted_once_it_finishes_what_is_in_flight_and_goes_on_later(unbroken: Path, tmp_path: Path) -> None:
    command = [*COMMAND, "train", "demo", "--out", "run", "-o", "model.simulated_latency=0.05"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal = tmp_path / "run" / "outcomes.jsonl"
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 20):
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "saved" in errors
    assert "Traceback" not in errors
    started = (tmp_path / "run" / "events.jsonl").read_text().count('"attempt_started"')
    finished = (tmp_path / "run" / "events.jsonl").read_text().count('"attempt_finished"')
    assert started == finished
    done = skillopt("train", "demo", "--out", "run", "-q", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert max(asked(tmp_path / "run").values()) == 1
    assert decided(tmp_path / "run") == decided(unbroken)


def test_interrupted_twice_it_stops_at_once_and_loses_no_finished_attempt(tmp_path: Path) -> None:
    command = [*COMMAND, "train", "demo", "--out", "run", "-o", "model.simulated_latency=60"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    events = tmp_path / "run" / "events.jsonl"
    while not (events.exists() and events.read_text().count('"attempt_started"') >= 8):
        time.sleep(0.01)
        assert process.poll() is None
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=50)
    assert process.returncode == 130
    assert time.monotonic() - began < 50, "no attempt was waited for"
    done = skillopt("train", "demo", "--out", "run", "-q", "-o", "train.num_epochs=3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert max(asked(tmp_path / "run").values()) == 1


def test_a_directory_of_another_configuration_is_refused_key_by_key(unbroken: Path) -> None:
    done = skillopt("train", "demo", "--out", "run", "-o", "train.batch_size=5", cwd=unbroken.parent)
    assert done.returncode == 2
    assert "train.batch_size: was 10, now 5" in done.stderr
    assert "--fresh" in done.stderr
    assert "Traceback" not in done.stderr


def test_fresh_begins_another_run_beside_it(unbroken: Path) -> None:
    done = skillopt("train", "demo", "--out", "run", "--fresh", "-q", cwd=unbroken.parent)
    assert done.returncode == 0, done.stderr
    assert (unbroken.parent / "run-2" / "best_skill.md").read_text() == (unbroken / "best_skill.md").read_text()


def test_a_directory_that_was_moved_goes_on(unbroken: Path, tmp_path: Path) -> None:
    done = skillopt(
        "train", "demo", "--out", "a", "-q", "-o", "train.num_epochs=1", "optimizer.lr_scheduler=constant", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    (tmp_path / "a").rename(tmp_path / "b")
    done = skillopt(
        "train", "demo", "--out", "b", "-q", "-o", "train.num_epochs=2", "optimizer.lr_scheduler=constant", cwd=tmp_path
    )
    assert "finished" not in done.stderr
    assert done.returncode == 0, done.stderr


def test_case_o_w1_a_console_that_cannot_print_everything_does_not_end_a_run(tmp_path: Path) -> None:
    done = skillopt(
        "train", "demo", "--out", "läuft→", "-o", "train.num_epochs=1", cwd=tmp_path, PYTHONIOENCODING="cp1252"
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "läuft→" / "best_skill.md").is_file()


def test_json_output_is_a_line_of_json_for_each_event_and_the_summary(tmp_path: Path) -> None:
    done = skillopt("train", "demo", "--out", "run", "--json", "-o", "train.num_epochs=1", cwd=tmp_path)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[0]["event"] == "run_started"
    assert lines[-1]["summary"]["test_hard"] is not None


def test_eval_scores_a_skill_on_a_split_and_asks_nothing_twice(unbroken: Path, tmp_path: Path) -> None:
    for _ in range(2):
        done = skillopt(
            "eval", "demo", "--skill", str(unbroken / "best_skill.md"), "--split", "test", "--out", "e", cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "e" / "eval_summary.json").read_text())
    assert result["hard"] == json.loads((unbroken / "summary.json").read_text())["test_hard"]
    assert (result["n_items"], result["n_scored"]) == (40, 40)
    assert max(asked(tmp_path / "e").values()) == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["eval", "demo", "--skill", "none.md"], "none.md"),
        (["eval", "demo", "--skill", "none.md", "--split", "bogus"], "none.md"),
        (["train"], "CONFIG is missing"),
        (["train", "demmo"], "demo"),
        (["train", "demo", "-o", "train.batchsize=10"], "batch_size"),
        (["train", "demo", "-o", "train.batch_size=many"], "train.batch_size"),
        (["train", "demo", "-o", "env.name=alfwrold"], "alfwrold"),
        (["train", "demo", "-o", "evaluation.gate_metric=hrad"], "hard"),
        (["train", "demo", "-o", "env.skill_init=missing.md"], "missing.md"),
        (["train", "demo", "-o", "env.split_dir=nowhere"], "nowhere"),
        (["train", "demo", "-o", "gradient.merge_batch_size=1"], "merge_batch_size"),
        (["train", "demo", "--out", "a-file"], "a-file"),
        (["status", "nowhere"], "nowhere"),
        (["trian", "demo"], "train"),
    ],
)
def test_what_a_user_gets_wrong_is_one_sentence_and_exit_code_2(args: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("x")
    done = skillopt(*args, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "outputs").exists()
