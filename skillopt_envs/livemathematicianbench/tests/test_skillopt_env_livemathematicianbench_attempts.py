"""Attempts and scores: what the target is sent, what is taken as its choice, what analysts are told."""

import attrs
import pytest
import skillopt_env_livemathematicianbench
from skillopt_env_livemathematicianbench.environment import LiveMathematicianBenchEnvironment
from skillopt_env_livemathematicianbench.settings import LiveMathematicianBenchSettings
from skillopt_kernel.models.requests import ChatReply
from skillopt_kernel.records import Attempt, Task
from skillopt_testkit.scripted import ScriptedJudge, ScriptedTarget

CHOICES = [{"label": label, "text": f"statement {label}"} for label in "ABC"]
TASK = Task(
    "202501:1",
    "Universal",
    {"question": "Which holds?", "choices": CHOICES},
    {"label": "B", "text": "statement B", "theorem": "The theorem.", "sketch": "The sketch."},
)


def attempted(environment, reply, task=TASK, skill="", kind="chat", **settings):
    target = ScriptedTarget(reply, kind=kind)
    made = environment(**settings)
    attempt = made.attempt(task.hidden(), skill, target)
    return target, attempt, made.score(task, attempt, ScriptedJudge("{}"))


def test_a_question_is_put_with_skill_and_choices(environment):
    target, attempt, score = attempted(environment, "It is so.\n<answer>B</answer>", skill="# Mine\n\n- Look.\n")
    system, user = target.messages[0]
    assert "## Skill\n\n# Mine\n\n- Look.\n\n## Task" in system.content
    assert user.content == (
        "## Question\n\nWhich holds?\n\n## Choices\n\nA. statement A\nB. statement B\nC. statement C"
    )
    assert "theorem." not in user.content
    assert (attempt.output, attempt.ended) == ("B", None)
    assert (score.hard, score.soft, score.feedback) == (1.0, 1.0, "Right.")


def test_a_blank_skill_leaves_its_heading_out(environment):
    target, _, _ = attempted(environment, "<answer>B</answer>", skill=" \n")
    assert "## Skill" not in target.messages[0][0].content


def test_theorem_and_sketch_stand_in_sections_of_their_own(environment):
    inputs = {**TASK.inputs, "theorem": "T holds.", "sketch": "Since S."}
    target, _, _ = attempted(environment, "B", task=attrs.evolve(TASK, inputs=inputs))
    assert target.messages[0][1].content.endswith("## Theorem\n\nT holds.\n\n## Sketch of the proof\n\nSince S.")


def test_an_agent_program_gets_one_job_with_question_and_skill(environment):
    target, attempt, score = attempted(environment, "<answer>(B)</answer>", skill="- Look.", kind="agent", max_turns=3)
    (job,) = target.jobs
    assert job.skill == "- Look."
    assert job.prompt.endswith("C. statement C")
    assert "<answer>D</answer>" in job.prompt
    assert "Look." not in job.prompt
    assert (attempt.output, score.hard) == ("(B)", 1.0)
    assert attempted(environment, " ", kind="agent")[1].ended == "empty_answer"


def test_later_turns_keep_the_question(environment):
    replies = {2: "<answer>A</answer>", 4: "Hm.", 6: "<answer>B</answer>"}
    target, attempt, score = attempted(environment, lambda messages: replies[len(messages)], max_turns=5)
    assert [len(messages) for messages in target.messages] == [2, 4, 6]
    assert "Which holds?" in target.messages[-1][1].content
    assert (attempt.output, score.hard) == ("B", 1.0)


@pytest.mark.parametrize(
    ("reply", "hard", "feedback"),
    [
        ("<answer>C</answer>", 0, 'Wrong: chose C ("statement C"); right: B ("statement B").'),
        (
            "<answer>B or C</answer>",
            0,
            'Wrong: "B or C" names no single choice, by its label or its text; right: B ("statement B").',
        ),
        (
            "The answer is B",
            1,
            "Right. The reply had no answer tags, so its last line was taken as the answer.",
        ),
        (
            "<answer>B",
            1,
            "Right. The answer tag was opened and not closed, so the whole last line was taken as the answer.",
        ),
        ("<answer></answer>", 0, 'Wrong: there is no answer; right: B ("statement B").'),
        (
            ChatReply("I think", finish="length"),
            0,
            'Wrong: "I think" names no single choice, by its label or its text; right: B ("statement B"). The reply '
            "had no answer tags, so its last line was taken as the answer. The reply was cut off at the token limit.",
        ),
    ],
)
def test_feedback_says_what_was_chosen_and_what_is_right(environment, reply, hard, feedback):
    _, _, score = attempted(environment, reply)
    assert (score.hard, score.soft, score.feedback) == (hard, hard, feedback)


@pytest.mark.parametrize(
    ("reply", "ended"),
    [("", "empty_answer"), ("<answer> </answer>", "empty_answer"), (ChatReply("B", finish="filtered"), "refused")],
)
def test_no_answer_is_the_targets_own_doing(environment, reply, ended):
    assert attempted(environment, reply, max_turns=3)[1].ended == ended


def test_what_was_earlier_counted_is_a_score_of_its_own(environment):
    assert attempted(environment, "<answer>B or C</answer>")[2].named == {"reference_accuracy": 1.0}
    assert attempted(environment, "<answer>(B)</answer>")[2].named == {"reference_accuracy": 0.0}


def test_analysts_are_told_the_right_choice_and_what_the_question_was_made_of(environment):
    evidence = environment().evidence(TASK, Attempt("A"))
    assert evidence == {
        "Right choice": "B. statement B", "Theorem": "The theorem.", "Sketch of the proof": "The sketch."
    }  # fmt: skip
    shown = attrs.evolve(TASK, reference={"label": "B", "text": "statement B", "theorem": ""})
    assert set(environment().evidence(shown, Attempt("A"))) == {"Right choice"}


def test_a_task_is_described_on_one_line(environment):
    assert environment().describe(TASK) == "Which holds?"
    assert len(environment().describe(Task("q", inputs={"question": "word\n" * 99}))) == 100


def test_the_initial_skill_is_packaged_and_names_no_task(environment):
    skill = environment().initial_skill()
    assert skill.startswith("# ")
    assert 20 < len(skill.split()) < 200
    assert "<answer>" not in skill


def test_the_manifest_names_settings_factory_and_data():
    manifest = skillopt_env_livemathematicianbench.plugin
    settings, made = LiveMathematicianBenchSettings, LiveMathematicianBenchEnvironment
    assert manifest.settings == f"{settings.__module__}:{settings.__qualname__}"
    assert manifest.factory == f"{made.__module__}:{made.__qualname__}"
    assert manifest.data == "skillopt_env_livemathematicianbench.data:data"


@pytest.mark.parametrize("key", ["max_turns", "max_completion_tokens"])
def test_impossible_settings_are_refused(key):
    with pytest.raises(ValueError, match="must be at least"):
        LiveMathematicianBenchSettings(**{key: 0})


@pytest.mark.parametrize(
    "reply", ["<answer>B", "So it is: <answer> (B)", "Thus:\n< ANSWER >B.", "<answer>A</answer> or <answer>B"]
)
def test_a_tag_that_is_not_closed_does_not_hide_the_label(environment, reply):
    made = environment()
    attempt = made.attempt(TASK.hidden(), "", ScriptedTarget(reply))
    assert made.score(TASK, attempt, None).hard == float("</answer>" not in reply), "a closed pair counts before"
