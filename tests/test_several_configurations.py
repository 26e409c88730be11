"""`skillopt train A B C`: one after another and side by side, under one budget, with one table."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from http_world import KEY, answer, configure, make_project
from skillopt_commands.several import SeveralRun, train_several
from skillopt_kernel import load_config, train
from skillopt_kernel.cli.main import main
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.models.ledger import CALLS, Ledger
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

NAMES = ("one", "two", "three")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Three configurations that differ in their seed: one.yaml, two.yaml and three.yaml."""
    made = three(tmp_path)
    monkeypatch.chdir(tmp_path)
    return made


def three(folder: Path) -> Project:
    project = Project.make(folder, train=8, selection=8, test=4)
    text = (
        (folder / "config.yaml")
        .read_text(encoding="utf-8")
        .replace("num_epochs: 2, train_size: 0, batch_size: 6", "num_epochs: 1, batch_size: 4")
    )
    for seed, name in enumerate(NAMES, 1):
        project.write(f"{name}.yaml", text.replace("seed: 1", f"seed: {seed}"))
    return project


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each of the three comes to when it is trained by itself."""
    folder = tmp_path_factory.mktemp("alone")
    three(folder)
    for name in NAMES:
        train(folder / f"{name}.yaml", out=folder / "out" / name)
    return {name: results(folder / "out" / name) for name in NAMES}


def results(run: Path) -> tuple[str, list[tuple[Any, ...]], tuple[Any, ...]]:
    """What decides in a run: its best skill, its steps and its scores."""
    history = json.loads((run / "history.json").read_text(encoding="utf-8"))
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    steps = [
        tuple(step[name] for name in ("step", "action", "rollout_hard", "candidate_hash", "best_score"))
        for step in history
    ]
    scores = tuple(summary[name] for name in ("status", "baseline_selection_hard", "best_selection_hard", "test_hard"))
    return (run / "best_skill.md").read_text(encoding="utf-8"), steps, scores


def command(*words: str, names: Sequence[str] = NAMES) -> list[str]:
    return ["train", *(f"{name}.yaml" for name in names), "--out", "out", *words]


def rows(out: str) -> dict[str, list[str]]:
    """The table's rows by configuration, cut at two blanks or more."""
    table = out[out.index("configuration  status") :].splitlines()[2:]
    cells = [re.split(r"\s{2,}", line.strip()) for line in table]
    return {row[0]: row[1:] for row in cells if len(row) > 3}


def calls_in(run: Path) -> int:
    ledger = Ledger(run / CALLS, read_only=True)
    try:
        return sum(row["calls"] for row in ledger.sums())
    finally:
        ledger.close()


def started(project: Project, name: str) -> int:
    return sum(event["event"] == "run_started" for event in project.lines(f"out/{name}/events.jsonl"))


@pytest.mark.parametrize("words", [(), ("--parallel", "3")], ids=["one after another", "side by side"])
def test_each_comes_to_what_it_comes_to_alone(
    project: Project, alone: dict[str, Any], capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert main(command(*words)) == 0
    out = capsys.readouterr().out
    assert {name: results(project.folder / "out" / name) for name in NAMES} == alone
    table = rows(out)
    assert list(table) == [*NAMES, "all"]
    made = {name: calls_in(project.folder / "out" / name) for name in NAMES}
    assert [int(table[name][5]) for name in NAMES] == list(made.values())
    assert int(table["all"][0]) == sum(made.values())
    assert [table[name][0] for name in NAMES] == ["finished"] * 3
    assert all((project.folder / "out" / name / "report.md").is_file() for name in NAMES)
    assert [table[name][-1] for name in NAMES] == [str(Path("out") / name) for name in NAMES]
    stages = [line for line in out.splitlines() if re.search(r"rollout +\d+\.\ds", line)]
    assert len(stages) == 6
    assert all(re.match(r"\[(one|two|three)\] ", line) for line in stages) == bool(words)

    assert main(command(*words, "-q")) == 0
    again = rows(capsys.readouterr().out)
    assert [again[name][0] for name in NAMES] == ["finished before"] * 3
    assert [started(project, name) for name in NAMES] == [1, 1, 1]
    assert main(command(*words, "-q", "--fresh")) == 0
    assert rows(capsys.readouterr().out)["two"][-1] == str(Path("out") / "two-2")


def test_without_a_folder_each_lies_where_it_lies_alone(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "one.yaml", "-q"]) == 0
    assert main(["train", "one.yaml", "two.yaml", "-q"]) == 0
    table = rows(capsys.readouterr().out)
    assert (table["one"][0], table["two"][0]) == ("finished before", "finished")
    assert len(list((project.folder / "outputs").iterdir())) == 2


