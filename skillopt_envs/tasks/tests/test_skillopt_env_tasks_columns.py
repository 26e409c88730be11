"""Which field is what: usual names, names that are said, and a sentence where it cannot be known."""

import json

import pytest
from skillopt_kernel.errors import DataError


def data(written, *rows, name="d.json"):
    return written(name, json.dumps(list(rows)))


def many(row, count=12):
    """Rows that differ in their first text."""
    return [{**row, next(iter(row)): f"{next(iter(row.values()))} {n}"} for n in range(count)]


def first(environment):
    return environment.splits().train[0]


@pytest.mark.parametrize(
    "asked", ["question", "input", "prompt", "instruction", "text", "query", "problem", "Question"]
)
@pytest.mark.parametrize("right", ["answer", "answers", "reference", "expected", "label", "gold", "Expected output"])
def test_usual_names_are_found(written, environment, asked, right):
    task = first(environment(data(written, *many({asked: "Which", right: "this"}))))
    assert list(task.inputs) == [asked] and task.reference == "this"


def test_context_and_question_are_shown_in_the_order_of_the_file(written, environment):
    rows = many({"context": "Here", "question": "Which?", "answer": "this", "id": 0})
    rows = [{**row, "id": n} for n, row in enumerate(rows)]
    task = first(environment(data(written, *rows)))
    assert list(task.inputs) == ["context", "question"]
    assert task.id in {str(n) for n in range(12)}  # a number is an id like any other


def test_the_only_field_left_is_what_is_shown(written, environment):
    task = first(environment(data(written, *many({"email": "Dear all", "label": "spam"}))))
    assert list(task.inputs) == ["email"]


def test_other_fields_are_left_out_and_told(written, environment, caplog):
    made = environment(data(written, *many({"question": "Which", "answer": "this", "explanation": "it is this"})))
    assert list(first(made).inputs) == ["question"]
    assert "d.json: not used, so that nothing tells the target what is right: the fields 'explanation'." in caplog.text


def test_fields_can_be_said(written, environment):
    row = {"email": "Dear all", "subject": "Hello", "verdict": "spam", "nr": "x", "sort": "mail"}
    rows = [{**each, "nr": f"m{n}"} for n, each in enumerate(many(row))]
    fields = {"inputs": ("subject", "email"), "reference": "verdict", "id": "nr", "kind": "sort"}
    task = first(environment(data(written, *rows), fields=fields))
    assert list(task.inputs) == ["subject", "email"]
    assert (task.reference, task.kind) == ("spam", "mail")
    assert task.id.startswith("m")


def test_a_field_of_a_field(written, environment):
    rows = many({"question": "Which", "answers": {"text": ["this", "that"], "start": [1, 2]}})
    task = first(environment(data(written, *rows), fields={"reference": "answers.text"}))
    assert task.reference == ["this", "that"]


def test_the_fields_that_the_prompt_names_are_what_is_shown(written, environment):
    rows = many({"email": "Dear all", "subject": "Hello", "label": "spam"})
    made = environment(data(written, *rows), prompt="Subject: {{subject}}\n{{ email }}\nSpam or not?")
    assert list(first(made).inputs) == ["subject", "email"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"reference": "anwser"}, r"env\.fields\.reference names 'anwser', .*d\.json\. Did you mean 'answer'\?"),
        ({"inputs": ("question", "nothing")}, r"env\.fields\.inputs names 'nothing'.* The fields are question, answer"),
        ({"id": "number"}, r"env\.fields\.id names 'number'"),
        ({"kind": "sort"}, r"env\.fields\.kind names 'sort'"),
        ({"split": "fold"}, r"env\.fields\.split names 'fold'"),
        ({"inputs": ("answer",), "reference": "answer"}, r"the field 'answer' is the reference, which the target must"),
    ],
)
def test_a_name_that_cannot_be_used_is_told(written, environment, fields, message):
    with pytest.raises(DataError, match=message):
        environment(data(written, *many({"question": "Which", "answer": "this"})), fields=fields).splits()


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"question": "Which", "note": "this"}, r"d\.json: which field holds the right answers\? .*\(question, note\)"),
        ({"question": "Which", "note": "this"}, r"none has a usual name .*`-o env\.fields\.reference=NAME`"),
        ({"question": "Which", "answer": "a", "label": "b"}, r"'answer' and 'label' could each be the reference"),
        ({"mail": "Which", "subject": "x", "answer": "a"}, r"which fields is the target to be shown\? .*mail, subject"),
    ],
)
def test_what_cannot_be_known_is_asked(written, environment, row, message):
    with pytest.raises(DataError, match=message):
        environment(data(written, *many(row))).splits()


HEADER = r"The first row is taken as the names of the columns; where it is a task already, put a row such as question"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("d.csv", "What is 1 plus 1?,2\nWhat is 2 plus 2?,4\n", rf"\(What is 1 plus 1\?, 2\) none .*{HEADER}"),
        ("d.tsv", "What is 1 plus 1?\t2\nWhat is 2 plus 2?\t4\n", HEADER),
        ("d.json", '{"tasks": [{"question": "a", "answer": "b"}], "version": 1}', r"in the list 'tasks'\? Then save"),
    ],
)
def test_a_file_that_is_something_else_as_a_whole_is_told(written, environment, name, content, message):
    with pytest.raises(DataError, match=message):
        environment(written(name, content)).splits()


def test_a_header_with_a_usual_name_is_not_doubted(written, environment):
    with pytest.raises(DataError, match="which field holds the right answers") as caught:
        environment(written("d.csv", "question,note\na,b\n")).splits()
    assert "first row" not in str(caught.value)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (
            "Do {{quesion}}",
            r"env\.prompt, line 1: \{\{quesion\}\} is no field that the target could be shown\. Did you mean",
        ),
        ("Do\n{{question}} {{id}}", r"env\.prompt, line 2: \{\{id\}\}"),
        ("Do {{question.__class__}}", r"\{\{question\.__class__\}\} is no field"),
        ("Do {{}}", r"\{\{\}\} is no field"),
        ("Do it.", r"env\.prompt has no field, so that every task would be asked alike\. Write \{\{question\}\}"),
    ],
)
def test_a_prompt_with_a_wrong_field_is_told(written, environment, prompt, message):
    from skillopt_kernel.errors import ConfigError

    rows = many({"question": "Which", "answer": "this"})
    with pytest.raises(ConfigError, match=message):
        environment(data(written, *rows), prompt=prompt, fields={"inputs": ("question",)}).splits()
    if "id" not in prompt:  # the fields that the prompt names are then the inputs
        with pytest.raises(ConfigError, match=message):
            environment(data(written, *rows), prompt=prompt).splits()


def test_a_prompt_that_names_the_reference_is_refused(written, environment):
    rows = many({"question": "Which", "answer": "this"})
    with pytest.raises(DataError, match=r"'answer' is the reference"):
        environment(data(written, *rows), prompt="{{question}} {{answer}}", fields={"reference": "answer"}).splits()
    with pytest.raises(DataError, match=r"which field holds the right answers"):
        environment(data(written, *rows), prompt="{{question}} {{answer}}").splits()
