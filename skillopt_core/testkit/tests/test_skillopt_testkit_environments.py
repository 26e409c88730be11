"""Each test of the environment suite is held to what it is for: a sound environment passes, a faulty one is found."""

import inspect
import itertools
import json
import logging
import sqlite3

import pytest
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.interfaces import DriverContext
from skillopt_testkit.conformance.common import PluginConformance
from skillopt_testkit.conformance.environment import EnvironmentConformance
from skillopt_testkit_faulty_environments import (
    AlwaysRight,
    AsksOtherwiseEachTime,
    Counts,
    CutsTheSkill,
    DescribesOnTwoLines,
    DropsThePayload,
    FillsTheSkill,
    ForgetsTheConversation,
    ForgetsTheSkill,
    KeepsALock,
    KeepsTuples,
    LeavesTheReferenceInTheWorkspace,
    LetsAnyErrorOfItsDataPass,
    LosesEvidence,
    NamesFilesById,
    NamesNoFile,
    NeverRight,
    OtherTasksEachTime,
    QuotesAll,
    RemembersReferences,
    SameIds,
    ScoresFromMemory,
    ServesOneThread,
    Silent,
    Sound,
    SwallowsFaults,
    SwallowsTheDeadline,
    TakesAFailedJudgeForZero,
    TellsAgentsTheSkillInThePrompt,
    WorksWithNothing,
    WritesFilesById,
)


class SumSuite(EnvironmentConformance):
    """The suite for the environment of class `of` on the folder `data`."""

    name = "sums"

    def __init__(self, of, data):
        self.of, self.data = of, data

    def made(self, settings, context):
        return self.of(context.common.split_dir)

    def right_reply(self, task):
        return task.reference


@pytest.fixture
def data(tmp_path):
    for start, part in enumerate(("train", "val", "test")):
        rows = [
            {"id": f"t{n}", "question": f"What is {n} + 1?", "answer": f"the number {n + 1}"}
            for n in range(2 * start, 2 * start + 2)
        ]
        path = tmp_path / "data" / part / "items.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(rows), "utf-8")
    return tmp_path / "data"


def passed(of, name, data, folder):
    """Call a test of the suite as pytest does, with each of its parameters, in folders of its own."""
    suite = SumSuite(of, data)
    common = EnvSettings(name="sums", split_mode="split_dir", split_dir=data)
    context = DriverContext(logging.getLogger("test"), seed=7, folder=folder, common=common)
    test = getattr(suite, name)
    for number, given in enumerate(parameters(test)):
        (tmp_path := folder / f"{name}-{number}").mkdir(parents=True)
        driver = suite.made(None, context)
        fixtures = {"settings": None, "context": context, "driver": driver, "tmp_path": tmp_path, **given}
        wanted = inspect.signature(test).parameters
        with pytest.MonkeyPatch.context() as patched:
            fixtures["monkeypatch"] = patched
            if {"another"} & set(wanted):
                fixtures["another"] = suite.made(None, context)
            if {"splits", "tasks"} & set(wanted):
                splits = fixtures["splits"] = driver.splits()
                fixtures["tasks"] = [*splits.train, *splits.selection, *splits.test]
            test(**{each: fixtures[each] for each in wanted})


def parameters(test):
    """The values of a test's `parametrize` marks, in all combinations."""
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    values = [[{mark.args[0]: value} for value in mark.args[1]] for mark in marks]
    return [{key: value for each in chosen for key, value in each.items()} for chosen in itertools.product(*values)]


FAULTY = {
    "test_says_what_it_works_with": [WorksWithNothing],
    "test_splits_are_sound": [SameIds],
    "test_splits_are_the_same_again": [OtherTasksEachTime],
    "test_a_right_reply_scores_one": [NeverRight],
    "test_an_agent_is_given_the_skill_and_its_answer_is_scored": [TellsAgentsTheSkillInThePrompt, NeverRight],
    "test_a_wrong_reply_says_why": [Silent, AlwaysRight],
    "test_odd_replies_are_scored": [AlwaysRight],
    "test_replies_that_end_otherwise_are_scored": [AlwaysRight],
    "test_scoring_is_repeatable": [Counts],
    "test_the_target_is_shown_the_skill_and_never_the_reference": [ForgetsTheSkill, AsksOtherwiseEachTime],
    "test_reflection_hands_everything_on_to_the_optimizer": [DropsThePayload, LosesEvidence],
    "test_prompts_of_its_own_leave_nothing_out": [DropsThePayload],
    "test_an_attempt_that_is_cut_off_lets_it_pass": [SwallowsTheDeadline],
    "test_attempts_keep_the_conversation": [ForgetsTheConversation],
    "test_attempts_and_tasks_can_be_sent_to_a_worker": [KeepsALock],
    "test_many_threads_at_once_score_as_one": [ServesOneThread],
    "test_optional_parts_have_their_form": [DescribesOnTwoLines],
    "test_what_the_target_is_asked_depends_on_task_and_skill_alone": [RemembersReferences, AsksOtherwiseEachTime],
    "test_no_text_of_a_reference_is_told_to_the_target": [LeavesTheReferenceInTheWorkspace],
    "test_an_attempt_that_was_stored_scores_the_same": [KeepsTuples, ScoresFromMemory],
    "test_faults_of_a_call_are_let_pass": [SwallowsFaults],
    "test_a_judge_that_fails_is_no_low_score": [TakesAFailedJudgeForZero],
    "test_ids_of_any_kind_do_no_harm": [WritesFilesById, NamesFilesById],
    "test_skills_of_any_kind_reach_the_target_whole": [FillsTheSkill, CutsTheSkill],
    "test_long_replies_are_scored_and_told_in_short": [QuotesAll],
    "test_data_that_cannot_be_used_is_told_in_a_sentence": [LetsAnyErrorOfItsDataPass, NamesNoFile],
}
"""Test of the suite -> environments that it must find fault with."""


