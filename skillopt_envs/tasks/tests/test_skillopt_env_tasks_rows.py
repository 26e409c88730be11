"""Rows that cannot be used, each with its place; and what becomes of numbers, lists and several right answers."""

import json

import pytest
from skillopt_kernel.errors import DataError
from skillopt_lib_env.scoring import ScorerChoice
from skillopt_testkit.scripted import ScriptedJudge, ScriptedTarget


def lines(written, rows, name="d.jsonl"):
    return written(name, "\n".join(json.dumps(row, ensure_ascii=False) for row in rows))


def good(count=12):
    return [{"id": f"t{n}", "question": f"Which is {n}?", "answer": f"this {n}"} for n in range(count)]


def with_row(number, **changes):
    """Good rows of which one is changed; `None` takes a field away."""
    rows = good()
    changed = {**rows[number], **changes}
    rows[number] = {name: value for name, value in changed.items() if value is not None}
    return rows


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"answer": None}, r"d\.jsonl:5: there is nothing to score with: the field 'answer' is blank"),
        ({"answer": "  "}, r"d\.jsonl:5: there is nothing to score with"),
        ({"answer": []}, r"d\.jsonl:5: there is nothing to score with"),
        ({"question": None}, r"d\.jsonl:5: there is nothing to show to the target: 'question' is blank"),
        ({"question": " \n"}, r"d\.jsonl:5: there is nothing to show"),
        ({"id": " "}, r"d\.jsonl:5: the field 'id' is blank"),
        ({"id": None}, r"d\.jsonl:5: the field 'id' is blank"),
        ({"id": {"a": 1}}, r"d\.jsonl:5: the field 'id' must be text or a number, not \{\"a\": 1\}"),
        ({"id": True}, r"d\.jsonl:5: the field 'id' must be text or a number, not true"),
        ({"id": "t2"}, r"d\.jsonl:5: the row has the id 't2' of the row at .*d\.jsonl:3; rename one of the two"),
        ({"question": "a\0b"}, r"d\.jsonl:5: the field 'question' holds a NUL character"),
        ({"answer": ["a", "\0"]}, r"d\.jsonl:5: the field 'answer' holds a NUL character"),
        ({"question": float("nan")}, r"d\.jsonl:5: the field 'question' holds the number nan"),
        ({"answer": {"a": 1}}, r"d\.jsonl:5: the scorer cannot use the field 'answer'"),
    ],
)
def test_a_row_that_cannot_be_used(written, environment, changes, message):
    with pytest.raises(DataError, match=message):
        environment(lines(written, with_row(4, **changes))).splits()


def test_all_rows_that_cannot_be_used_are_told_at_once(written, environment):
    rows = [{**row, "answer": ""} if n % 2 else row for n, row in enumerate(good(60))]
    with pytest.raises(DataError) as caught:
        environment(lines(written, rows)).splits()
    told = str(caught.value).splitlines()
    assert len(told) == 21
    assert told[0].startswith(str(written("d.jsonl", "")) + ":2: ")
    assert told[-1] == "and 10 more rows like these."


def test_a_row_twice_without_ids_is_told(written, environment):
    rows = [{name: row[name] for name in ("question", "answer")} for row in good()]
    rows.append({"question": "Which  is 3? ", "answer": "this 3"})  # spacing makes no other task
    with pytest.raises(DataError, match=r"d\.jsonl:13: the row is the same task as the row at .*:4; delete one of"):
        environment(lines(written, rows)).splits()


def test_an_id_of_the_content_does_not_depend_on_the_row(written, environment):
    rows = [{name: row[name] for name in ("question", "answer")} for row in good()]
    made = environment(lines(written, rows)).splits()
    moved = environment(lines(written, rows[::-1], "moved.jsonl")).splits()
    for part in ("train", "selection", "test"):
        assert {task.id for task in getattr(made, part)} == {task.id for task in getattr(moved, part)}
    assert all(task.id.startswith("task-") and len(task.id) == 17 for task in made.train)


@pytest.mark.parametrize(
    ("reference", "taken"),
    [(42, "42"), (0, "0"), (2.5, "2.5"), (True, "true"), ([4, 5], ["4", "5"]), ("42", "42"), (["a", "b"], ["a", "b"])],
)
def test_numbers_as_references_are_their_text_to_a_scorer_of_texts(written, environment, reference, taken):
    rows = [{**row, "answer": reference} for row in good()]
    assert environment(lines(written, rows)).splits().train[0].reference == taken


