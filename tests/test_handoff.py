"""A whole training whose models are files: stop, answer, go on. It ends as with the same models asked directly."""

from __future__ import annotations

import json
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel import train
from skillopt_kernel.errors import Pending
from skillopt_kernel.models.ledger import CALLS, Ledger
from skillopt_testkit.project import Project

DOCUMENT = Path(__file__).parent.parent / "docs/handoff.md"
MODEL = """\
import json
from pathlib import Path
from skillopt_backend_simulated.backend import SimulatedBackend
from skillopt_backend_simulated.loading import load_world
from skillopt_backend_simulated.settings import SimulatedSettings
from skillopt_kernel.models.requests import ChatRequest, Message

backend = SimulatedBackend(SimulatedSettings(), load_world(Path(__file__).parent / "world.yaml"))

def answer(head, messages):
    told = {name: json.loads(head[name]) for name in ("max_tokens", "seed", "effort") if name in head}
    request = ChatRequest(tuple(Message(**one) for one in messages), stage=head["stage"], **told)
    return backend.open_chat(head["role"]).complete(request).text
"""
WHOLE = {
    "train": {"num_epochs": 3, "batch_size": 6},
    "optimizer": {"use_slow_update": True, "use_meta_skill": True, "slow_update_samples": 3, "learning_rate": 1},
}
"""One step an epoch: guidance in the second and third, advice in the second."""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """The small project; the program of the documentation answers with its simulated world."""
    project = Project.make(tmp_path, train=6, selection=6, test=4)
    project.write("my_model.py", MODEL)
    program = re.search(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert program is not None
    project.write("answer_all.py", program[1])
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield project
    sys.modules.pop("my_model", None)


def configure(project: Project, backend: str, **sections: Any) -> str:
    """Write `config.yaml` with the one backend for both roles."""
    base = project.write("base.yaml", (project.folder / "config.yaml").read_text("utf-8"))
    model = {"optimizer_backend": backend, "target_backend": backend}
    return project.write(f"{backend}.yaml", json.dumps({"_base_": base.name, "model": model, **sections})).name


def answer_all(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["answer_all.py", str(folder)])
        runpy.run_path("answer_all.py", run_name="__main__")


def open_questions(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.md") if not path.name.endswith(".answer.md"))


def kept(folder: Path) -> dict[str, str]:
    """Every file of a run that tells what it did, without times and without what says who answered."""
    without = {"events.jsonl", "config.json", "fingerprint.json", "run.lock"}
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not name.startswith(("handoff/", "calls.sqlite")) and name not in without:
            found[name] = path.read_text("utf-8")
    return found


def plain(value: Any) -> Any:
    """JSON without what a time, a number of tokens or a name of a backend is."""
    left_out = ("seconds", "time", "wall", "timing", "tokens", "token_summary", "usage", "config", "tries", "offset")
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items() if not any(word in key for word in left_out)}
    return [plain(one) for one in value] if isinstance(value, list) else value


def comparable(name: str, text: str) -> Any:
    """A file's content; lines of attempts in an order of their own, since they are written as attempts end."""
    if name.endswith(".jsonl"):
        return sorted(json.dumps(plain(json.loads(line)), sort_keys=True) for line in text.splitlines())
    return plain(json.loads(text)) if name.endswith(".json") else text


def test_a_training_by_files_ends_as_one_by_the_same_models(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    train(configure(project, "simulated", **WHOLE), out="direct")
    config, stages, stops = configure(project, "handoff", **WHOLE), set[str](), 0
    while True:
        try:
            train(config, out="run")
            break
        except Pending as pending:
            stops += 1
            questions = open_questions(Path("run/handoff"))
            by_role = {role: sum(path.name.startswith(role) for path in questions) for role in ("optimizer", "target")}
            for role, count in by_role.items():
                assert not count or re.search(rf"{role}: {count} calls? wait.* in run/handoff", str(pending)), pending
            assert stops < 40, "it does not come to its end"
            stages |= {re.search(r"^stage: (\w+)$", path.read_text("utf-8"), re.M)[1] for path in questions}
            answer_all(monkeypatch, Path("run/handoff"))
    assert stages == {"rollout", "analyst", "merge", "ranking", "selection", "slow_update", "meta_skill", "test"}
    direct, by_files = kept(Path("direct")), kept(Path("run"))
    assert set(direct) == set(by_files)
    for name in direct:
        assert comparable(name, direct[name]) == comparable(name, by_files[name]), name
    asked = len(list(Path("run/handoff/answered").glob("*.answer.md")))
    assert sum(row["calls"] for row in ledger_sums("run")) == asked, "a call was asked twice, or is not in the ledger"
    assert sum(row["calls"] for row in ledger_sums("direct")) == asked


def ledger_sums(run: str) -> list[dict[str, Any]]:
    ledger = Ledger(Path(run) / CALLS, read_only=True)
    try:
        return ledger.sums("role")
    finally:
        ledger.close()


def test_only_what_is_answered_goes_on_and_nothing_is_asked_twice(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the answers at a time."""
    config = configure(project, "handoff", train={"num_epochs": 1}, evaluation={"eval_test": False})
    stops, folder = 0, Path("run/handoff")
    while True:
        try:
            summary = train(config, out="run")
            break
        except Pending as pending:
            stops += 1
            questions = open_questions(folder)
            told = [int(count) for count in re.findall(r"^\S+: (\d+) calls? wait", str(pending), re.M)]
            assert sum(told) == len(questions) > 0
            for question in questions[len(questions) // 2 + 1 :]:  # of one at least one is answered
                question.rename(question.with_suffix(".held"))
            answer_all(monkeypatch, folder)
            for held in folder.glob("*.held"):
                held.rename(held.with_suffix(".md"))
    assert (summary.status, stops > 5) == ("finished", True)
    answered = list((folder / "answered").glob("*.answer.md"))
    assert sum(row["calls"] for row in ledger_sums("run")) == len(answered)
    assert all(row["failed_calls"] == 0 for row in ledger_sums("run"))


def test_what_hangs_on_no_open_call_is_done_meanwhile(project: Project) -> None:
    """One analyst at a time: all of the step are asked; the baseline and the start skill's test are done."""
    model = {"optimizer_backend": "handoff", "target_backend": "simulated", "judge_backend": "simulated"}
    config = configure(project, "mixed", gradient={"analyst_workers": 1, "minibatch_size": 1})
    sections = project.json(config)
    project.write(config, json.dumps({**sections, "model": model}))
    with pytest.raises(Pending, match=r"^optimizer: 6 calls wait for answers in run/handoff"):
        train(config, out="run")
    assert len(open_questions(Path("run/handoff"))) == 6
    rows = project.lines("run/outcomes.jsonl")
    places = [row["folder"].split("/")[0] for row in rows]
    assert (places.count("selection_eval_baseline"), places.count("test_eval_baseline"), len(rows)) == (6, 4, 16)
    stopped = [event for event in project.lines("run/events.jsonl") if event["event"] == "run_failed"]
    assert [event["error"] for event in stopped] == ["Pending"]
    assert not [event for event in project.lines("run/events.jsonl") if event.get("ok") is False]


def test_answers_that_cannot_be_used_end_the_command_with_a_sentence(project: Project) -> None:
    config, folder = configure(project, "handoff"), project.folder / "run/handoff"
    done = project.run("train", config, "--out", "run")
    assert (done.code, done.err.splitlines()[0][:45]) == (3, "target: 16 calls wait for answers in run/hand"), done.err
    assert "Stopped: target: 16 calls wait for answers in run/handoff" in project.run("status", "run").ok().out
    first, second, third, *_ = open_questions(folder)
    first.with_suffix(".answer.md").write_bytes(b"")
    second.with_suffix(".answer.md").write_bytes(b"caf\xe9")
    with pytest.raises(Pending) as pending:
        train(config, out="run")
    for sentence in (f"{first.stem}.answer.md is empty", f"{second.stem}.answer.md is not UTF-8 at byte 3"):
        assert sentence in str(pending.value)
    third.write_text(third.read_text("utf-8").replace("stands", "stood"), encoding="utf-8")
    third.with_suffix(".answer.md").write_text("four", encoding="utf-8")
    project.run("train", config, "--out", "run").refused(f"{third.stem}.answer.md is not taken", "or was edited")
    third.with_suffix(".answer.md").unlink()
    with pytest.raises(Pending):
        train(config, out="run")
    assert "stood" not in third.read_text("utf-8")


def test_a_worker_process_hands_on_that_a_call_is_pending(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configure(project, "handoff", execution={"executor": "processes"}, evaluation={"eval_test": False})
    with pytest.raises(Pending, match="target: 12 calls wait"):
        train(config, out="run")
    answer_all(monkeypatch, Path("run/handoff"))
    with pytest.raises(Pending, match=r"^optimizer: "):
        train(config, out="run")


def test_a_limit_on_calls_counts_those_that_were_answered(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configure(project, "handoff", train={"num_epochs": 1}, evaluation={"eval_test": False})
    calls = None
    for out in ("free", "limited"):
        while True:
            try:
                summary = train(config, [] if calls is None else [f"budget.calls={calls}"], out=out)
                break
            except Pending:
                answer_all(monkeypatch, Path(out) / "handoff")
        calls = sum(row["calls"] for row in ledger_sums(out))
        assert summary.status == "finished", "the limit is what it needs, and no more was counted"
