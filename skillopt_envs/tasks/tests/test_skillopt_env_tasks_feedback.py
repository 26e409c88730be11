"""People's comments on outputs: a training signal with a scope, and never a score (case O-B1)."""

import json

import pytest
from skillopt_env_tasks.feedback import Comment, content_hash, read_feedback, told
from skillopt_kernel.errors import DataError
from skillopt_kernel.records import Attempt
from skillopt_kernel.skill import skill_hash
from skillopt_testkit.scripted import ScriptedTarget

OLD, NEW = "# One\n", "# Two\n"


def comment(task, skill, rating="poor", text="far too long"):
    return {"task": task, "version": skill_hash(skill), "rating": rating, "comment": text}


@pytest.fixture
def feedback(written):
    return lambda *rows: written("feedback.jsonl", "".join(json.dumps(row) + "\n" for row in rows))


def shown(environment, task, skill):
    attempt = environment.attempt(task.hidden(), skill, ScriptedTarget("<answer>x</answer>"))
    return environment.evidence(task, attempt)["Human feedback"]


def test_o_b1_a_comment_is_about_its_version_only(environment, sums, feedback):
    task = environment(sums()).splits().train[0]
    made = environment(sums(), feedback=feedback(comment(task.id, OLD)))
    assert "rated poor: far too long" in shown(made, task, OLD)
    assert shown(made, task, NEW) == "", "what was said of an earlier candidate is not held against a later one"
    assert shown(made, made.splits().train[1], OLD) == "", "nor against another task"


def test_o_b1_no_score_and_no_prompt_of_the_target_depends_on_it(environment, sums, feedback):
    plain = environment(sums())
    task = plain.splits().train[0]
    made = environment(sums(), feedback=feedback(comment(task.id, OLD), comment(task.id, NEW, "", "worthless")))
    for skill in (OLD, NEW):
        sent = []
        for each in (plain, made):
            target = ScriptedTarget(f"<answer>{task.reference}</answer>")
            attempt = each.attempt(task.hidden(), skill, target)
            sent.append((target.messages, attempt, each.score(task, attempt, None)))
        assert sent[0] == sent[1]
        assert sent[1][2].hard == 1.0


def test_with_the_scope_task_all_is_shown_and_told_apart(environment, sums, feedback):
    task = environment(sums()).splits().train[0]
    rows = (comment(task.id, OLD), comment(task.id, NEW, 4, ""))
    made = environment(sums(), feedback=feedback(*rows), feedback_scope="task")
    lines = shown(made, task, NEW).splitlines()[1:]
    assert lines == [
        "- On an output of this version of the skill, rated 4.",
        f"- On an output of another version of the skill ({skill_hash(OLD)}), rated poor: far too long",
    ]


def test_comments_on_held_out_and_unknown_tasks_are_told_and_not_used(environment, sums, feedback, caplog):
    splits = environment(sums()).splits()
    rows = [comment(task.id, OLD) for task in (splits.train[0], splits.selection[0], splits.test[0])]
    made = environment(sums(), feedback=feedback(*rows, comment("nobody", OLD)))
    made.splits()
    assert "env.feedback: 2 of 4 comments are on selection or test tasks; not used." in caplog.text
    assert "1 of 4 comments are on tasks that the data does not have, such as 'nobody'" in caplog.text


def test_comments_on_another_version_than_the_first_are_told(environment, sums, feedback, written, caplog):
    task = environment(sums()).splits().train[0]
    rows = feedback(comment(task.id, OLD), comment(task.id, NEW))
    start = {"skill_init": written("SKILL.md", NEW)}
    told_of = (
        f"1 of 2 comments are about another version of the skill than the one that training starts from "
        f"({skill_hash(NEW)}), such as {skill_hash(OLD)}"
    )
    environment(sums(), start, feedback=rows).splits()
    assert told_of in caplog.text and "feedback.jsonl:1" in caplog.text
    caplog.clear()
    environment(sums(), start, feedback=rows, feedback_scope="task").splits()
    environment(sums(), start, feedback=feedback(comment(task.id, NEW))).splits()
    environment(sums(), {"skill_init": written("SKILL.md", b"\xff")}, feedback=rows).splits()
    assert "another version" not in caplog.text
    environment(sums(), feedback=feedback(comment(task.id, OLD), comment(task.id, NEW))).splits()
    assert "2 of 2 comments are about another version" in caplog.text


