"""A question with images for a chat model, and with files for an agent program."""

from skillopt_kernel.models.requests import ImagePart, TextPart
from skillopt_lib_env.questions import Form, ask
from skillopt_testkit.scripted import ScriptedTarget

FORM = Form(role="You see.", task="## Task", answer="## Answer", check="Again.")
IMAGES = [ImagePart(b"one", "image/png", "low"), ImagePart(b"two", "image/jpeg")]
FILES = {"page_1.png": b"one"}


def asked(kind, **more):
    target = ScriptedTarget("<answer>x</answer>", kind=kind)
    assert ask(FORM, "Q?", "# Skill", target, **more).output == "x"
    return target


def test_images_follow_the_question_and_stay_in_later_turns():
    target = asked("chat", images=IMAGES, files=FILES, max_turns=2)
    first, second = target.messages
    assert first[1].content == (TextPart("Q?"), *IMAGES)
    assert second[:2] == first
    assert second[3].content == "Again."


def test_without_images_the_question_is_plain_text():
    assert asked("chat").messages[0][1].content == "Q?"


def test_files_go_to_an_agent_program():
    (job,) = asked("agent", images=IMAGES, files=FILES).jobs
    assert job.files == FILES
    assert asked("agent").jobs[0].files == {}
