"""Runs whose target is an agent program: each job once in the ledger, its files put back, its cost counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from killed_runs import decided, differences
from skillopt_kernel.models.ledger import Ledger
from skillopt_testkit.project import Project
from workshop import jobs_done, make_workshop


def recorded(run: Path) -> list[tuple[str, ...]]:
    """The jobs in the ledger of a run: (stage, prompt, skill)."""
    ledger = Ledger(run / "calls.sqlite", read_only=True)
    calls = [ledger.call(row["number"]) or {} for row in ledger.calls() if row["role"] == "target"]
    ledger.close()
    return [(call["stage"], call["request"]["prompt"], call["request"]["skill"]) for call in calls]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = make_workshop(tmp_path_factory.mktemp("workshop"))
    project.run("train", "config.yaml", "--out", "run").ok()
    return project


def test_what_an_agent_left_is_collected_and_its_turns_are_kept(unbroken: Project) -> None:
    (folder,) = (unbroken.folder / "run/test_eval/predictions").glob("test-3")
    assert (folder / "answer.txt").read_bytes() == b"42"
    assert (folder / "trace.txt").read_bytes() == bytes(range(256)) * 20
    turns = json.loads((folder / "conversation.json").read_text("utf-8"))
    assert [turn["role"] for turn in turns] == ["user", "assistant", "tool", "assistant"]


def test_an_agents_jobs_are_counted_and_shown(unbroken: Project) -> None:
    made = jobs_done(unbroken)
    assert sorted(recorded(unbroken.folder / "run")) == sorted(made)
    told = unbroken.json("run/summary.json")["token_summary"]
    assert (told["_target"]["calls"], told["_target"]["usd"]) == (len(made), pytest.approx(0.01 * len(made)))
    shown = unbroken.run("calls", "run", "--show", "1").ok().out
    for words in (
        "--- skill",
        "--- prompt\nSum train-",
        "[file note.txt, 7 bytes",
        "[file answer.txt, 2 bytes",
        "The sum is",
    ):
        assert words in shown
    assert "--- reply\nThe sum is" in shown and "--- tool\n1,2" in shown


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_killed_and_resumed_no_finished_job_is_done_again(unbroken: Project, tmp_path: Path, executor: str) -> None:
    """Also when the data lie in another folder by then: a job is known by the content of its files."""
    project = make_workshop(tmp_path, execution={"executor": executor})
    for count in (5, 20, 45):
        before = len(jobs_done(project))
        finished = set(recorded(tmp_path / "run")) if before else set()
        project.write("hold", str(count))
        project.kill_when(lambda: len(jobs_done(project)) >= count, "train", "config.yaml", "--out", "run")  # noqa: B023
        assert not finished & set(jobs_done(project)[before:])
    (tmp_path / "hold").unlink()
    before, finished = len(jobs_done(project)), set(recorded(tmp_path / "run"))
    elsewhere = {"SHEETS": str(tmp_path / "elsewhere")}
    project.run("train", "config.yaml", "--out", "run", env=elsewhere).ok()
    assert not finished & set(jobs_done(project)[before:])
    assert sorted(recorded(tmp_path / "run")) == sorted(recorded(unbroken.folder / "run"))
    expected = decided(unbroken.folder / "run")
    changed = differences(tmp_path / "run", expected)
    assert set(changed) <= {"config.json"}, "it names the executor"