def test_no_test_of_the_suite_is_left_out():
    """The others concern the manifest and the settings, of every kind of plugin."""
    own = {name for name in dir(EnvironmentConformance) if name.startswith("test_")}
    assert set(FAULTY) == own - {name for name in dir(PluginConformance) if name.startswith("test_")}


@pytest.mark.parametrize("name", FAULTY)
def test_a_sound_environment_passes(name, data, tmp_path):
    passed(Sound, name, data, tmp_path / "runs")


ERRORS = {
    KeepsALock: TypeError,
    ServesOneThread: sqlite3.ProgrammingError,
    LetsAnyErrorOfItsDataPass: OSError,
}
"""What comes of those faults that are errors by themselves."""


@pytest.mark.parametrize(("name", "faulty"), [(name, each) for name, faulty in FAULTY.items() for each in faulty])
def test_a_faulty_environment_is_found(name, faulty, data, tmp_path):
    with pytest.raises(ERRORS.get(faulty, (AssertionError, pytest.fail.Exception))):
        passed(faulty, name, data, tmp_path / "runs")


class OwnPrompts(Sound):
    """Sound: its analysts' prompts say how many items of which form belong where, whatever the update mode."""

    analyst = 'Think of sums. {"{{payload}}": [up to {{budget}} of {{schema}}]}'
    merge = 'Keep what is about sums. {"{{payload}}": [{{schema}}, ...]}'

    def prompts(self):
        return {"analyst_failure": self.analyst, "analyst_success": self.analyst, "merge_final": self.merge}

    def evidence(self, task, attempt):
        return {"The sum": f"It is {task.reference}, not {attempt.output or 'nothing'}."}


@pytest.mark.parametrize("lost", ["payload", "budget", "schema"])
def test_prompts_that_drop_what_an_analyst_must_know_are_found(lost, data, tmp_path):
    """O-M2."""

    class Drops(OwnPrompts):
        analyst = OwnPrompts.analyst.replace("{{" + lost + "}}", "edits")

    for name in (
        "test_reflection_hands_everything_on_to_the_optimizer",
        "test_prompts_of_its_own_leave_nothing_out",
    ):
        passed(OwnPrompts, name, data, tmp_path / "sound")
        with pytest.raises(AssertionError, match=lost):
            passed(Drops, name, data, tmp_path / "faulty")


def test_a_merge_that_does_not_know_the_update_mode_is_found(data, tmp_path):
    class Drops(OwnPrompts):
        merge = "Keep what is about sums, as edits."

    with pytest.raises(AssertionError, match="the prompt 'merge_final' must use"):
        passed(Drops, "test_prompts_of_its_own_leave_nothing_out", data, tmp_path)


@pytest.mark.parametrize(
    ("faulty", "name", "told"),
    [
        (SameIds, "test_splits_are_sound", "unique"),
        (ForgetsTheSkill, "test_the_target_is_shown_the_skill_and_never_the_reference", "must reach the target"),
        (
            RemembersReferences,
            "test_what_the_target_is_asked_depends_on_task_and_skill_alone",
            "is asked otherwise another time",
        ),
        (
            LeavesTheReferenceInTheWorkspace,
            "test_no_text_of_a_reference_is_told_to_the_target",
            "'the number 1' of the reference of task t0 leaked",
        ),
        (WritesFilesById, "test_ids_of_any_kind_do_no_harm", "a file was written"),
        (NamesFilesById, "test_ids_of_any_kind_do_no_harm", "have names below it"),
        (KeepsTuples, "test_an_attempt_that_was_stored_scores_the_same", "state is JSON"),
        (QuotesAll, "test_long_replies_are_scored_and_told_in_short", "quotes the beginning"),
        (TakesAFailedJudgeForZero, "test_a_judge_that_fails_is_no_low_score", "although the judge had failed"),
    ],
)
def test_what_is_found_is_told(faulty, name, told, data, tmp_path):
    with pytest.raises(AssertionError, match=told):
        passed(faulty, name, data, tmp_path / "runs")
