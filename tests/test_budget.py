"""Runs at a limit of their budget: never a request beyond it, an end in order, and a way on."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from http_world import answer, configure, make_project
from killed_runs import decided
from skillopt_commands.evaluation import evaluate
from skillopt_kernel import Budget, BudgetSettings, hookimpl, train
from skillopt_kernel.errors import BudgetSpent, ConfigError, StoppedEarly
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply
from small_worlds import two_rules_a_kind


def asked_twice(folder: Path) -> list[Any]:
    """The answered calls of a run that were made more than once."""
    query = "SELECT role, scope, ordinal FROM calls WHERE status = 'ok' GROUP BY 1, 2, 3 HAVING count(*) > 1"
    with closing(sqlite3.connect(folder / "calls.sqlite")) as ledger:
        return list(ledger.execute(query))


def reached(project: Project) -> list[str]:
    """The warnings of the run in `run`, each in the event of the call that led to it."""
    return [line["warning"] for line in project.lines("run/events.jsonl") if line.get("warning")]


class Counting:
    """The world, which turns some requests away and answers some late in the day."""

    def __init__(self, every: int = 0) -> None:
        self.every, self.count, self.lock = every, 0, threading.Lock()

    def __call__(self, body: Mapping[str, Any]) -> Reply | str:
        with self.lock:
            self.count += 1
            faulty = self.every and self.count % self.every == 0
        if faulty:
            return Reply("slow down", status=429, headers={"retry-after-ms": "5"})
        return answer(body)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The world over HTTP, as the working directory and with its key set: its runs are made in this process."""
    project = make_project(tmp_path, train=40)
    for name, value in project.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    return project


@pytest.mark.parametrize(("every", "executor"), [(0, "threads"), (3, "threads"), (0, "processes")])
def test_never_one_request_beyond_the_limit(project: Project, every: int, executor: str) -> None:
    limit, workers = 37, 24 if executor == "threads" else 2
    with ChatServer(Counting(every)) as server:
        changes: dict[str, Any] = {"execution": {"executor": executor}, "env": {"workers": workers, "limit": 20}}
        config = configure(project, server, train={"batch_size": 20}, **changes, budget={"calls": limit})
        ended = train(config, out="run")
        assert (ended.status, len(server.requests)) == ("budget", limit)
        assert "budget.calls allows 37 calls, 37 calls are used." in ended.budget
        again = train(config, out="run")
        assert (again.status, len(server.requests)) == ("budget", limit), "the same command spends nothing more"
        assert train(config, ["budget.calls=400"], out="run").status == "finished"
    assert asked_twice(project.folder / "run") == []


MINE: dict[str, Any] = {
    "train": {"num_epochs": 3, "batch_size": 2, "accumulation": 2, "seed": 1},
    "gradient": {"minibatch_size": 1, "merge_batch_size": 2},
    "optimizer": {
        "learning_rate": 2, "min_learning_rate": 1, "lr_scheduler": "linear",
        "use_slow_update": True, "slow_update_samples": 8, "use_meta_skill": True,
    },
}  # fmt: skip
WORLD = two_rules_a_kind("{insight: 1.0, harmful: 0.0, distractors: 0.5, over_budget: 0.0, bad_anchors: 0.0}")


def test_a_run_whose_budget_is_raised_again_and_again_ends_as_an_unbroken_one(tmp_path: Path) -> None:
    project = Project.make(tmp_path, train=8, selection=12, test=4)
    project.write("world.yaml", WORLD)
    path = project.write("mine.yaml", json.dumps({"_base_": "config.yaml", **MINE}))
    unbroken = train(path, out=tmp_path / "unbroken")
    calls = unbroken.token_summary["_total"]["calls"]
    summaries, limit = [], 6
    while not summaries or summaries[-1].status == "budget":
        summaries.append(train(path, [f"budget.calls={limit}"], out=tmp_path / "run"))
        used = summaries[-1].token_summary["_total"]["calls"]
        assert used <= limit
        limit += calls // 7
    assert len(summaries) > 5
    assert summaries[-1].status == "finished"
    assert asked_twice(tmp_path / "run") == []
    expected, found = decided(tmp_path / "unbroken"), decided(tmp_path / "run")
    del expected["config.json"], found["config.json"]  # which says what the limit is
    assert {name for name in found if not name.startswith("budget/")} == set(expected)
    assert {name: content for name, content in found.items() if not name.startswith("budget/")} == expected
    steps = [summary.total_steps for summary in summaries]
    assert steps == sorted(steps) and {0, 6} <= set(steps)
    scores = [summary.best_gate_score or 0.0 for summary in summaries]
    assert scores == sorted(scores), "each end has the best skill so far"
    for summary in summaries[:-1]:
        assert "budget.calls" in summary.budget and summary.notes[0] == summary.budget
        assert summary.baseline_test_n + summary.test_n > 0, "the final evaluation had something kept for it"


