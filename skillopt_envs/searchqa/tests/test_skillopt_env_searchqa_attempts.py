"""Attempts and scores: what the target is sent, what is taken as its answer, what analysts are told."""

import json
import logging
import threading

import pytest
import skillopt_env_searchqa
from skillopt_env_searchqa.environment import SearchQAEnvironment
from skillopt_env_searchqa.settings import SearchQASettings
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.errors import DataError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.loop.target import AttemptTarget
from skillopt_kernel.models.requests import ChatReply
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_kernel.plugins.manifest import ACCEPTED_APIS
from skillopt_kernel.records import Attempt, Task

CONTEXT = "[DOC] [TLE] Peanut butter [PAR] Jif is a brand of peanut butter. [DOC] [TLE] Other [PAR] Nothing here."
TASK = Task(
    "q1", kind="qa", inputs={"question": "It's the choosy mother's choice", "context": CONTEXT}, reference=["Jif"]
)


class ScriptedModel:
    """A chat model that gives its replies in order and keeps the requests."""

    def __init__(self, *replies: ChatReply | str) -> None:
        self.replies = [ChatReply(reply) if isinstance(reply, str) else reply for reply in replies]
        self.requests = []

    def complete(self, request):
        self.requests.append(request)
        return self.replies[len(self.requests) - 1]

    def target(self) -> AttemptTarget:
        return AttemptTarget(
            self.complete, None, stage="rollout", deadline=None, call_timeout=None, stop=threading.Event()
        )


def environment(**settings) -> SearchQAEnvironment:
    context = DriverContext(logging.getLogger("test"))
    made = make_driver("env", "searchqa", SearchQASettings(**settings), context)
    assert isinstance(made, SearchQAEnvironment)
    return made


def attempted(*replies, skill="", task=TASK, **settings):
    model = ScriptedModel(*replies)
    made = environment(**settings)
    return model, made.attempt(task.hidden(), skill, model.target()), made


def test_a_question_is_put_with_skill_context_and_question():
    model, attempt, made = attempted("It fits.\n<answer>Jif</answer>", skill="# Mine\n\n- Be {brief}.\n")
    (request,) = model.requests
    system, user = request.messages
    assert (system.role, user.role) == ("system", "user")
    assert "## Skill\n\n# Mine\n\n- Be {brief}.\n\n## Task" in system.content
    assert "<answer>" in system.content
    assert user.content == f"## Context\n\n{CONTEXT}\n\n## Question\n\nIt's the choosy mother's choice"
    assert request.max_tokens == 16384
    assert (attempt.output, attempt.ended) == ("Jif", None)
    assert [turn.role for turn in attempt.trajectory] == ["system", "user", "assistant"]
    score = made.score(TASK, attempt, None)
    assert (score.hard, score.soft, score.feedback) == (1.0, 1.0, "Right.")


def test_a_blank_skill_leaves_its_heading_out_and_a_blank_context_its_section():
    task = Task("q", inputs={"question": "Q?"}, reference=["x"])
    model, _, _ = attempted("<answer>x</answer>", skill=" \n", task=task)
    assert "## Skill" not in model.requests[0].messages[0].content
    assert model.requests[0].messages[1].content == "## Question\n\nQ?"


def test_the_reference_never_reaches_the_target():
    task = Task("q", inputs={"question": "Q?", "context": "[DOC] c"}, reference=["CANARY"])
    model, _, _ = attempted("one", "<answer>two</answer>", task=task, max_turns=2)
    assert len(model.requests) == 2
    assert "CANARY" not in repr(model.requests)


def test_a_long_context_is_cut_to_whole_documents():
    task = Task("q", inputs={"question": "Q?", "context": "[DOC] " + "a" * 50 + "[DOC] " + "b" * 50}, reference=["x"])
    model, _, _ = attempted("<answer>x</answer>", task=task, context_limit=60)
    assert model.requests[0].messages[1].content.startswith("## Context\n\n[DOC] " + "a" * 50 + "\n\n## Question")
    model, _, _ = attempted("<answer>x</answer>", task=task, context_limit=0)
    assert "bbb" in model.requests[0].messages[1].content


