"""What the target is sent, what is taken as its answer, and what is said of it."""

import pytest
from skillopt_kernel.models.requests import ChatReply
from skillopt_kernel.records import Task
from skillopt_kernel.skill import skill_hash
from skillopt_lib_env.scoring import ScorerChoice
from skillopt_testkit.scripted import ScriptedTarget

TASK = Task("t1", inputs={"context": "Two apples.", "question": "How many?"}, reference="2")
SKILL = "---\nname: counting\ndescription: Counts things.\n---\n# Counting\n\n- Count twice.\n"


@pytest.fixture
def attempted(environment, sums):
    def attempt(reply, skill="", task=TASK, **settings):
        made, target = environment(sums(), **settings), ScriptedTarget(reply)
        done = made.attempt(task.hidden(), skill, target)
        return made, target, done

    return attempt


def test_the_target_is_sent_skill_and_inputs_and_never_the_reference(attempted):
    _, target, _ = attempted(
        "<answer>7</answer>", SKILL, task=Task("t", inputs={"question": "How many?"}, reference="c4na")
    )
    ((system, user),) = target.messages
    assert system.role == "system" and user.role == "user"
    assert SKILL.strip() in system.text, "the front matter is shown as it stands"
    assert "<answer>" in system.text
    assert user.text == "How many?"
    assert "c4na" not in system.text + user.text


def test_several_inputs_stand_under_their_names(attempted):
    _, target, _ = attempted("x")
    assert target.messages[0][1].text == "## Context\n\nTwo apples.\n\n## Question\n\nHow many?"


def test_a_prompt_is_filled_in_one_pass(attempted):
    task = Task(
        "t", inputs={"question": "{{context}} {0.__class__}", "context": "C", "list": ["a", "b"], "n": {"k": 1}}
    )
    _, target, _ = attempted("x", task=task, prompt='{"q": {{question}} / {{ context }}}\n{{list}}\n{{n}}')
    assert target.messages[0][1].text == '{"q": {{context}} {0.__class__} / C}\n- a\n- b\n{"k": 1}'


@pytest.mark.parametrize(
    ("choices", "shown"),
    [
        (["one", "two"], "A. one\nB. two"),
        ([1, 2.5], "A. 1\nB. 2.5"),
        ({"A": "one", "B": "two"}, "A. one\nB. two"),
        (["A. one", "B. two"], "A. one\nB. two"),
        (["(A) one", "(B) two"], "(A) one\n(B) two"),
        (["A plain one", "B flat"], "A. A plain one\nB. B flat"),
        ("A) one B) two", "A) one B) two"),
        ([str(n) for n in range(27)], "\n".join(f"- {n}" for n in range(27))),
    ],
)
@pytest.mark.parametrize("name", ["choices", "options"])
def test_choices_bear_the_labels_that_the_scorer_asks_for(attempted, choices, shown, name):
    task = Task("t", inputs={"question": "Which?", name: choices}, reference="B")
    _, target, _ = attempted("x", task=task, scorer=ScorerChoice("choice"))
    assert target.messages[0][1].text == f"## Question\n\nWhich?\n\n## {name.title()}\n\n{shown}"
    _, target, _ = attempted("x", task=task, scorer=ScorerChoice("choice"), prompt=f"{{{{question}}}}\n{{{{{name}}}}}")
    assert target.messages[0][1].text == f"Which?\n{shown}"


def test_the_labels_are_those_of_the_scorers_settings(attempted):
    from skillopt_scorers.settings import ChoiceSettings

    task = Task("t", inputs={"question": "Which?", "answers": ["one", "two"]}, reference="2")
    scorer = ScorerChoice("choice", ChoiceSettings(labels="123", choices="answers"))
    made, target, done = attempted("<answer>2</answer>", task=task, scorer=scorer)
    assert target.messages[0][1].text.endswith("1. one\n2. two")
    assert made.score(task, done, None).hard == 1.0


