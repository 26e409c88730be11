"""Whose a run directory is: another process's, another configuration's, another version's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from struck_runs import Begun, Struck

HELD = "run.events.flush(); (here := Path('holding')).touch(); until(lambda: not here.exists())"
"""Holds the run where it is, with all that has happened written down, until somebody removes the file."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Struck:
    return Struck.make(tmp_path_factory.mktemp("holders"))


@pytest.fixture
def out(made: Struck, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a run of this test alone."""
    yield "".join(c if c.isalnum() else "-" for c in request.node.name)
    made.happens("pass")
    (made.project.folder / "holding").unlink(missing_ok=True)


def holding(made: Struck, out: str) -> Begun:
    """A run that is held in its second step."""
    made.happens(HELD)
    begun = made.start("train", "mine.yaml", "--out", out, "-q")
    begun.reach(made.project.folder / "holding")
    return begun


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and "sqlite-shm" not in path.name
    }


def test_a_second_process_is_told_who_holds_the_directory_and_disturbs_nothing(made: Struck, out: str) -> None:
    begun = holding(made, out)
    folder = made.project.folder / out
    before, record = content(folder), json.loads((folder / "run.lock.json").read_text())
    told = f"{out} is in use by process {record['pid']} on {socket.gethostname()} (since {record['since']})"
    made.train(out, "-q").refused(told, "Wait until it has ended, or choose another folder (--out, --fresh).")
    # On a folder that several machines share it is the record that says where.
    (folder / "run.lock.json").write_text(json.dumps(record | {"host": "node-7"}))
    made.train(out, "-q").refused(f"is in use by process {record['pid']} on node-7")
    (folder / "run.lock.json").write_text(json.dumps(record, indent=2) + "\n")
    assert content(folder) == before
    (made.project.folder / "holding").unlink()
    begun.wait().ok()
    assert not (folder / "run.lock.json").exists()
    made.goes_on(out)


def test_a_process_that_is_dead_holds_nothing(made: Struck, out: str) -> None:
    begun = holding(made, out)
    record = json.loads((made.project.folder / out / "run.lock.json").read_text())
    os.kill(record["pid"], signal.SIGKILL)
    assert begun.wait().code == -signal.SIGKILL
    assert (made.project.folder / out / "run.lock.json").exists()
    (made.project.folder / "holding").unlink()
    made.goes_on(out)


def test_a_process_that_was_on_another_machine_is_taken_to_have_ended_and_named(made: Struck, out: str) -> None:
    """Where locks are not seen from one machine to another, the record is all that tells of it."""
    (made.project.folder / out).mkdir()
    record = {"pid": 4711, "host": "node-7", "since": "2026-11-30T00:00:00.000Z"}
    (made.project.folder / out / "run.lock.json").write_text(json.dumps(record))
    done = made.train(out, "-q").ok()
    told = "Its lock is free, so this run goes on; should that one run, stop it."
    assert f"{out} was held by process 4711 on node-7. {told}" in done.err


# Another configuration, another version ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stopped(made: Struck) -> str:
    """The name of a run that was stopped in its second step."""
    made.happens("os.kill(os.getpid(), signal.SIGTERM)")
    assert made.train("stopped", "-q").code == 143
    made.happens("pass")
    return "stopped"


def test_another_configuration_is_refused_with_each_difference_and_nothing_is_changed(
    made: Struck, stopped: str
) -> None:
    before = content(made.project.folder / stopped)
    changed = ("-o", "train.batch_size=2", "gradient.minibatch_size=2", "evaluation.gate_metric=soft")
    done = made.train(stopped, *changed)
    done.refused(
        f"the run in {stopped} was begun with another configuration",
        "train.batch_size: was 4, now 2\n", "gradient.minibatch_size: was 4, now 2\n",
        "Put these back, or begin another run beside it with --fresh",
    )  # fmt: skip
    assert content(made.project.folder / stopped) == before


def test_other_data_and_another_start_skill_are_refused(made: Struck, stopped: str) -> None:
    folder = made.project.folder
    for name, key in (("skill.md", "start_skill (hash of what the target is shown)"), ("data/val/items.json", "data")):
        text = (folder / name).read_text()
        (folder / name).write_text(text.replace("few words", "one word").replace("Which", "Say which"))
        assert "--fresh" in made.train(stopped, "-q").refused(f"{key}: was ").err
        (folder / name).write_text(text)


def test_what_can_change_no_result_is_free_to_change(made: Struck, stopped: str) -> None:
    free = (
        "env.workers=2", "gradient.analyst_workers=2", "env.exec_timeout=50", "env.attempt_timeout=500",
        "model.max_rejections=3", "train.num_epochs=4",
    )  # fmt: skip
    made.train(stopped, "-q", "-o", *free[:-1]).ok()
    done = made.train(stopped, "-q", "-o", *free).ok()
    assert "finished already" not in done.out
    assert len(made.project.json(f"{stopped}/history.json")) == 4


def newer_driver(folder: Path) -> None:
    fingerprint: dict[str, Any] = json.loads((folder / "fingerprint.json").read_text())
    fingerprint["drivers"]["env"] = "skillopt-env-searchqa 99.0"
    (folder / "fingerprint.json").write_text(json.dumps(fingerprint))


def newer_ledger(folder: Path) -> None:
    database = sqlite3.connect(folder / "calls.sqlite")
    database.execute("PRAGMA user_version = 99")
    database.close()


@pytest.mark.parametrize(
    ("newer", "told"),
    [
        (newer_driver, 'drivers.env: was "skillopt-env-searchqa 99.0", now "skillopt-env-searchqa 0.1.0"'),
        (newer_ledger, "calls.sqlite was written by a newer version of SkillOpt"),
    ],
)
def test_a_run_of_a_newer_version_is_refused(
    made: Struck, tmp_path: Path, newer: Callable[[Path], None], told: str
) -> None:
    folder = shutil.copytree(made.project.folder / "unbroken", tmp_path / "run")
    (folder / "summary.json").unlink()
    newer(folder)
    before = content(folder / "steps")
    made.train(str(folder), "-q").refused(told)
    assert content(folder / "steps") == before