def test_later_turns_keep_the_conversation_and_stop_at_an_answer():
    model, attempt, _ = attempted(
        "<answer>Skippy</answer>", "Hm, no.", "<answer>Jif</answer>", "never asked", max_turns=5
    )
    assert [len(request.messages) for request in model.requests] == [2, 4, 6]
    first, last = model.requests[0].messages, model.requests[2].messages
    assert last[:2] == first
    assert last[2].content == "<answer>Skippy</answer>"
    assert (attempt.output, attempt.ended) == ("Jif", None)
    assert [turn.role for turn in attempt.trajectory] == ["system", "user"] + ["assistant", "user"] * 2 + ["assistant"]


@pytest.mark.parametrize(
    "check", ["I stand by it.", ChatReply("", finish="empty"), ChatReply("", finish="filtered"), ChatReply(" ")]
)
def test_a_check_without_an_answer_leaves_the_first_one_standing(check):
    _, attempt, _ = attempted("<answer>Jif</answer>", check, max_turns=2)
    assert (attempt.output, attempt.ended) == ("Jif", None)


def test_a_check_betters_an_answer_that_had_no_form():
    _, attempt, _ = attempted("I wonder.\nSkippy", "Jif", max_turns=2)
    assert (attempt.output, attempt.state["reason"]) == ("Jif", "no_tag")


@pytest.mark.parametrize(
    ("reply", "ended"),
    [
        (ChatReply("", finish="empty"), "empty_answer"),
        (ChatReply("  \n"), "empty_answer"),
        (ChatReply("<answer> </answer>"), "empty_answer"),
        (ChatReply("<think>so it is <answer>Jif</answer>", finish="length"), "empty_answer"),
        (ChatReply("", finish="filtered"), "refused"),
        (ChatReply("<answer>Jif</answer>", finish="filtered"), "refused"),
    ],
)
def test_no_answer_is_the_targets_own_doing(reply, ended):
    model, attempt, _ = attempted(reply, max_turns=3)
    assert attempt.ended == ended
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("reply", "hard", "feedback"),
    [
        (
            "It is Jif",
            0,
            'Wrong: answered "It is Jif"; accepted: "Jif". Partly right: it has "it is" too many. '
            "The reply had no answer tags, so its last line was taken as the answer.",
        ),
        (
            "<answer>Jif",
            0,
            'Wrong: answered "<answer>Jif"; accepted: "Jif". They share no word. '
            "The answer tag was opened and not closed, so the whole last line was taken as the answer.",
        ),
        ("Jif", 1, "Right. The reply had no answer tags, so its last line was taken as the answer."),
        (
            ChatReply("It may be", finish="length"),
            0,
            'Wrong: answered "It may be"; accepted: "Jif". They share no word. The reply had no answer tags, so its '
            "last line was taken as the answer. The reply was cut off at the token limit.",
        ),
    ],
)
def test_feedback_says_why_and_what_of_the_form(reply, hard, feedback):
    _, attempt, made = attempted(reply)
    score = made.score(TASK, attempt, None)
    assert (score.hard, score.feedback) == (hard, feedback)


def test_an_attempt_that_the_kernel_ended_can_be_scored():
    score = environment().score(TASK, Attempt("", ended="attempt_timeout"), None)
    assert (score.hard, score.soft) == (0.0, 0.0)


def test_evidence_names_the_accepted_answers_and_where_the_context_has_one():
    made = environment()
    evidence = made.evidence(TASK, Attempt("x"))
    assert evidence["Accepted answers"] == "- Jif"
    assert evidence["In the context"].startswith("Document 1 of 2 names 'Jif': [DOC] [TLE] Peanut butter")
    absent = Task("q", inputs={"question": "Q?", "context": CONTEXT}, reference=["Skippy", "The"])
    assert "No document of the context names" in made.evidence(absent, Attempt("x"))["In the context"]
    assert "cut to its length limit" in environment(context_limit=80).evidence(absent, Attempt(""))["In the context"]
    bare = Task("q", inputs={"question": "Q?"}, reference=["x"])
    assert made.evidence(bare, Attempt("x"))["In the context"] == "The task has no context."