def test_the_end_is_in_order_and_everyone_is_told(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    ended = project.run("train", "config.yaml", "--out", "run", "-o", "budget.calls=58", "budget.reserve_final=0.2")
    assert (ended.code, ended.err) == (4, "")
    told = "the budget is spent: budget.calls allows 58 calls"
    assert f"Note: {told}" in ended.out
    assert "raise budget.calls and run the same command again" in ended.out
    assert "Warning: 50% of budget.calls is used: 29 calls of 58 calls" in ended.out
    summary = project.json("run/summary.json")
    assert summary["status"] == "budget" and summary["budget"].startswith(told)
    assert summary["token_summary"]["_total"]["calls"] <= 58
    assert 0 < summary["total_steps"] < 4
    best = (tmp_path / "run/best_skill.md").read_text("utf-8")
    assert best == (tmp_path / "run" / f"skills/skill_v{summary['best_step']:04d}.md").read_text("utf-8")
    tested = [summary["test_n"], summary["baseline_test_n"], summary["final_test_n"]]
    assert tested[0] == max(tested) > 0, "the best skill is tested first"
    if min(tested) < 8:
        assert summary["test_delta_hard"] is None, "of parts that differ there is no difference"
    state = project.json("run/runtime_state.json")
    assert state["last_completed_step"] == summary["total_steps"] == len(project.json("run/history.json"))
    finished = project.lines("run/events.jsonl")[-1]
    assert (finished["event"], finished["status"], finished["budget"]) == ("run_finished", "budget", summary["budget"])
    status = project.run("status", "run").ok()
    assert "config: budget, " in status.out and f"Ended early: {told}" in status.out
    assert " budget " in project.run("runs", ".").ok().out
    assert json.loads(project.run("status", "run", "--json").ok().out)["status"] == "budget"
    assert "4 stopped so at a limit of the budget" in " ".join(project.run("train", "--help").ok().out.split())
    resumed = project.run("train", "config.yaml", "--out", "run", "-o", "budget.calls=500").ok()
    assert f"budget     {summary['token_summary']['_total']['calls']} calls of 500 calls used" in resumed.out
    assert not (project.json("run/summary.json")["budget"])


def test_a_limit_of_one_role_ends_the_run_under_its_own_name(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    ended = project.run("train", "config.yaml", "--out", "run", "-q", "-o", "budget.roles.optimizer.calls=3")
    assert ended.code == 4
    assert "budget.roles.optimizer.calls allows 3 calls, 3 calls are used." in ended.out
    summary = project.json("run/summary.json")
    assert summary["token_summary"]["_optimizer"]["calls"] == 3
    assert summary["test_n"] == 8, "the target has no limit, and the final evaluation needs no optimizer"


def test_each_level_is_told_once_though_the_run_was_killed_between(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    command = ("train", "config.yaml", "--out", "run", "-o", "budget.calls=90")

    def half_is_told() -> bool:
        return bool(reached(project)) and len(project.lines("run/events.jsonl")) > 120

    project.kill_when(half_is_told, *command, "model.simulated_latency=0.02")
    assert [told[:26] for told in reached(project)] == ["50% of budget.calls is used"[:26]]
    project.run(*command).ok()
    assert [told[:3] for told in reached(project)] == ["50%", "80%"]


# Unknown use and prices ---------------------------------------------------------------------------------


def test_a_limit_in_dollars_without_a_price_is_refused_before_anything_is_sent(project: Project) -> None:
    with ChatServer(answer) as server:
        config = configure(project, server, budget={"usd": 0.3})
        for overrides, words in (
            ([], ("config.yaml:1:", "budget.usd: is a limit, but the target's model tells no price")),
            (
                ["budget.usd=", "budget.roles.optimizer.usd=1"],
                ("budget.roles.optimizer.usd: is a limit", "the optimizer's"),
            ),
        ):
            with pytest.raises(
                ConfigError, match=r"budget\.assume_per_call\.usd, or the price in model\.prices"
            ) as refused:
                train(config, overrides, out="run")
            assert all(word in str(refused.value) for word in words)
        assert server.requests == [] and not (project.folder / "run").exists()
        price = "{input: 100, output: 1800}"  # 10 and 5 tokens a call: one cent
        prices = [f"model.prices={{target: {price}, optimizer: {price}}}", "env.max_completion_tokens=5"]
        ended = train(config, prices, out="run")
        assert ended.status == "budget" and "budget.usd allows $0.3000, " in ended.budget
        usd = ended.token_summary["_total"]["usd"]
        assert 0 < usd <= 0.3 and usd == pytest.approx(0.01 * len(server.requests))


def test_o_c2_an_optimizer_that_may_cost_more_than_is_left_is_not_asked(project: Project) -> None:
    """$0.95 of $1.00 are spent, and its call may take up to $0.40."""
    with ChatServer(answer) as server:
        prices = {
            "target": {"input": 0, "output": 190_000},
            "optimizer": {"input": 0, "output": 80_000},
        }  # $0.95 and $0.40
        config = configure(
            project, server, budget={"usd": 1.0}, model={"prices": prices, "openai_compatible_max_tokens": 5},
            train={"batch_size": 1}, evaluation={"use_gate": False}, env={"limit": 1, "max_completion_tokens": 5},
        )  # fmt: skip
        ended = train(config, out="run")
        assert [received.body["model"] for received in server.requests] == ["target"]
    assert "$0.9500 are used, and the next request (" in ended.budget and "raise budget.usd" in ended.budget


def test_a_backend_that_tells_no_tokens_is_found_out_and_ends_the_run_in_order(project: Project) -> None:
    with ChatServer(lambda body: Reply(answer(body), usage=None)) as server:
        config = configure(project, server, budget={"tokens": 9_000_000}, env={"limit": 4})
        ended = train(config, out="run")
        assert ended.status == "budget"
        assert "config.yaml:1:" in ended.budget
        assert "budget.tokens: is a limit, but the target's model tells no tokens" in ended.budget
        count = len(server.requests)
        assert count <= 8, "what the workers had begun"
        with pytest.raises(ConfigError, match=r"budget\.assume_per_call\.tokens"):
            train(config, out="run")
        assert len(server.requests) == count
        assert train(config, ["budget.assume_per_call.tokens=900"], out="run").status == "finished"
    assert asked_twice(project.folder / "run") == []


# Time, stops, and several runs --------------------------------------------------------------------------


def test_wall_time_ends_a_run_and_more_of_it_lets_it_go_on(tmp_path: Path) -> None:
    project = Project.make(tmp_path, train=4, selection=4, test=2)
    config = project.folder / "config.yaml"
    ended = train(config, ["budget.wall_minutes=0.0001"], out=tmp_path / "run")
    assert ended.status == "budget" and "budget.wall_minutes allows 0.0 minutes" in ended.budget
    assert train(config, ["budget.wall_minutes=60"], out=tmp_path / "run").status == "finished"


class Watching:
    """Notes that the run has failed, which it does before it waits for what is in flight."""

    def __init__(self) -> None:
        self.failed = threading.Event()

    @hookimpl
    def skillopt_run_failed(self, event: Any) -> None:
        self.failed.set()


def test_a_stop_ends_those_who_wait_for_room(project: Project) -> None:
    release, two_open, stop = threading.Event(), threading.Event(), threading.Event()
    open_now: list[int] = []

    def held(body: Mapping[str, Any]) -> str:
        open_now.append(1)
        if len(open_now) == 2:
            two_open.set()
        assert release.wait(60)
        return answer(body)

    watching, raised = Watching(), list[BaseException]()

    def run() -> None:
        try:
            train(config, out="run", plugins=[("watching", watching)], stop=stop)
        except BaseException as error:
            raised.append(error)

    with ChatServer(held) as server:
        config = configure(project, server, budget={"calls": 2}, env={"limit": 4})
        thread = threading.Thread(target=run)
        thread.start()
        assert two_open.wait(60)
        stop.set()
        assert watching.failed.wait(60), "nobody waits for room any more"
        assert thread.is_alive(), "what is in flight is finished"
        release.set()
        thread.join(60)
        assert len(raised) == 1 and type(raised[0]) is StoppedEarly
        assert len(server.requests) == 2
        assert train(config, ["budget.calls=400"], out="run").status == "finished"


def test_runs_in_one_process_share_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Project.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    first = train("config.yaml", out="first")
    needed = first.token_summary["_total"]["calls"]
    shared = Budget(BudgetSettings(calls=2 * needed - 10))
    found = [
        train("config.yaml", [f"train.seed={seed}"], out=name, budget=shared)
        for seed, name in ((1, "first"), (2, "second"))
    ]
    assert [summary.status for summary in found] == ["finished", "budget"]
    used, limit = shared.standing()["budget.calls"]
    assert used == needed + found[1].token_summary["_total"]["calls"] <= limit
    more = Budget(BudgetSettings(calls=4 * needed))
    assert train("config.yaml", ["train.seed=2"], out="second", budget=more).status == "finished"


def test_an_evaluation_at_its_limit_goes_on(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    asked: dict[str, Any] = {"skill": tmp_path / "skill.md", "split": "test", "out": tmp_path / "scored"}
    with pytest.raises(BudgetSpent, match=r"budget\.calls allows 5 calls, 5 calls are used") as ended:
        evaluate(project.folder / "config.yaml", overrides=["budget.calls=5"], **asked)
    assert ended.value.exit_code == 4
    assert evaluate(project.folder / "config.yaml", overrides=["budget.calls=8"], **asked).n_scored == 8
    assert asked_twice(tmp_path / "scored") == []