def test_several_right_answers_in_one_cell(written, environment):
    path = written("d.csv", "question,answer\n" + "".join(f"Which is {n}?,a {n} | b|\n" for n in range(12)))
    tasks = environment(path, reference_separator="|").splits().train
    assert all(len(task.reference) == 2 and task.reference[1] == "b" for task in tasks)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("d.csv", "question,answer\r\n" + "".join(f"Which is {n}?,{n}\r\n\r\n" for n in range(12))),
        ("d.csv", "\ufeffquestion;answer\n" + "".join(f"Which is {n}?;{n}\n;\n" for n in range(12))),
        ("d.csv", "sep=;\nquestion;answer\n" + "".join(f'"Which is {n};?";{n}\n' for n in range(12))),
        ("d.jsonl", "\ufeff" + "\n\n".join(json.dumps({"question": f"Which {n}", "answer": n}) for n in range(12))),
        ("d.json", "\ufeff" + json.dumps([{"question": f"Which {n}", "answer": n} for n in range(12)])),
        ("d.json", json.dumps({"data": [{"question": f"Which {n}", "answer": n} for n in range(12)]})),
    ],
)
def test_files_as_people_have_them(written, environment, name, content):
    splits = environment(written(name, content)).splits()
    tasks = splits.train + splits.selection + splits.test
    assert sorted(int(task.reference) for task in tasks) == list(range(12))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.csv", "question,answer\ncaf\xe9,1\n".encode("latin-1"), r"d\.csv:2: byte 19 is not UTF-8 \(0xe9\)"),
        ("d.csv", "question,answer\na,1\n".encode("utf-16"), r"looks like UTF-16; save the file as UTF-8"),
        ("d.csv", "question,answer\n" + "x" * 200_000 + ",1\n", r"d\.csv:2: .*more than 131,072 characters"),
        ("d.csv", "question,answer\na,1\0\n", r"d\.csv:2: there is a NUL character"),
        ("d.csv", "question,answer\na,b,c\n", r"d\.csv:2: the row has 3 values, the header names 2 columns"),
        ("d.csv", "question,answer\n", r"d\.csv: the file holds 0 tasks"),
        ("d.json", "[]", r"d\.json: the file holds 0 tasks"),
        ("d.json", "{", r"d\.json:1:2: the file is not valid JSON"),
        ("d.csv", "", r"d\.csv: the file is empty"),
        ("d.xlsx", b"PK", r"d\.xlsx: the file is a spreadsheet; save it as CSV"),
    ],
)
def test_files_that_cannot_be_read(written, environment, name, content, message):
    with pytest.raises(DataError, match=message):
        environment(written(name, content)).splits()


def test_huge_texts_are_read_from_json_lines(written, environment):
    rows = [{**row, "question": f"{n} " + "x" * 300_000} for n, row in enumerate(good())]
    assert len(environment(lines(written, rows)).splits().train[0].inputs["question"]) > 300_000


def test_a_file_that_is_not_there(environment, tmp_path):
    with pytest.raises(
        DataError, match=r"there is no file or folder .*none\.csv\. Name a file: `skillopt train --tasks"
    ):
        environment(tmp_path / "none.csv").splits()
    with pytest.raises(
        DataError, match=r"env\.data_path names no data to split\. Name a file: `skillopt train --tasks"
    ):
        environment().splits()


def test_o_d1_one_line_is_one_task(written, environment):
    path = written("d.jsonl", '{"id":"t1","question":"2+2?","answer":"4"}')
    with pytest.raises(DataError, match="1 task is too few"):
        environment(path).splits()


def test_o_d2_a_byte_order_mark_takes_no_task_away(written, environment):
    path = written("d.jsonl", "\ufeff" + "\n".join(json.dumps(row) for row in good(10)))
    splits = environment(path).splits()
    assert [len(part) for part in (splits.train, splits.selection, splits.test)] == [4, 2, 4]


def test_o_d3_nothing_to_learn_from_names_file_and_split(written, environment):
    for part, content in (("train", "[]"), ("val", json.dumps(good(2))), ("test", "[]")):
        written(f"data/{part}/items.json", content)
    folder = written("data/x", "").parent
    with pytest.raises(DataError, match=r"data: there is no task in the train split; training needs tasks"):
        environment(common={"split_mode": "split_dir", "split_dir": folder}).splits()
    rows = [{**row, "split": "test"} for row in good()]
    with pytest.raises(DataError, match=r"d\.jsonl: the field 'split' puts no task into the train split"):
        environment(lines(written, rows)).splits()


def test_o_u2_a_scorer_that_cannot_be_made_ends_it(written, environment):
    from skillopt_kernel.plugins.errors import PluginNotFound

    with pytest.raises(PluginNotFound, match=r"there is no scorer named 'levenshtein'"):
        environment(lines(written, good()), scorer=ScorerChoice("levenshtein"))


def test_a_scorer_of_numbers_gets_numbers(written, environment):
    rows = [{**row, "answer": 2.5} for row in good()]
    made = environment(lines(written, rows), scorer=ScorerChoice("numeric"))
    assert made.splits().train[0].reference == 2.5
    rows[4]["answer"] = "many"
    with pytest.raises(DataError, match=r"d\.jsonl:5: the scorer cannot use the field 'answer'"):
        environment(lines(written, rows), scorer=ScorerChoice("numeric")).splits()


def test_a_scorer_of_json_gets_what_the_file_has(written, environment):
    rows = [{**row, "answer": {"year": 2024, "paid": [True]}} for row in good()]
    task = environment(lines(written, rows), scorer=ScorerChoice("json")).splits().train[0]
    assert task.reference == {"year": 2024, "paid": [True]}


def test_a_scorer_of_choices_sees_the_choices_of_the_task(written, environment):
    rows = [{**row, "choices": ["one", "two"], "answer": "B"} for row in good()]
    assert environment(lines(written, rows), scorer=ScorerChoice("choice")).splits().train[0].reference == "B"
    rows[3]["answer"] = "F"
    with pytest.raises(DataError, match=r"d\.jsonl:4: the scorer cannot use the field 'answer'.*'F'"):
        environment(lines(written, rows), scorer=ScorerChoice("choice")).splits()


def test_a_judge_with_a_rubric_needs_no_reference(written, environment):
    from skillopt_scorers.settings import JudgeSettings

    rows = [{"question": f"Which is {n}?"} for n in range(12)]
    judged = ScorerChoice("llm_judge", JudgeSettings(rubric="It is polite."))
    made = environment(lines(written, rows), scorer=judged)
    task = made.splits().train[0]
    assert task.reference is None
    attempt = made.attempt(task, "", ScriptedTarget("<answer>Please.</answer>"))
    score = made.score(task, attempt, ScriptedJudge('{"reasoning": "It is.", "score": 1.0}'))
    assert (score.hard, score.feedback) == (1.0, "It is.")
    with pytest.raises(DataError, match=r"which field holds the right answers\?"):
        environment(lines(written, rows), scorer=ScorerChoice("llm_judge")).splits()