def test_one_that_fails_stops_no_other(
    project: Project, alone: dict[str, Any], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    with ChatServer([Reply("that key is not known", status=401)]) as server:
        model = {"optimizer_backend": "simulated", "target_backend": "openai_compatible", "target": "t"}
        model |= {"simulated_world": "world.yaml", "openai_compatible_base_url": server.url}
        text = (project.folder / "two.yaml").read_text(encoding="utf-8")
        project.write("two.yaml", text[: text.index("model:")] + f"model: {json.dumps(model)}\n")
        assert main(command("-q", "--parallel", "2")) == 2
    out, err = capsys.readouterr()
    table = rows(out)
    assert [table[name][0] for name in NAMES] == ["finished", "failed", "finished"]
    assert "two: " in out and "OPENAI_COMPATIBLE_API_KEY" in out and "Traceback" not in out + err
    assert "Run the same command again" in out
    for name in ("one", "three"):
        assert results(project.folder / "out" / name) == alone[name]


def test_all_are_checked_before_the_first_is_begun(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("two.yaml", "_base_: one.yaml\ntrain: {batch_sise: 4}\n")
    project.write("three.yaml", "_base_: one.yaml\nenv: {split_dir: nowhere}\n")
    assert main(command("-q")) == 2
    err = capsys.readouterr().err
    assert "two.yaml:2" in err and "batch_sise" in err and "Nothing was begun." in err
    assert main(command("-q", names=("one", "three"))) == 2
    err = capsys.readouterr().err
    assert "three: " in err and "nowhere" in err and "Traceback" not in err
    assert not (project.folder / "out").exists()


def test_two_that_would_share_a_folder_are_refused(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    project.write("other/one.yaml", (project.folder / "two.yaml").read_text(encoding="utf-8"))
    told = "would write into the same folder"
    for words in (
        ["train", "one.yaml", "one.yaml", "-q"],
        ["train", "one.yaml", "two.yaml", "-q", "-o", "env.out_root=here"],
        [
            "train",
            "one.yaml",
            "other/one.yaml",
            "-q",
            "--out",
            "out",
            "-o",
            "env.split_dir=data",
            "env.skill_init=skill.md",
        ],
    ):
        assert main(words) == 2
        assert told in capsys.readouterr().err
    assert not any((project.folder / name).exists() for name in ("outputs", "here", "out"))


def test_what_does_not_go_together_is_said(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command("--seeds", "2")) == 2
    assert "--seeds is for one configuration" in capsys.readouterr().err
    assert main(["train", "one.yaml", "--parallel", "2", "--seeds", "2"]) == 2
    assert "--seeds is for one configuration" in capsys.readouterr().err
    assert main(command("--replay", "out")) == 2
    assert "--replay is for one configuration" in capsys.readouterr().err
    assert main(["train", "--parallel", "2"]) == 2
    assert "CONFIG is missing" in capsys.readouterr().err
    assert main(command("--parallel", "0")) == 2
    assert "--parallel" in capsys.readouterr().err
    project.write("two.yaml", "_base_: one.yaml\nbudget: {calls: 100}\n")
    assert main(command("-q")) == 2
    assert "one and two have different sections budget" in capsys.readouterr().err
    assert not (project.folder / "out").exists()


@pytest.mark.parametrize(("parallel", "limits"), [("1", (60,)), ("3", (40, 90))])
def test_they_share_one_budget_also_over_processes(
    project: Project, alone: dict[str, Any], capsys: pytest.CaptureFixture[str], parallel: str, limits: tuple[int, ...]
) -> None:
    words = ("-q", "--parallel", parallel, "-o", "evaluation.eval_test=true", "budget.reserve_final=0")
    made: list[int] = []
    for limit in limits:
        assert main(command(*words, f"budget.calls={limit}")) == 4
        out = capsys.readouterr().out
        assert "budget" in [row[0] for row in rows(out).values()] and "budget.calls" in out
        made.append(
            sum(
                calls_in(project.folder / "out" / name)
                for name in NAMES
                if (project.folder / "out" / name / CALLS).exists()
            )
        )
        assert made[-1] <= limit
    assert made[0] > 0 and made == sorted(set(made))
    assert main(command(*words, "budget.calls=1000")) == 0
    assert {name: results(project.folder / "out" / name) for name in NAMES} == alone


def test_side_by_side_they_share_the_limit_of_an_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)
    project = make_project(tmp_path)
    with ChatServer(lambda body: Reply(answer(body), delay=0.02)) as server:
        configs = []
        for seed in (1, 2, 3):
            configure(
                project, server, train={"num_epochs": 1, "batch_size": 4, "seed": seed}, gradient={"analyst_workers": 4}
            )
            text = (tmp_path / "config.yaml").read_text(encoding="utf-8")
            configs.append(load_config(project.write(f"seed-{seed}.yaml", text)))
        runs = train_several(configs, parallel=3, out=tmp_path / "out")
        assert [run.status for run in runs] == ["finished"] * 3
        assert 1 < server.peak <= 4


def test_what_python_gets(project: Project) -> None:
    configs = [load_config(project.folder / f"{name}.yaml") for name in NAMES[:2]]
    seen: list[str] = []

    def observers(label: str) -> list[tuple[str, Any]]:
        seen.append(label)
        return []

    first, second = train_several(configs, out=project.folder / "out", observers=observers)
    assert isinstance(first, SeveralRun) and seen == ["one", "two"]
    assert (first.label, first.status, first.sentence, first.exit_code) == ("one", "finished", "", 0)
    assert second.summary is not None and second.used["calls"] == second.summary.token_summary["_total"]["calls"]
    with pytest.raises(SkillOptError, match="same folder"):
        train_several([configs[0], configs[0]])


def test_json_has_the_events_of_all_and_then_the_runs(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(command("--json", "--parallel", "3")) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["run"] for line in lines[:-1]} == set(NAMES)
    told = lines[-1]["runs"]
    assert [(run["label"], run["status"], run["exit_code"]) for run in told] == [
        (name, "finished", 0) for name in NAMES
    ]
    assert all(run["summary"]["status"] == "finished" for run in told)


def test_interrupted_all_end_in_order_and_the_same_command_goes_on(tmp_path: Path, alone: dict[str, Any]) -> None:
    project = three(tmp_path)
    words = command("-q", "--parallel", "2")
    journals = [tmp_path / "out" / name / "outcomes.jsonl" for name in NAMES[:2]]

    def under_way() -> bool:
        return all(journal.exists() and journal.read_bytes().count(b"\n") >= 4 for journal in journals)

    slow = ("-o", "model.simulated_latency=0.1")  # free to change on a resume
    ended = project.kill_when(under_way, *words, *slow, with_signal=signal.SIGINT)
    assert ended.code == 130, ended.err
    assert "Stopping: what is in flight is finished and saved." in ended.err and "Traceback" not in ended.err
    table = rows(ended.out)
    assert [table[name][0] for name in NAMES] == ["stopped", "stopped", "not begun"]
    assert not (tmp_path / "out" / "three").exists()
    project.run(*words).ok()
    assert {name: results(tmp_path / "out" / name) for name in NAMES} == alone
    assert [started(project, name) for name in NAMES] == [2, 2, 1]
