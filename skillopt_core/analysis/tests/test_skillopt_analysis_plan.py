"""`skillopt plan`: ranges, prices, time and an earlier run, and that nobody is asked and nothing written."""

from __future__ import annotations

import json
import re
from math import isclose
from pathlib import Path
from typing import Any, Literal

import pytest
from skillopt_analysis.planning.amounts import Part, Range
from skillopt_analysis.planning.assuming import Assumed, like_run
from skillopt_analysis.planning.counts import binomial, merges
from skillopt_analysis.planning.making import TrainingPlan, plan_training
from skillopt_kernel import load_config, train
from skillopt_kernel.cli.main import main
from skillopt_kernel.interfaces import Environment, Target
from skillopt_kernel.records import Attempt, Task
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path / "project")


def planned(project: Project, *overrides: str, assumed: Assumed | None = None) -> TrainingPlan:
    return plan_training(load_config(project.folder / "config.yaml", overrides), assumed)


def calls(plan: TrainingPlan, stage: str) -> tuple[float, ...]:
    found = next(amount.calls for (_, name), amount in plan.by_stage().items() if name == stage)
    return (found.least, found.expected, found.most)


def told(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    code = main(["plan", *map(str, words)])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    return captured.out


def refused(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    code = main(["plan", *map(str, words)])
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert "Traceback" not in captured.err
    return captured.err


def test_a_range_adds_and_scales() -> None:
    assert Range.sum([Range(1, 2, 3), Range.exactly(4) * 2]) == Range(9, 10, 11)
    assert Range(1, 2, 3).times(Range(0, 1, 2)) == Range(0, 2, 6)
    assert Range.sum([]) == Range(0, 0, 0)


def test_a_round_is_not_shorter_for_being_half_empty() -> None:
    def rounds(expected: float) -> float:
        return Part(role="target", stage="rollout", calls=Range(0, expected, 40), at_once=8).rounds().expected

    assert [rounds(8 * n) for n in (1, 2, 5)] == [1, 2, 5]
    assert (rounds(3), rounds(0.5), rounds(0)) == (1, 0.5, 0)


@pytest.mark.parametrize(("size", "chance"), [(1, 0.3), (40, 0.5), (4000, 0.01), (7, 0.0), (7, 1.0)])
def test_probabilities_add_up_at_every_size(size: int, chance: float) -> None:
    chances = binomial(size, chance)
    assert isclose(sum(chances), 1.0, rel_tol=1e-9)
    assert isclose(sum(failed * one for failed, one in enumerate(chances)), size * chance, rel_tol=1e-9)


def test_merges_never_fall_with_more_proposals() -> None:
    for batch_size in (2, 3, 8):
        most = [max(merges(failed, count - failed, batch_size) for failed in range(count + 1)) for count in range(20)]
        assert most == sorted(most)
        assert most[:2] == [0, 0]


def test_what_is_certain_is_counted_to_the_call(project: Project) -> None:
    plan = planned(project, "train.num_epochs=3", "train.batch_size=5", "evaluation.use_gate=false")
    assert (plan.steps_per_epoch, plan.steps) == (3, 9)
    assert calls(plan, "rollout") == (36, 36, 36)
    assert calls(plan, "selection")[0] == 12  # the baseline
    assert calls(plan, "selection")[2] == 12 + 9 * 12
    assert calls(plan, "test") == (8, 24, 24)
    assert calls(planned(project), "test") == (8, 16, 24)


def test_samples_and_refills(project: Project) -> None:
    assert calls(planned(project, "train.samples_per_task=3"), "rollout") == (72, 72, 72)
    # Twelve tasks in steps of two batches of five: the second step is refilled from tasks of the first.
    least, expected, most = calls(planned(project, "train.batch_size=5", "train.accumulation=2"), "rollout")
    assert least == 24
    assert least < expected < most <= 34


def test_a_stage_that_is_switched_off_is_not_planned(project: Project) -> None:
    guided = ("optimizer.use_slow_update=true", "optimizer.use_meta_skill=true", "train.num_epochs=3")
    stages = {stage for _, stage in planned(project, *guided).by_stage()}
    assert {"slow_update", "meta_skill", "analyst", "merge", "ranking", "test"} <= stages
    without = (*guided, "hooks.disable=[slow_update, meta_skill]", "evaluation.eval_test=false")
    stages = {stage for _, stage in planned(project, *without, "optimizer.lr_control_mode=none").by_stage()}
    assert stages == {"rollout", "selection", "analyst", "merge"}
    assert "slow_update" not in {stage for _, stage in planned(project, *guided[:2], "train.num_epochs=1").by_stage()}


def test_patience_may_end_it_early(project: Project) -> None:
    whole, patient = planned(project, "train.num_epochs=6"), planned(project, "train.num_epochs=6", "train.patience=2")
    assert calls(patient, "rollout")[0] == calls(whole, "rollout")[0] / 3
    assert calls(patient, "rollout")[1] < calls(whole, "rollout")[1]
    assert calls(patient, "rollout")[2] == calls(whole, "rollout")[2]
    certain = planned(project, "train.num_epochs=6", "train.patience=2", assumed=Assumed(accepted=1.0, tried=1.0))
    assert calls(certain, "rollout")[1] == calls(whole, "rollout")[1]


def test_o_c1_an_estimate_prints_calls_and_a_range_first(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """And it asks no model and writes nothing."""
    before = sorted(path for path in project.folder.rglob("*"))
    with ChatServer() as server:
        backends = [f"model.{role}_backend=openai_compatible" for role in ("target", "optimizer")]
        words = [*backends, f"model.openai_compatible_base_url={server.url}", "model.target=a", "model.optimizer=b"]
        out = told(capsys, project.folder / "config.yaml", "-o", *words)
        assert not server.requests
        assert re.search(r"^Calls +about 104 \(52 to 128\)$", out, re.MULTILINE)
        assert "unknown, as no price is known of" in out
        assert all(f"{role}: {model} at {server.url}" in out for role, model in (("target", "a"), ("optimizer", "b")))
    assert sorted(path for path in project.folder.rglob("*")) == before


def test_prompts_are_measured_as_the_environment_writes_them(project: Project) -> None:
    plan = planned(project)
    run = project.folder / "run"
    train(load_config(project.folder / "config.yaml"), out=run)
    tokens = json.loads((run / "history.json").read_text(encoding="utf-8"))[0]["tokens"]["rollout"]
    rollout = plan.by_stage()["target", "rollout"]
    assert isclose(
        rollout.prompt_tokens.expected / rollout.calls.expected,
        tokens["prompt_tokens"] / tokens["calls"],
        rel_tol=0.05,
    )


def test_a_published_price_is_used_and_an_unknown_one_is_said(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    openai = [
        "model.openai_compatible_base_url=https://api.openai.com/v1",
        "model.target_backend=openai_compatible",
        "model.target=gpt-4o-mini",
    ]
    plan = planned(project, *openai)
    rollout = plan.by_stage()["target", "rollout"]
    assert rollout.usd is not None
    # 0.15 and 0.60 dollars a million tokens
    dollars = (0.15 * rollout.prompt_tokens.most + 0.6 * rollout.completion_tokens.most) / 1e6
    assert isclose(rollout.usd.most, dollars, rel_tol=0.01)
    assert plan.total.usd is None
    assert plan.unpriced == {"optimizer": "simulated at simulated"}
    out = told(capsys, project.folder / "config.yaml", "-o", *openai)
    assert "of what has a price; the rest is unknown, as no price is known of optimizer: simulated" in out
    both = planned(project, *openai, "model.optimizer_backend=openai_compatible", "model.optimizer=gpt-4o")
    assert both.total.usd is not None and both.total.usd.least > 0
    assert both.unpriced == {}


def test_prices_by_hand_and_assumed_ones(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    by_hand = planned(project, "model.prices={simulated: {input: 2, output: 8}}")
    total = by_hand.total
    assert total.usd is not None
    assert isclose(
        total.usd.expected,
        (2 * total.prompt_tokens.expected + 8 * total.completion_tokens.expected) / 1e6,
        rel_tol=0.01,
    )
    words = ("-o", "budget.assume_per_call.usd=0.5")
    made = json.loads(told(capsys, project.folder / "config.yaml", "--json", *words))
    assert made["total"]["usd"]["most"] == made["total"]["calls"]["most"] / 2
    assert any("costs $0.5, as budget.assume_per_call says" in sentence for sentence in made["assumed"])


# Without a gate, and every analyst proposing, hardly anything is left to chance: the baseline asks 12, each of four
# steps 6 + 12 of the target, the final test at most 24; of the optimizer 2 or 3 analysts, 1 or 2 merges, 1 ranking.
CERTAIN = ("evaluation.use_gate=false", "gradient.minibatch_size=3")
SURE = Assumed(failures=1.0, proposing=1.0, tried=1.0)


@pytest.mark.parametrize(
    ("limit", "steps"), [(12 + 24 + 21, 0), (12 + 24 + 22, 1), (12 + 24 + 3 * 22, 3), (12 + 24 + 4 * 22, 4)]
)
def test_a_budget_of_calls_admits_so_many_steps(project: Project, limit: int, steps: int) -> None:
    plan = planned(project, *CERTAIN, f"budget.calls={limit}", assumed=SURE)
    assert plan.total.calls.expected == 12 + 24 + 4 * 22
    found = plan.budget[0]
    assert (found.key, found.unit, found.most, found.steps) == ("budget.calls", "calls", limit, steps)
    assert found.needs == plan.total.calls


def test_limits_of_roles_shares_kept_and_minutes(project: Project) -> None:
    def steps(*limits: str) -> list[int | None]:
        return [one.steps for one in planned(project, *CERTAIN, *limits, assumed=SURE).budget]

    assert steps("budget.roles.target.calls=72", "budget.roles.optimizer.calls=8") == [2, 2]
    assert steps("budget.roles.target.calls=72", "budget.reserve_final=0") == [3]
    assert steps("budget.roles.target.calls=72", "budget.reserve_final=0.5") == [1]
    assert steps("budget.usd=1") == [None]
    # 5 s a round of four calls of the target, 30 s each round of the optimizer
    first = (12 / 4 * 5 + 24 / 4 * 5) / 60
    step = ((6 / 4 + 12 / 4) * 5 + 3 * 30) / 60
    assert steps(f"budget.wall_minutes={first + 2.01 * step}") == [2]
    assert steps(f"budget.wall_minutes={first + 1.99 * step}") == [1]


def test_the_budget_is_told_in_a_sentence(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    def line(limit: str) -> str:
        out = told(capsys, project.folder / "config.yaml", "-o", limit)
        return next(line for line in out.splitlines() if line.startswith("Budget "))

    assert "budget.calls (60) admits about 1 of 4 steps: all need about" in line("budget.calls=60")
    assert "is enough for what is expected" in line("budget.calls=120")
    assert "budget.calls (500) is enough: at most 128 calls are needed" in line("budget.calls=500")
    assert "budget.usd (1) cannot be compared: a price is unknown" in line("budget.usd=1")


def test_time_is_rounds_of_calls(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    def minutes(*words: str) -> tuple[float, float]:
        out = json.loads(told(capsys, project.folder / "config.yaml", "--json", *words))
        return out["total"]["seconds"]["least"], out["total"]["seconds"]["most"]

    # Baseline 12, four rollouts of 6, test 8, with 4 at once; of the optimizer at least one round of analysts a step.
    assert minutes("--seconds-target", "4", "--seconds-optimizer", "0")[0] == 4 * (3 + 4 * 1.5 + 2)
    assert minutes("--seconds-target", "0", "--seconds-optimizer", "10")[0] == 10 * 4
    assert minutes("--seconds-target", "0", "--seconds-optimizer", "0") == (0, 0)


def test_an_earlier_run_gives_shares_sizes_and_seconds(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    run = project.folder / "run"
    train(load_config(project.folder / "config.yaml", ["env.max_turns=3"]), out=run)
    learnt = like_run(run, {"optimizer": 7.0})
    history = json.loads((run / "history.json").read_text(encoding="utf-8"))
    mean = sum(step["rollout_hard"] * step["rollout_n"] for step in history) / sum(
        step["rollout_n"] for step in history
    )
    assert isclose(learnt.failures, 1 - mean)
    assert learnt.measured["optimizer", "analyst"]["seconds"] == learnt.seconds["optimizer"] == 7.0
    assert learnt.turns is not None and 1 <= learnt.turns <= 3
    judged = [step for step in history if step["selection_asked"]]
    assert isclose(learnt.tried, len(judged) / len(history))
    out = told(capsys, project.folder / "config.yaml", "--like", run)
    assert f"as in the run {run}" in out


def test_what_cannot_be_taken_from_an_earlier_run(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    config = project.folder / "config.yaml"
    assert "nowhere is not a folder" in refused(capsys, config, "--like", "nowhere")
    assert "is not a run directory" in refused(capsys, config, "--like", project.folder)
    evaluated = project.folder / "evaluated"
    assert main(["eval", str(config), "--skill", str(project.folder / "skill.md"), "--out", str(evaluated), "-q"]) == 0
    capsys.readouterr()
    assert "is an evaluation; name a training run" in refused(capsys, config, "--like", evaluated)


def test_what_is_wrong_with_the_configuration_is_said_as_train_says_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "CONFIG is missing" in refused(capsys)
    assert "config.yaml" in refused(capsys, "nowhere/config.yaml")
    project.write("data/train/items.json", "[]")
    assert "train split" in refused(capsys, project.folder / "config.yaml")


def test_json_holds_each_range(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    made: dict[str, Any] = json.loads(told(capsys, project.folder / "config.yaml", "--json"))
    assert set(made) >= {"config", "steps", "stages", "total", "assumed", "unpriced"}
    for row in (*made["stages"], made["total"]):
        for name in ("calls", "tokens", "prompt_tokens", "completion_tokens", "seconds"):
            assert 0 <= row[name]["least"] <= row[name]["expected"] <= row[name]["most"], (row, name)
    assert made["total"]["calls"]["most"] == sum(row["calls"]["most"] for row in made["stages"])


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_where_nothing_can_be_rehearsed_the_sizes_are_of_the_texts(
    project: Project, isolation: Literal["thread", "process"]
) -> None:
    from skillopt_analysis.planning.rehearsal import rehearse
    from skillopt_kernel.loop.preparing import prepare

    prepared = prepare(load_config(project.folder / "config.yaml"))
    whole = rehearse(prepared)
    prepared.environment = breaking = Breaking(prepared.environment, isolation)
    broken = rehearse(prepared)
    assert bool(breaking.attempted) == (isolation == "thread")  # one that needs processes is not started for a plan
    assert (whole.complete, broken.complete) == (True, False)
    assert 0 < broken.prompts["train"] < whole.prompts["train"]
    assert broken.turns == Range(1, 1, 1)


class Breaking:
    """An environment whose attempts come to nothing before they have asked."""

    def __init__(self, environment: Environment, isolation: Literal["thread", "process"]) -> None:
        self.isolation, self.attempted = isolation, 0
        self.targets, self.splits, self.score = environment.targets, environment.splits, environment.score

    def attempt(self, task: Task, skill: str, target: Target) -> Attempt:
        self.attempted += 1
        raise RuntimeError(f"no attempt at {task.id}")
