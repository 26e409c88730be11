"""The suites are held to what they are for: each sound plugin passes, and each of these defects is found."""

import json
from pathlib import Path

import attrs
import pytest
import skillopt_testkit
from skillopt_kernel.errors import Cancelled, ModelError
from skillopt_kernel.gating import ScoreGate
from skillopt_kernel.interfaces import Moment
from skillopt_kernel.models.requests import Message
from skillopt_kernel.records import Attempt, EditBudget, GateDecision, Score, Splits, Task
from skillopt_testkit.conformance.environment import EnvironmentConformance
from skillopt_testkit.conformance.environment_promises import FAULTS, ODD_IDS, ODD_SKILLS
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


class SmallEnvironment:
    """Sound: asks once, with the skill in front; the answer is the reply."""

    targets = frozenset({"chat"})
    isolation = "thread"

    def splits(self):
        tasks = [Task(f"t{i}", inputs={"question": f"{i} + 1?"}, reference=str(i + 1)) for i in range(6)]
        return Splits(tuple(tasks[:2]), tuple(tasks[2:4]), tuple(tasks[4:]))

    def attempt(self, task, skill, target):
        reply = target.chat([Message("system", skill), Message("user", task.inputs["question"])])
        return Attempt(reply.text.strip(), trajectory=target.trajectory)

    def score(self, task, attempt, judge):
        right = float(attempt.output == task.reference)
        return Score(right, right, "Right." if right else f"Wrong: it is {task.reference}.")


class SmallSuite(EnvironmentConformance):
    def right_reply(self, task):
        return task.reference


def tasks_of(environment):
    splits = environment.splits()
    return [*splits.train, *splits.selection, *splits.test]


def test_the_environment_suite_passes_a_sound_environment():
    suite, driver = SmallSuite(), SmallEnvironment()
    tasks = tasks_of(driver)
    assert len(tasks) == 6
    suite.test_splits_are_sound(driver.splits())
    suite.test_a_right_reply_scores_one(driver, tasks)
    suite.test_a_wrong_reply_says_why(driver, tasks)
    suite.test_the_target_is_shown_the_skill_and_never_the_reference(driver, tasks)
    suite.test_an_attempt_that_is_cut_off_lets_it_pass(driver, tasks)
    suite.test_attempts_keep_the_conversation(driver, tasks)
    suite.test_many_threads_at_once_score_as_one(driver, tasks)
    suite.test_reflection_hands_everything_on_to_the_optimizer(driver, driver.splits())
    suite.test_prompts_of_its_own_leave_nothing_out(driver)


class OwnPrompts(SmallEnvironment):
    """Sound: its analysts' prompts say how many items of which form belong where, whatever the update mode."""

    analyst = 'Think of sums. {"{{payload}}": [up to {{budget}} of {{schema}}]}'
    merge = 'Keep what is about sums. {"{{payload}}": [{{schema}}, ...]}'

    def prompts(self):
        return {"analyst_failure": self.analyst, "analyst_success": self.analyst, "merge_final": self.merge}

    def evidence(self, task, attempt):
        return {"The sum": f"It is {task.reference}, not {attempt.output or 'nothing'}."}


@pytest.mark.parametrize("lost", ["payload", "budget", "schema"])
def test_the_environment_suite_finds_prompts_that_drop_what_an_analyst_must_know(lost):
    """O-M2."""
    suite, sound = SmallSuite(), OwnPrompts()
    suite.test_reflection_hands_everything_on_to_the_optimizer(sound, sound.splits())
    suite.test_prompts_of_its_own_leave_nothing_out(sound)

    class Drops(OwnPrompts):
        analyst = OwnPrompts.analyst.replace("{{" + lost + "}}", "edits")

    with pytest.raises(AssertionError, match=lost):
        suite.test_reflection_hands_everything_on_to_the_optimizer(Drops(), Drops().splits())
    with pytest.raises(AssertionError, match=lost):
        suite.test_prompts_of_its_own_leave_nothing_out(Drops())


def test_the_environment_suite_finds_a_merge_that_does_not_know_the_update_mode():
    class Drops(OwnPrompts):
        merge = "Keep what is about sums, as edits."

    with pytest.raises(AssertionError, match="the prompt 'merge_final' must use"):
        SmallSuite().test_prompts_of_its_own_leave_nothing_out(Drops())


def test_the_environment_suite_finds_what_breaks_the_contract():
    suite = SmallSuite()

    class ForgetsTheSkill(SmallEnvironment):
        def attempt(self, task, skill, target):
            return super().attempt(task, "", target)

    class SwallowsTheDeadline(SmallEnvironment):
        def attempt(self, task, skill, target):
            try:
                return super().attempt(task, skill, target)
            except Cancelled:
                return Attempt("")

    class SameIds(SmallEnvironment):
        def splits(self):
            task = Task("t", inputs={}, reference="1")
            return Splits((task,), (task,))

    tasks = tasks_of(SmallEnvironment())
    with pytest.raises(AssertionError, match="must reach the target"):
        suite.test_the_target_is_shown_the_skill_and_never_the_reference(ForgetsTheSkill(), tasks)
    with pytest.raises(pytest.fail.Exception):
        suite.test_an_attempt_that_is_cut_off_lets_it_pass(SwallowsTheDeadline(), tasks)
    with pytest.raises(AssertionError, match="unique"):
        suite.test_splits_are_sound(SameIds().splits())


