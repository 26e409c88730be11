"""The suites are held to what they are for: each sound plugin passes, and each of these defects is found."""

import json

import attrs
import pytest
import skillopt_testkit
from skillopt_kernel.gating import ScoreGate
from skillopt_kernel.interfaces import Moment
from skillopt_kernel.models.requests import Message
from skillopt_kernel.records import EditBudget, GateDecision, Score
from skillopt_testkit.conformance.gate import GateConformance, random_scores, trial_of
from skillopt_testkit.conformance.hooks import EVENT_DATA, examples
from skillopt_testkit.conformance.scheduler import SchedulerConformance
from skillopt_testkit.conformance.scorer import ScorerConformance
from skillopt_testkit.scripted import ScriptedJudge, ScriptedOptimizer, ScriptedTarget


class Hard(ScoreGate):
    name = "hard"

    def score(self, hard, soft, skill):
        return hard


class TiesPass(Hard):
    def judge(self, trial):
        decision = super().judge(trial)
        if decision.action == "reject" and decision.score == decision.current_score:
            return attrs.evolve(decision, action="accept", skill=trial.candidate.skill)
        return decision


class MissingIsZero(Hard):
    def judge(self, trial):
        def mean(side):
            return sum(o.hard if o.scored else 0 for o in side.outcomes.values()) / len(trial.tasks)

        better = mean(trial.candidate) > mean(trial.current)
        action, skill = ("accept", trial.candidate.skill) if better else ("reject", trial.current.skill)
        return GateDecision(action, skill, "by the mean")


class Impatient(Hard):
    def judge(self, trial):
        outcome = next(iter(trial.evaluate(trial.candidate.skill, trial.tasks)))
        if trial.early_stop and (not outcome.scored or outcome.hard < 1):
            return GateDecision("reject", trial.current.skill, "the first task is not right")
        return super().judge(trial)


def test_the_gate_suite_finds_ties_that_pass():
    suite = GateConformance()
    suite.test_equal_scores_are_not_accepted(Hard(), 0.1)
    with pytest.raises(AssertionError, match="a tie"):
        suite.test_equal_scores_are_not_accepted(TiesPass(), 0.1)


def test_the_gate_suite_finds_missing_outcomes_taken_for_zeros():
    suite = GateConformance()
    suite.test_missing_outcomes_are_no_zeros(Hard())
    with pytest.raises(AssertionError):
        suite.test_missing_outcomes_are_no_zeros(MissingIsZero())


def test_the_gate_suite_finds_a_decision_that_early_stopping_changes():
    suite = GateConformance()
    for seed in range(60):
        suite.test_stopping_early_changes_no_decision(Hard(), seed)
    with pytest.raises(AssertionError):
        for seed in range(60):
            suite.test_stopping_early_changes_no_decision(Impatient(), seed)


def test_the_gate_suite_finds_a_score_that_falls():
    class Upside(Hard):
        def score(self, hard, soft, skill):
            return hard - soft

    with pytest.raises(AssertionError):
        GateConformance().test_score_does_not_fall_when_scores_rise(Upside())


def test_a_stored_trial_is_lazy_and_stops_when_settled():
    import random

    scores = random_scores(random.Random(1), 10)
    trial = trial_of([(0, 0)] * 10, [(1, 1)] * 10)
    assert next(trial.evaluate("candidate", trial.tasks)).task_id == "task-000"
    assert trial.started == ["task-000"]
    trial = trial_of(scores, scores)
    given = list(trial.evaluate("candidate", trial.tasks, settled=lambda arrived: len(arrived) == 3))
    assert [outcome.task_id for outcome in given] == ["task-000", "task-001", "task-002"]


class Counting:
    def __init__(self):
        self.asked = 0

    def budget(self, moment: Moment) -> EditBudget:
        self.asked += 1
        return EditBudget(self.asked)


def test_the_scheduler_suite_finds_state_and_negative_budgets():
    suite = SchedulerConformance()
    with pytest.raises(AssertionError, match="stateless"):
        suite.test_the_same_moment_gives_the_same_budget(Counting())

    class Falling:
        def budget(self, moment):
            return EditBudget(3 - moment.step)

    with pytest.raises(AssertionError, match="step 4 of 7: -1"):
        suite.test_a_budget_for_every_step(Falling(), 7)


def test_the_scorer_suite_finds_a_score_without_a_reason():
    class Silent:
        def score(self, answer, reference, task, judge=None):
            right = float(answer == reference)
            return Score(right, right)

    class Suite(ScorerConformance):
        pairs = (("yes", "yes"),)

    Suite().test_right_answers_are_right(Silent())
    with pytest.raises(AssertionError, match="says why"):
        Suite().test_odd_answers_are_scored_and_say_why(Silent(), "no")