def test_a_version_may_be_shortened(environment, sums, feedback):
    task = environment(sums()).splits().train[0]
    row = comment(task.id, OLD)
    made = environment(sums(), feedback=feedback({**row, "version": row["version"][:8].upper()}))
    assert "far too long" in shown(made, task, OLD)


def test_a_comment_can_be_csv_and_ratings_numbers(written):
    path = written("f.csv", "task;version;rating;comment\nt1;0123456789abcdef;2;too long\nt2;0123456789abcdef;5;\n")
    one, two = read_feedback(path)
    assert (one.task, one.rating, one.text) == ("t1", "2", "too long")
    assert (two.rating, two.text) == ("5", "")
    path = written("f.jsonl", '{"task": 7, "version": "0123456789abcdef", "rating": 2.5}')
    assert read_feedback(path)[0] == Comment("7", "0123456789abcdef", "2.5", "", f"{path}:1")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"version": "0123456789abcdef", "rating": 1}, r"f\.jsonl:1: the field 'task' is missing"),
        ({"task": "t", "rating": 1}, r"f\.jsonl:1: the field 'version' is missing"),
        ({"task": "t", "version": "latest", "rating": 1}, r"the version is 'latest', but it is the hash of the skill"),
        ({"task": "t", "version": "0123", "rating": 1}, r"8 to 16 hex digits"),
        ({"task": "t", "version": "0123456789abcdef"}, r"f\.jsonl:1: the row has neither a rating nor a comment"),
        ({"task": "t", "version": "0123456789abcdef", "raiting": 1}, r"the field 'raiting' is none of .*mean 'rating'"),
        ({"task": "t", "version": "0123456789abcdef", "rating": [1]}, r"the field 'rating' must be text"),
        ({"task": "t", "version": "0123456789abcdef", "rating": float("inf")}, r"the rating is inf, which is none"),
    ],
)
def test_a_comment_that_cannot_be_used(written, row, message):
    with pytest.raises(DataError, match=message):
        read_feedback(written("f.jsonl", json.dumps(row)))


def test_a_folder_holds_no_comments(tmp_path):
    with pytest.raises(DataError, match=r"env\.feedback: .* is a folder; name the file that holds the comments"):
        read_feedback(tmp_path)


def test_what_can_change_a_result_is_hashed(environment, sums, feedback):
    assert environment(sums()).further_data == ""
    hashes = {
        environment(sums(), feedback=feedback(comment("t", OLD, rating))).further_data
        for rating in ("poor", "good", "poor")
    }
    assert len(hashes) == 2
    assert content_hash(()) != hashes.pop()


def test_an_attempt_without_a_version_is_nobodys(environment, sums):
    comments = (Comment("t", "0123456789abcdef", "1", "", "f:1"),)
    assert told(comments, "t", "", "version") == ""
    assert "another version" in told(comments, "t", "", "task")
    assert Attempt("x").state == {}


def test_o_b1_the_judge_sees_the_task_and_no_comment(environment, sums, feedback):
    from skillopt_lib_env.scoring import ScorerChoice
    from skillopt_testkit.scripted import ScriptedJudge

    task = environment(sums()).splits().train[0]
    made = environment(sums(), feedback=feedback(comment(task.id, NEW)), scorer=ScorerChoice("llm_judge"))
    judge = ScriptedJudge('{"reasoning": "Good.", "score": 1.0}')
    attempt = made.attempt(task.hidden(), NEW, ScriptedTarget("<answer>x</answer>"))
    assert made.score(task, attempt, judge).hard == 1.0
    seen = " ".join(message.text for call in judge.messages for message in call)
    assert task.inputs["question"] in seen and task.reference in seen
    assert "far too long" not in seen