def test_a_task_is_described_on_one_line():
    assert environment().describe(TASK) == "It's the choosy mother's choice"
    assert len(environment().describe(Task("q", inputs={"question": "word\n" * 99}))) == 100


def test_the_initial_skill_is_packaged_and_names_no_task():
    skill = environment().initial_skill()
    assert skill.startswith("# ")
    assert 20 < len(skill.split()) < 200


def test_the_manifest_names_settings_and_factory():
    manifest = skillopt_env_searchqa.plugin
    assert (manifest.kind, manifest.name, manifest.section) == ("env", "searchqa", "env")
    assert manifest.api in ACCEPTED_APIS
    assert manifest.settings == f"{SearchQASettings.__module__}:{SearchQASettings.__qualname__}"
    assert manifest.factory == f"{SearchQAEnvironment.__module__}:{SearchQAEnvironment.__qualname__}"


@pytest.mark.parametrize("key", ["max_turns", "max_completion_tokens", "context_limit"])
def test_impossible_settings_are_refused(key):
    with pytest.raises(ValueError, match="must be at least"):
        SearchQASettings(**{key: -1})


def rows(count, first=0):
    return [
        {"id": f"q{number}", "question": "Q?", "context": "", "answers": ["x"]}
        for number in range(first, first + count)
    ]


def common(**changes):
    return EnvSettings(name="searchqa", **changes)


def loaded(common_settings):
    context = DriverContext(logging.getLogger("test"), common=common_settings)
    return make_driver("env", "searchqa", SearchQASettings(), context).splits()


def test_both_split_modes_are_loaded(tmp_path):
    for part, items in (("train", rows(2)), ("val", rows(1, 2)), ("test", rows(1, 3))):
        (tmp_path / "split" / part).mkdir(parents=True)
        (tmp_path / "split" / part / "items.json").write_text(json.dumps(items), "utf-8")
    splits = loaded(common(split_mode="split_dir", split_dir=tmp_path / "split"))
    assert [len(part) for part in (splits.train, splits.selection, splits.test)] == [2, 1, 1]
    assert splits.train[0] == Task("q0", "qa", {"question": "Q?", "context": ""}, ["x"])
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, rows(10))), "utf-8")
    splits = loaded(common(split_mode="ratio", split_ratio="8:2", data_path=tmp_path / "all.jsonl"))
    assert [len(part) for part in (splits.train, splits.selection, splits.test)] == [8, 2, 0]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"id": "a", "answers": ["x"]}, "item 1: the field 'question' is missing"),
        ({"id": "a", "question": "Q?", "answers": []}, "item 1: the list 'answers' is empty"),
        ({"id": "a", "question": "Q?", "answers": [" "]}, "item 1: the list 'answers' is empty"),
        ({"id": "a", "question": "Q?", "answers": 3.5, "context": []}, "item 1: the field 'context' must be text"),
        ({"question": "Q?", "answers": ["x"]}, "item 1: the field 'id' is missing"),
        ({"id": "a"}, "item 1: the file lists ids only .*skillopt data searchqa"),
    ],
)
def test_a_bad_row_is_an_error_that_names_it(tmp_path, row, message):
    path = tmp_path / "all.json"
    path.write_text(json.dumps([row, *rows(9, 1)]), "utf-8")
    with pytest.raises(DataError, match=message):
        loaded(common(split_mode="ratio", data_path=path))


def test_o_u3_data_that_is_not_there_is_named_with_how_to_make_it(tmp_path):
    with pytest.raises(DataError) as caught:
        loaded(common(split_mode="split_dir", split_dir=tmp_path / "data/searchqa_split"))
    text = str(caught.value)
    assert str(tmp_path / "data/searchqa_split") in text
    assert "train/items.json" in text
    assert "skillopt train demo" in text