def test_the_scorer_suite_finds_what_breaks_the_contract():
    class Plain:
        def score(self, answer, reference, task, judge=None):
            right = float(answer == reference)
            return Score(right, right, "" if right else "Wrong.")

    class Suite(ScorerConformance):
        pairs = (("yes", "yes"),)

    class Asking(Suite):
        asks = True
        judge_reply = "1"
        endless = ("a", "b")

    class Quotes(Plain):
        def score(self, answer, reference, task, judge=None):
            made = super().score(answer, reference, task)
            return Score(made.hard, made.soft, f"Wrong: {answer}")

    class Counts(Plain):
        calls = 0

        def score(self, answer, reference, task, judge=None):
            self.calls += 1
            return Score(0, 0, f"Wrong for the time number {self.calls}.")

    class Endless(Plain):
        def score(self, answer, reference, task, judge=None):
            raise RecursionError("for ever")

    class Numbers(Plain):
        def score(self, answer, reference, task, judge=None):
            return Score(0, 0, "Wrong.", {"ratio": float("inf")})

    class Trips(Plain):
        def score(self, answer, reference, task, judge=None):
            return Score(0, 0, reference.strip() and "Wrong.")

    class Disagrees(Plain):
        def check(self, reference, task):
            raise ValueError("never")

    class Lenient(Plain):
        def score(self, answer, reference, task, judge=None):
            try:
                judge.chat([])
            except Exception:
                return Score(0, 0, "Wrong.")
            return Score(1, 1)

    suite, asking = Suite(), Asking()
    suite.test_a_judge_that_fails_is_no_low_score(Plain())
    suite.test_many_threads_at_once_score_as_one(Plain())
    suite.test_a_reference_is_used_or_refused(Plain(), None)
    with pytest.raises(AssertionError, match="quoted in short"):
        suite.test_huge_answers_are_scored_and_quoted_in_short(Quotes(), "x" * 500_000)
    with pytest.raises(AssertionError, match="has the same score"):
        suite.test_odd_answers_are_scored_and_say_why(Counts(), "no")
    with pytest.raises(AssertionError, match="named score ratio is inf"):
        suite.test_odd_answers_are_scored_and_say_why(Numbers(), "no")
    with pytest.raises(AttributeError):
        suite.test_a_reference_is_used_or_refused(Trips(), None)
    with pytest.raises(AssertionError, match="refuses what score"):
        suite.test_a_reference_is_used_or_refused(Disagrees(), "x")
    with pytest.raises(RecursionError):
        asking.test_what_never_ends_is_given_up(Endless())
    with pytest.raises(pytest.fail.Exception):
        asking.test_a_judge_that_fails_is_no_low_score(Lenient())


def test_a_scripted_target_keeps_the_conversation_as_it_happened():
    target = ScriptedTarget(lambda messages: messages[-1].text.upper())
    conversation = [Message("system", "s"), Message("user", "one")]
    reply = target.chat(conversation)
    target.note("the door opens", step=1)
    conversation += [Message("assistant", reply.text), Message("user", "two")]
    target.chat(conversation)
    assert [(turn.role, turn.content) for turn in target.trajectory] == [
        ("system", "s"), ("user", "one"), ("assistant", "ONE"), ("environment", "the door opens"),
        ("user", "two"), ("assistant", "TWO"),
    ]  # fmt: skip
    assert target.usage.calls == 2


def test_a_scripted_judge_and_optimizer_keep_what_they_were_asked():
    judge, optimizer = ScriptedJudge("yes"), ScriptedOptimizer(['{"a": 1}', '{"a": 2}'])
    assert judge.chat([Message("user", "right?")]).text == "yes"
    assert judge.messages[0][0].text == "right?"
    assert [optimizer.ask_json("s", "u")["a"] for _ in range(3)] == [1, 2, 2]
    with pytest.raises(AssertionError, match="too few"):
        optimizer.ask_json("s", "u", check=lambda found: "too few")


def test_example_events_are_json_and_cover_every_observer():
    from skillopt_kernel.hookspecs import OBSERVERS

    assert set(EVENT_DATA) == set(OBSERVERS)
    lines = [json.loads(json.dumps(event.as_json())) for event in examples()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))


def test_public_names_are_there_and_the_pytest_plugin_loads_nothing():
    import subprocess
    import sys

    for name in skillopt_testkit.__all__:
        assert getattr(skillopt_testkit, name).__name__ == name
    code = "import sys, skillopt_testkit.plugin; print(*[m for m in sys.modules if m.startswith('skillopt_')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {
        "skillopt_testkit", "skillopt_testkit.plugin", "skillopt_kernel", "skillopt_kernel.version",
    }  # fmt: skip
