"""Questions: read in every form that they come in, split, cleaned and shuffled; what cannot be used is an error."""

import json
import logging
import os
import subprocess
import sys

import pytest
from skillopt_env_livemathematicianbench.files import read_questions
from skillopt_env_livemathematicianbench.questions import (
    STOCK_OPTION,
    Choice,
    Question,
    as_fields,
    question_of,
    shuffled,
)
from skillopt_kernel.errors import DataError
from skillopt_lib_env.data_files import Item

THREE = [{"label": "A", "text": "one"}, {"label": "B", "text": "two"}, {"label": "C", "text": "three"}]


def item(**changes):
    fields = {
        "month": "202501",
        "no": 1,
        "question": "Q?",
        "choices": THREE,
        "correct_choice": {"label": "B"},
        **changes,
    }
    return Item({name: value for name, value in fields.items() if value is not None}, "file.json, item 1")


def test_the_benchmarks_own_items_are_read(raw):
    questions = [question_of(row) for row in read_questions(raw)]
    assert [question.id for question in questions[:2]] == ["202501:1", "202501:2"]
    assert questions[8].id == "202502:1"
    assert len(questions) == 16
    for question in questions:
        assert [choice.label for choice in question.choices] == list("ABCDE")
        assert question.right == "A", "the right choice joins the four wrong ones"
        assert question.theorem and question.sketch and question.kinds
    assert sum(question.has_stock_option for question in questions) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"correct_choice": "B"},
        {"correct_choice": "b "},
        {"correct_choice": {"label": "B", "text": "two"}},
        {"choices": ["one", "two", "three"]},
        {"choices": {"A": "one", "B": "two", "C": "three"}},
        {"choices": {"c": "three", "b": "two", "a": "one"}},
        {"choices": [{"label": each["label"], "content": each["text"]} for each in THREE]},
        {"choices": [{"text": each["text"]} for each in THREE]},
        {"choices": [*THREE, {"label": "D", "text": " "}]},
        {"choices": [THREE[0], THREE[2]], "correct_choice": {"label": "B", "text": "two"}},
        {"mcq": {"question": "Q?", "choices": THREE, "correct_choice": "B"}, "question": None, "choices": None},
        {"no": "1"},
        {"id": "202501:1", "month": None, "no": None},
    ],
)
def test_every_form_of_an_item_is_the_same_question(changes):
    found = question_of(item(**changes))
    choices = tuple(Choice(each["label"], each["text"]) for each in THREE)
    assert found == Question("202501:1", "Q?", choices, "B")
    assert question_of(Item(as_fields(found), "again")) == found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"question": None}, "the field 'question' is missing"),
        ({"question": " "}, "the field 'question' is blank"),
        ({"choices": None}, "the field 'choices' is missing; the fields given are"),
        ({"choices": "one"}, "'choices' must be a list of choices, or an object"),
        ({"choices": ["one"]}, "there must be at least two choices"),
        ({"choices": ["one", ["two"]]}, "a choice: the field 'text' must be text, not a list"),
        ({"choices": [{"label": "AB", "text": "x"}]}, "the label 'AB' is not a single letter"),
        ({"choices": [{"label": 1, "text": "x"}]}, "the label '1' is not a single letter"),
        ({"choices": [*THREE, THREE[0]]}, "two choices have the label A"),
        ({"correct_choice": None}, "the field 'correct_choice' is missing"),
        ({"correct_choice": "D"}, "the correct choice D is none of the choices A, B, C"),
        ({"correct_choice": ["B"]}, "the field 'correct_choice' must be text, not a list"),
        ({"correct_choice": {"text": "two"}}, "the label '' is not a single letter"),
        ({"correct_choice": {"label": "B", "text": "three"}}, "the correct choice B and the choice of that label have"),
        ({"mcq": []}, "the field 'mcq' must be an object"),
        ({"month": None, "no": None}, "the field 'id' is missing"),
        ({"theorem": ["x"]}, "the field 'theorem' must be text"),
    ],
)
def test_an_item_that_no_answer_could_be_judged_by_is_named(changes, message):
    with pytest.raises(DataError) as caught:
        question_of(item(**changes))
    assert str(caught.value).startswith("file.json, item 1")
    assert message in str(caught.value)


def test_a_list_of_ids_is_told_from_questions():
    with pytest.raises(DataError, match=r"lists ids only.*skillopt data livemathematicianbench --from FOLDER"):
        question_of(Item({"id": "202501:1", "paper_link": "x"}, "items.json, item 1"))


def test_shuffling_depends_on_seed_and_id_alone_and_keeps_what_is_right():
    questions = [
        Question(f"m:{n}", "Q?", tuple(Choice(each, f"text {each}") for each in "ABCDE"), "A") for n in range(99)
    ]
    once = [shuffled(question, 42) for question in questions]
    assert once == [shuffled(question, 42) for question in questions]
    assert once != [shuffled(question, 43) for question in questions]
    assert {question.right_text for question in once} == {"text A"}
    counts = [sum(question.right == label for question in once) for label in "ABCDE"]
    assert min(counts) > 10, f"each label is right about as often: {counts}"
    for question in once:
        assert [choice.label for choice in question.choices] == list("ABCDE")


def test_the_stock_option_is_known_whatever_its_blanks():
    changed = STOCK_OPTION.replace(" ", "  ") + "\n"
    assert question_of(item(choices=["one", changed])).has_stock_option
    assert not question_of(item(choices=["one", STOCK_OPTION + " Not."])).has_stock_option


