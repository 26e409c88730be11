"""Answers that need no task, and tasks that are there twice."""

import pytest
from skillopt_analysis.auditing import audit_splits
from skillopt_analysis.texts import normalised
from skillopt_kernel.records import Splits, Task


def task(name, text, reference="x", **inputs):
    return Task(name, "qa", {"question": text, **inputs}, reference)


def kinds(report):
    return [(one.kind, one.split) for one in report.findings]


def test_an_answer_that_is_right_almost_everywhere_is_a_finding():
    tasks = tuple(
        task(f"t{number}", f"Is {number} so?", ["Yes.", "y"] if number < 18 else "no") for number in range(20)
    )
    report = audit_splits(Splits(tasks, tasks[18:]))
    found = [one for one in report.findings if one.kind == "constant_answer"]
    assert [(one.split, one.numbers["answer"], one.numbers["right"]) for one in found] == [
        ("train", "y", 18), ("train", "Yes.", 18)
    ]  # fmt: skip
    half = tuple(task(f"t{number}", f"Is {number} so?", "yes" if number < 11 else "no") for number in range(20))
    assert not audit_splits(Splits(half, ())).findings, "eleven of twenty is no proof of more than half"
    assert not audit_splits(Splits((task("only", "Why?"),), ())).findings


def test_a_reference_in_the_inputs_is_a_note_and_no_reason_to_refuse():
    told = task("t1", "Who?", "Ada Lovelace", context="Written by Ada  LOVELACE, in 1843.")
    near = task("t2", "Who else?", "Ada", context="Adamant, and ada is short")
    report = audit_splits(Splits((told, near), ()))
    (note,) = report.found
    assert (note.kind, note.note, note.tasks, note.numbers["inputs"]) == (
        "reference_in_inputs",
        True,
        ("t1",),
        {"context": 1},
    )
    assert not report.findings


def test_inputs_that_differ_in_writing_only_are_the_same():
    first, second = task("a", "What is  the “Capital” of France?"), task("b", "what is the capital of france", "y")
    report = audit_splits(
        Splits(
            (first, second, task("c", "Another?", "z")),
            (task("d", "Third?", "w"),),
            (task("e", "WHAT is the capital of France?"),),
        )
    )
    assert kinds(report) == [
        ("repeated_inputs", "train"), ("contradicting_references", "train"), ("shared_inputs", "train and test"),
    ]  # fmt: skip
    assert report.findings[0].message == "inputs are repeated in 1 task: 'a' = 'b'"
    assert report.findings[2].tasks == ("a", "b", "e")


@pytest.mark.parametrize(
    ("first", "second"), [("3+4", "3-4"), ("x < y", "x > y"), ("3.5", "35"), ("1,5", "15"), ("$a$", "a")]
)
def test_signs_that_mean_something_keep_texts_apart(first, second):
    assert normalised(first) != normalised(second)
    tasks = (task("a", f"What is {first}?", "1"), task("b", f"What is {second}?", "2"))
    assert not audit_splits(Splits(tasks, ())).findings


def test_tasks_with_the_same_question_and_other_files_are_no_repeats(tmp_path):
    def page(name, content):
        (tmp_path / name).write_bytes(content)
        return Task(name, "doc", {"question": "What is the date?"}, name, {"page.png": str(tmp_path / name)})

    other = audit_splits(Splits((page("a", b"one"), page("b", b"two")), ()))
    assert not other.findings
    same = audit_splits(Splits((page("c", b"one"), page("d", b"one")), ()))
    assert kinds(same) == [("repeated_inputs", "train"), ("contradicting_references", "train")]
    gone = Task("g", "doc", {"question": "What is the date?"}, "g", {"page.png": str(tmp_path / "gone")})
    assert not audit_splits(Splits((gone, page("e", b"one")), ())).findings


def test_the_order_of_options_makes_no_other_task():
    first = Task("a", "mc", {"question": "Which?", "choices": ["one", "two"]}, "one")
    second = Task("b", "mc", {"question": "Which?", "choices": ["two", "one"]}, "B")
    assert kinds(audit_splits(Splits((first, second), ()))) == [("repeated_inputs", "train")], "the same text is right"


def test_repeated_ids_are_found_where_an_environment_lets_them_pass():
    report = audit_splits(
        Splits((task("q1", "1"), task("q2", "2")), (task("q2", "3"),), (task("q3", "4"), task("q3", "5")))
    )
    assert kinds(report) == [("repeated_ids", "test"), ("repeated_ids", "train and selection")]


def test_tasks_that_show_nothing_cannot_be_compared():
    assert not audit_splits(Splits((Task("a"), Task("b")), (Task("c"),))).findings


def test_the_same_findings_have_the_same_name_and_others_another():
    def repeated(*names):
        return audit_splits(Splits(tuple(task(name, "Same?") for name in names), ()))

    assert repeated("a", "b").name == repeated("a", "b").name != repeated("a", "c").name
    told = repeated("a", "b").as_json()
    assert told["audit"] == repeated("a", "b").name and told["splits"] == {"train": 2, "selection": 0, "test": 0}
    assert [one["kind"] for one in told["findings"]] == ["repeated_inputs"] and told["notes"] == []
