"""A question put to a chat model, over several turns where that is asked for, and to an agent program."""

import pytest
from skillopt_kernel.models.requests import ChatReply
from skillopt_lib_env.answers import last_answer
from skillopt_lib_env.questions import Form, about_form, answer_or_last_line, ask
from skillopt_testkit.scripted import ScriptedTarget

FORM = Form("You answer.", "## Task\n\nAnswer.", "## Answer\n\nIn tags.", "Check it.")


def asked(*replies, skill="", kind="chat", **options):
    """An attempt whose calls get the replies in order."""
    waiting = list(replies)
    target = ScriptedTarget(lambda _: waiting.pop(0), kind=kind)
    return target, ask(FORM, "## Question\n\nQ?", skill, target, **options)


def test_a_chat_model_is_told_everything_but_the_question_first():
    target, attempt = asked("<answer>x</answer>", skill="\n# Mine\n")
    system, user = target.messages[0]
    assert system.content == "You answer.\n\n## Skill\n\n# Mine\n\n## Task\n\nAnswer.\n\n## Answer\n\nIn tags."
    assert user.content == "## Question\n\nQ?"
    assert (attempt.output, attempt.ended, attempt.state) == ("x", None, {"reason": "", "cut_off": False})
    assert "## Skill" not in asked("x", skill=" \n")[0].messages[0][0].content


def test_an_agent_program_gets_one_job_and_finds_the_skill_by_itself():
    target, attempt = asked("<answer>x</answer>", skill="# Mine", kind="agent", max_turns=5)
    (job,) = target.jobs
    assert job.skill == "# Mine"
    assert job.prompt == "You answer.\n\n## Task\n\nAnswer.\n\n## Answer\n\nIn tags.\n\n## Question\n\nQ?"
    assert attempt.output == "x"


@pytest.mark.parametrize(
    ("replies", "turns", "output"),
    [
        (("<answer>a</answer>", "<answer>b</answer>"), 1, "a"),
        (("<answer>a</answer>", "<answer>b</answer>", "<answer>c</answer>"), 3, "b"),
        (("<answer>a</answer>", "I stand by it.", "<answer>c</answer>"), 3, "c"),
        (("<answer>a</answer>", "I stand by it."), 2, "a"),
        (("<answer>a</answer>", "", "<answer>c</answer>"), 3, "a"),
        (("a", "b"), 2, "b"),
        (("", "<answer>b</answer>"), 2, ""),
    ],
)
def test_an_answer_is_checked_until_a_check_has_the_form(replies, turns, output):
    assert asked(*replies, max_turns=turns)[1].output == output


def test_a_check_keeps_the_whole_conversation():
    target, attempt = asked("one", "<answer>two</answer>", max_turns=2)
    assert [message.text for message in target.messages[1][2:]] == ["one", "Check it."]
    assert [turn.role for turn in attempt.trajectory] == ["system", "user", "assistant", "user", "assistant"]


@pytest.mark.parametrize(
    ("reply", "kind", "ended"),
    [
        ("", "chat", "empty_answer"),
        ("", "agent", "empty_answer"),
        (ChatReply("<answer>x</answer>", finish="filtered"), "chat", "refused"),
        (ChatReply("x", finish="length"), "chat", None),
    ],
)
def test_how_an_attempt_ends(reply, kind, ended):
    assert asked(reply, kind=kind)[1].ended == ended


def test_what_is_wrong_with_the_form_is_told():
    assert about_form({}) == about_form({"reason": "", "cut_off": False}) == ""
    assert about_form({"reason": "no_tag"}).startswith("The reply had no answer tags")
    _, attempt = asked(ChatReply("so far", finish="length"))
    assert about_form(attempt.state).endswith("taken as the answer. The reply was cut off at the token limit.")


def test_how_an_answer_is_read_can_be_chosen():
    assert answer_or_last_line("Well:\n<answer>x\ny").text == "y"
    assert asked("<answer>x\ny")[1].output == "y"
    assert asked("<answer>x\ny", read=last_answer)[1].output == "x\ny"
