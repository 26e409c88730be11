"""One attempt: what the target is shown, how its answer is read, scored and told of."""

import importlib

import attrs
import pytest
import skillopt_env_docvqa
from skillopt_env_docvqa_letters import draw, environment
from skillopt_kernel.errors import EnvironmentFailure
from skillopt_kernel.models.requests import ChatReply, ImagePart, TextPart
from skillopt_kernel.plugins.manifest import ACCEPTED_APIS
from skillopt_kernel.records import Attempt, Task
from skillopt_testkit.scripted import ScriptedTarget

SKILL = "# Mine\n\n- Be {brief}."


@pytest.fixture
def task(tmp_path):
    path = draw(tmp_path / "letter.png", ["Date: 12th May 1971"])
    return Task("q", "form", {"question": "What is the date?"}, ["12th May 1971"], {"letter.png": str(path)})


def attempted(task, reply="<answer>12th May 1971</answer>", kind="chat", **settings):
    asked, made = ScriptedTarget(reply, kind=kind), environment(**settings)
    return asked, made.attempt(task.hidden(), SKILL, asked), made


def replies(*texts):
    waiting = list(texts)
    return lambda messages: waiting.pop(0)


def test_the_page_goes_with_the_question(task, tmp_path):
    target, attempt, made = attempted(task)
    ((system, user),) = target.messages
    assert "## Skill\n\n# Mine\n\n- Be {brief}.\n\n## Task" in system.content
    assert "<answer>" in system.content
    text, image = user.content
    assert text == TextPart("## Page\n\nThe page is attached.\n\n## Question\n\nWhat is the date?")
    assert image == ImagePart((tmp_path / "letter.png").read_bytes(), "image/png", "auto")
    assert (attempt.output, attempt.ended) == ("12th May 1971", None)
    score = made.score(task, attempt, None)
    assert (score.hard, score.soft, score.feedback) == (1.0, 1.0, "Right.")
    assert set(score.named) == {"anls", "reference_anls", "reference_hard"}


def test_the_trajectory_tells_of_the_page(task):
    _, attempt, _ = attempted(task)
    assert [turn.role for turn in attempt.trajectory] == ["environment", "system", "user", "assistant"]
    assert attempt.trajectory[0].content == (
        "Page 1: letter.png, 640 x 400 pixels, landscape, grey, PNG; sent as it is stored"
    )


@pytest.mark.parametrize("detail", ["auto", "low", "high"])
def test_the_detail_is_handed_on(task, detail):
    target, attempt, _ = attempted(task, image_detail=detail)
    assert target.messages[0][1].content[1].detail == detail
    told = "" if detail == "auto" else f"; looked at in {detail} detail"
    assert attempt.state["pages"][0].endswith(f"sent as it is stored{told}")


def test_a_page_that_is_too_large_is_sent_smaller_and_the_analysts_are_told(task):
    target, attempt, made = attempted(task, image_max_side=320)
    changed = "scaled down to 320 x 200 pixels (640 x 400 pixels, more than 320 a side)"
    told = f"640 x 400 pixels, landscape, grey, PNG; {changed}"
    assert target.messages[0][1].content[1].data[16:24] == (320).to_bytes(4, "big") + (200).to_bytes(4, "big")
    assert attempt.state["pages"] == [told]
    assert f"- Page 1: {told}" in made.evidence(task, attempt)["The page"]


def test_several_pages_go_in_order(task, tmp_path):
    second = draw(tmp_path / "back.jpg", ["See over"])
    both = attrs.evolve(task, files={**task.files, "back.jpg": str(second)})
    target, _, _ = attempted(both)
    text, *images = target.messages[0][1].content
    assert "The 2 pages are attached in order." in text.text
    assert [image.media_type for image in images] == ["image/png", "image/jpeg"]