def labels(part):
    return [task.reference["label"] for task in part]


def test_raw_files_are_split_by_ratio_and_what_was_written_is_read_again(environment, tmp_path, raw):
    made = environment()
    splits = made.splits()
    assert [len(part) for part in (splits.train, splits.selection, splits.test)] == [8, 4, 4]
    made.save_splits(tmp_path)
    (written,) = (tmp_path / "_generated_splits").iterdir()
    assert environment({"split_mode": "split_dir", "split_dir": written}).splits() == splits
    assert environment({"data_path": raw / "202501" / "qa_202501_final.json"}).splits().train


def test_choices_are_shuffled_with_the_runs_seed(environment):
    first, again, other = (environment(seed=seed).splits().train for seed in (1, 1, 2))
    assert first == again
    assert labels(first) != labels(other)
    assert set(labels(first)) != {"A"}
    assert [task.id for task in first] == [task.id for task in other]


def test_unshuffled_choices_are_warned_of(environment, caplog):
    with caplog.at_level(logging.WARNING):
        splits = environment(shuffle_choices=False, clean_items=True).splits()
    assert set(labels(splits.train + splits.test)) == {"A"}
    assert "env.shuffle_choices is false, and the right choice is A in all 13 questions" in caplog.text


def test_the_stock_option_is_warned_of_and_left_out_where_that_is_asked_for(environment, caplog):
    with caplog.at_level(logging.WARNING):
        environment().splits()
    assert f'3 of the 16 questions offer "{STOCK_OPTION}", right in all 3 of them' in caplog.text
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        splits = environment(clean_items=True).splits()
    assert not caplog.records
    assert len(splits.train + splits.selection + splits.test) == 13
    assert STOCK_OPTION not in repr(splits)


def test_what_gives_the_answer_away_is_shown_only_where_that_is_asked_for(environment):
    hidden = environment().splits().train[0]
    assert set(hidden.inputs) == {"question", "choices"}
    assert hidden.reference["theorem"] and hidden.reference["sketch"]
    shown = environment(use_theorem=True).splits().train[0]
    assert shown.inputs["theorem"] == hidden.reference["theorem"]
    assert "theorem" not in shown.reference and "sketch" not in shown.inputs
    both = environment(use_theorem=True, use_sketch=True).splits().train[0]
    assert {"theorem", "sketch"} <= set(both.inputs)


def test_a_task_has_the_first_type_of_its_theorem_as_kind(environment):
    tasks = environment().splits().train
    assert {"Inequality or Bound", "Universal"} & {task.kind for task in tasks}
    assert environment()._task(item()).kind == "math_mcq"


def test_the_order_of_choices_is_the_same_in_every_process():
    """Also where Python's hashes differ, on which no order may rest."""
    code = (
        "from skillopt_env_livemathematicianbench.questions import Choice, Question, shuffled\n"
        "choices = tuple(Choice(label, label.lower()) for label in 'ABCDE')\n"
        "print([''.join(each.text for each in shuffled(Question(f'm:{n}', 'Q?', choices, 'A'), 7).choices)"
        " for n in range(40)])"
    )
    told = {
        subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True,
                       text=True, check=True).stdout
        for seed in ("0", "1")
    }  # fmt: skip
    choices = tuple(Choice(label, label.lower()) for label in "ABCDE")
    orders = [
        "".join(each.text for each in shuffled(Question(f"m:{n}", "Q?", choices, "A"), 7).choices) for n in range(40)
    ]
    assert told == {f"{orders}\n"}
    assert len(set(orders)) > 20, "each question has an order of its own"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"there is no file qa_\*_final\.json below this folder\. The questions are not shipped"),
        ({"a.json": "[]", "b.json": "[]"}, r"there is no file qa_\*_final\.json below this folder"),
        ({"qa_1_final.json": "[]"}, r"the data is empty"),
        ({"qa_1_final.json": "["}, r"qa_1_final\.json:1:2: the file is not valid JSON"),
        ({"qa_1_final.json": '[{"no": 1}]'}, r"qa_1_final\.json, item 1: the file lists ids only"),
    ],
)
def test_a_folder_without_questions_says_how_to_get_them(environment, tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(DataError, match=message):
        environment({"data_path": tmp_path}).splits()


def test_a_folder_that_is_not_there_says_how_to_get_the_questions(environment, tmp_path):
    common = {"split_mode": "split_dir", "split_dir": tmp_path / "data/livemathematicianbench_split"}
    with pytest.raises(DataError, match=r"livemathematicianbench_split.*skillopt data livemathematicianbench"):
        environment(common).splits()


def test_an_item_without_a_number_gets_its_place(tmp_path):
    rows = [{"month": "m", "question": "Q?", "choices": ["x", "y"], "correct_choice": "A"}] * 2
    (tmp_path / "qa_m_final.json").write_text(json.dumps(rows))
    assert [question_of(row).id for row in read_questions(tmp_path)] == ["m:1", "m:2"]


def test_the_warning_tells_how_often_the_stock_option_is_right(environment, tmp_path, caplog):
    rows = [
        {"month": "m", "question": "Q?", "choices": ["x", STOCK_OPTION], "correct_choice": "AB"[n % 2]}
        for n in range(9)
    ]
    (tmp_path / "qa_m_final.json").write_text(json.dumps(rows))
    with caplog.at_level(logging.WARNING):
        environment({"data_path": tmp_path}).splits()
    assert "9 of the 9 questions offer" in caplog.text
    assert "right in 4 of them" in caplog.text