def test_with_another_scorer_a_list_has_no_labels(attempted):
    task = Task("t", inputs={"choices": ["one", "two"]}, reference="two")
    _, target, _ = attempted("x", task=task)
    assert target.messages[0][1].text == "- one\n- two"


def test_a_blank_skill_has_no_heading(attempted):
    _, target, _ = attempted("x", " \n")
    assert "## Skill" not in target.messages[0][0].text


@pytest.mark.parametrize(
    ("reply", "answer", "words"),
    [
        ("So.\n<ANSWER> 2 </answer>", "2", ""),
        ("<answer>1</answer>, no: <answer>2</answer>", "2", ""),
        ("It is\n2", "2", "no answer tags, so its last line"),
        ("It is <answer>2", "2", "opened and not closed"),
    ],
)
def test_the_answer_in_tags(attempted, reply, answer, words):
    made, _, done = attempted(reply)
    assert done.output == answer and done.ended is None
    score = made.score(TASK, done, None)
    assert score.hard == 1.0
    assert words in score.feedback


def test_the_whole_reply_as_the_answer(attempted):
    made, target, done = attempted("<think>One, two.</think>\n 2 \n", answer="whole")
    assert done.output == "2"
    assert made.score(TASK, done, None).hard == 1.0
    assert "<answer>" not in target.messages[0][0].text
    _, _, tagged = attempted("It is <answer>2</answer>", answer="whole")
    assert tagged.output == "It is <answer>2</answer>"


@pytest.mark.parametrize("answer", ["tags", "whole"])
@pytest.mark.parametrize(
    ("reply", "ended"),
    [("", "empty_answer"), ("<think>never", "empty_answer"), (ChatReply("I", finish="filtered"), "refused")],
)
def test_how_an_attempt_ends(attempted, answer, reply, ended):
    _, _, done = attempted(reply, answer=answer)
    assert done.ended == ended


def test_a_reply_that_was_cut_off_is_told(attempted):
    made, _, done = attempted(ChatReply("It may be", finish="length"))
    assert "cut off at the token limit" in made.score(TASK, done, None).feedback


def test_an_attempt_says_with_which_skill_it_was_made(attempted):
    _, _, done = attempted("x", SKILL)
    assert done.state["version"] == skill_hash(SKILL)


def test_analysts_are_told_what_is_right(attempted):
    made, _, done = attempted("x", task=Task("t", inputs={"question": "q"}, reference=["a", "b"]))
    assert made.evidence(Task("t", reference=["a", "b"]), done)["Reference"] == "- a\n- b"
    assert made.describe(TASK) == "Two apples."
    assert made.describe(Task("t", inputs={"question": "x " * 200})).endswith("...")


def test_scorers_have_settings(attempted):
    from skillopt_lib_env.scoring import ScorerChoice

    made, _, done = attempted("<answer>the answer is 2 apples</answer>", scorer=ScorerChoice("token_f1"))
    score = made.score(Task("t", reference="2 apples"), done, None)
    assert score.hard == 0.0 and 0.5 < score.soft < 1.0


@pytest.mark.parametrize(
    ("settings", "reply", "answer"),
    [({}, "Looked.\n<answer>2</answer>", "2"), ({"answer": "whole"}, " 2 ", "2"), ({}, "", "")],
)
def test_an_agent_program_gets_one_job(environment, sums, settings, reply, answer):
    made, target = environment(sums(), **settings), ScriptedTarget(reply, kind="agent")
    done = made.attempt(TASK.hidden(), SKILL, target)
    (job,) = target.jobs
    assert job.skill == SKILL, "the program finds the skill where it looks for it, front matter and all"
    assert "How many?" in job.prompt and "Count twice" not in job.prompt
    assert ("<answer>" in job.prompt) == (not settings)
    assert done.output == answer and done.ended == (None if answer else "empty_answer")
    assert done.state["version"] == skill_hash(SKILL)