def test_an_agent_program_finds_the_page_as_a_file(task, tmp_path):
    target, attempt, made = attempted(task, "It says:\n<answer>12th May 1971</answer>", "agent", image_max_side=320)
    (job,) = target.jobs
    assert target.messages == []
    assert list(job.files) == ["page_1.png"]
    assert job.files["page_1.png"][16:20] == (320).to_bytes(4, "big")
    assert "- `page_1.png`" in job.prompt
    assert "## Question\n\nWhat is the date?" in job.prompt
    assert job.skill == SKILL
    assert made.score(task, attempt, None).hard == 1.0
    assert attempt.trajectory[0].content.startswith("Page 1: letter.png, ")


def test_later_turns_keep_page_and_conversation(task):
    waiting = replies("<answer>1971</answer>", "Hm.", "<answer>12th May 1971</answer>")
    target, attempt, _ = attempted(task, waiting, max_turns=5)
    assert [len(messages) for messages in target.messages] == [2, 4, 6]
    assert target.messages[2][:2] == target.messages[0]
    assert attempt.output == "12th May 1971"


def test_a_page_that_changed_since_the_run_began_is_no_answer_of_the_target(task, tmp_path):
    seen = attrs.evolve(task, inputs={**task.inputs, "pages": [{"name": "letter.png", "sha256": "0" * 64, "told": ""}]})
    with pytest.raises(EnvironmentFailure, match="is not as it was when the run began"):
        attempted(seen)
    (tmp_path / "letter.png").unlink()
    with pytest.raises(EnvironmentFailure, match=r"letter\.png cannot be read"):
        attempted(task)


@pytest.mark.parametrize(
    ("reply", "hard", "soft", "feedback"),
    [
        (
            "<answer>12 May 1971</answer>", 0, 11 / 13,
            'Wrong: answered "12 May 1971"; accepted: "12th May 1971". The spelling agrees to 85%.',
        ),
        (
            "It is 12th May 1971", 0, 13 / 19,
            'Wrong: answered "It is 12th May 1971"; accepted: "12th May 1971". The spelling agrees to 68%. The reply '
            "had no answer tags, so its last line was taken as the answer.",
        ),
        (
            "<answer>1971</answer>", 0, 0,
            'Wrong: answered "1971"; accepted: "12th May 1971". The spelling agrees to 31%, too little to count.',
        ),
    ],
)  # fmt: skip
def test_feedback_tells_what_is_lacking_of_a_partly_right_answer_too(task, reply, hard, soft, feedback):
    _, attempt, made = attempted(task, reply)
    score = made.score(task, attempt, None)
    assert (score.hard, score.feedback) == (hard, feedback)
    assert score.soft == pytest.approx(soft)


@pytest.mark.parametrize(
    ("reply", "ended"), [(ChatReply("", finish="filtered"), "refused"), (ChatReply("", finish="empty"), "empty_answer")]
)
def test_no_answer_is_the_targets_own_doing(task, reply, ended):
    _, attempt, made = attempted(task, reply, max_turns=3)
    assert attempt.ended == ended
    assert made.score(task, attempt, None).soft == 0.0


def test_evidence_of_an_attempt_that_the_kernel_ended(task):
    told = attrs.evolve(task, inputs={**task.inputs, "pages": [{"name": "letter.png", "sha256": "", "told": "a page"}]})
    evidence = environment().evidence(told, Attempt("", ended="attempt_timeout"))
    assert evidence["Accepted answers"] == "- 12th May 1971"
    assert evidence["The page"].startswith("- Page 1: a page\n\nThe target looked at the page as an image")


def test_a_task_is_described_on_one_line(task):
    made = environment()
    assert made.describe(task) == "What is the date?"
    assert len(made.describe(Task("q", inputs={"question": "word\n" * 99}))) == 100


def test_the_initial_skill_is_packaged_and_names_no_task():
    skill = environment().initial_skill()
    assert skill.startswith("# ")
    assert 20 < len(skill.split()) < 200


def test_the_manifest_names_what_there_is():
    manifest = skillopt_env_docvqa.plugin
    assert (manifest.kind, manifest.name, manifest.section) == ("env", "docvqa", "env")
    assert manifest.api in ACCEPTED_APIS
    for part in (manifest.settings, manifest.factory, manifest.data):
        module, _, name = part.partition(":")
        assert hasattr(importlib.import_module(module), name)