class RemembersReferences(SmallEnvironment):
    """Tells the target an answer once it has scored with it."""

    def __init__(self):
        self.known = {}

    def score(self, task, attempt, judge):
        self.known[task.id] = task.reference
        return super().score(task, attempt, judge)

    def attempt(self, task, skill, target):
        return super().attempt(task, skill + self.known.get(task.id, ""), target)


class TellsReferences(SmallEnvironment):
    """Keeps the references when it loads the splits, and tells them."""

    def splits(self):
        def wordy(tasks):
            return tuple(attrs.evolve(task, reference=f"the number {task.reference}") for task in tasks)

        loaded = super().splits()
        return Splits(*map(wordy, (loaded.train, loaded.selection, loaded.test)))

    def attempt(self, task, skill, target):
        known = {each.id: each.reference for each in tasks_of(self)}
        return super().attempt(task, f"{skill} (it is {known[task.id]})", target)


class SwallowsFaults(SmallEnvironment):
    """Takes an outage for a wrong answer."""

    def attempt(self, task, skill, target):
        try:
            return super().attempt(task, skill, target)
        except ModelError:
            return Attempt("", ended="empty_answer")


class FillsTheSkill(SmallEnvironment):
    def attempt(self, task, skill, target):
        return super().attempt(task, skill.replace("{question}", task.inputs["question"]), target)


class CutsTheSkill(SmallEnvironment):
    def attempt(self, task, skill, target):
        return super().attempt(task, skill[:10_000], target)


class WritesFilesById(SmallEnvironment):
    def attempt(self, task, skill, target):
        Path("".join(letter for letter in task.id if letter.isalpha())[:9] or "id").write_text("x")
        return super().attempt(task, skill, target)


class KeepsTuples(SmallEnvironment):
    def attempt(self, task, skill, target):
        return attrs.evolve(super().attempt(task, skill, target), state={"turns": (1, 2)})


class QuotesAll(SmallEnvironment):
    def score(self, task, attempt, judge):
        return Score(0.0, 0.0, f"Wrong: {attempt.output}")


def test_the_environment_suite_finds_leaks_and_memory():
    suite, sound = SmallSuite(), SmallEnvironment()
    tasks = tasks_of(sound)
    suite.test_what_the_target_is_asked_depends_on_task_and_skill_alone(sound, SmallEnvironment(), tasks)
    with pytest.raises(AssertionError, match="is asked otherwise another time"):
        suite.test_what_the_target_is_asked_depends_on_task_and_skill_alone(
            RemembersReferences(), RemembersReferences(), tasks
        )
    suite.test_no_text_of_a_reference_is_told_to_the_target(sound, tasks)
    with pytest.raises(AssertionError, match=r"of the reference of task t0 leaked"):
        suite.test_no_text_of_a_reference_is_told_to_the_target(TellsReferences(), tasks_of(TellsReferences()))


def test_the_environment_suite_finds_an_outage_that_is_taken_for_an_answer():
    suite, tasks = SmallSuite(), tasks_of(SmallEnvironment())
    for fault in FAULTS:
        suite.test_faults_of_a_call_are_let_pass(SmallEnvironment(), tasks, fault)
        with pytest.raises(pytest.fail.Exception):
            suite.test_faults_of_a_call_are_let_pass(SwallowsFaults(), tasks, fault)


def test_the_environment_suite_finds_skills_that_are_changed():
    suite, tasks = SmallSuite(), tasks_of(SmallEnvironment())
    for skill in ODD_SKILLS:
        suite.test_skills_of_any_kind_reach_the_target_whole(SmallEnvironment(), tasks, skill)
    with pytest.raises(AssertionError):
        suite.test_skills_of_any_kind_reach_the_target_whole(FillsTheSkill(), tasks, ODD_SKILLS[0])
    with pytest.raises(AssertionError):
        suite.test_skills_of_any_kind_reach_the_target_whole(CutsTheSkill(), tasks, ODD_SKILLS[2])


def test_the_environment_suite_finds_files_by_id_states_that_are_no_json_and_feedback_without_end(
    tmp_path, monkeypatch
):
    suite, tasks = SmallSuite(), tasks_of(SmallEnvironment())
    for number, odd in enumerate(ODD_IDS):
        suite.test_ids_of_any_kind_do_no_harm(SmallEnvironment(), tasks, odd, tmp_path / str(number), monkeypatch)
    with pytest.raises(AssertionError, match="a file was written"):
        suite.test_ids_of_any_kind_do_no_harm(WritesFilesById(), tasks, "../../x", tmp_path / "by_id", monkeypatch)
    suite.test_an_attempt_that_was_stored_scores_the_same(SmallEnvironment(), SmallEnvironment(), tasks)
    with pytest.raises(AssertionError, match="state is JSON"):
        suite.test_an_attempt_that_was_stored_scores_the_same(KeepsTuples(), KeepsTuples(), tasks)
    suite.test_long_replies_are_scored_and_told_in_short(SmallEnvironment(), tasks, "x")
    with pytest.raises(AssertionError, match="quotes the beginning"):
        suite.test_long_replies_are_scored_and_told_in_short(QuotesAll(), tasks, "x")


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
