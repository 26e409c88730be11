"""Scoring and shuffling held to the shared cases, where they are at hand."""

import json
import os
from pathlib import Path

import pytest
import skillopt_env_livemathematicianbench
from skillopt_env_livemathematicianbench.answers import earlier_label
from skillopt_env_livemathematicianbench.environment import choices_of
from skillopt_env_livemathematicianbench.questions import Choice, Question, shuffled
from skillopt_kernel.records import Task
from skillopt_lib_env.split_manifest import read_manifest
from skillopt_testkit.scripted import ScriptedJudge, ScriptedTarget

DATA = Path(os.environ["SKILLOPT_TEST_DATA"]) if os.environ.get("SKILLOPT_TEST_DATA") else None
needs_data = pytest.mark.skipif(DATA is None, reason="SKILLOPT_TEST_DATA is not set")

RIGHT_BY_OUR_RULE = {
    f"livemathematicianbench-{number}": reason
    for number, reason in {
        127: "(B)", 128: "[B]", 129: "**B**", 130: "$B$", 131: "boxed", 132: "Option B", 145: "The answer is B",
        146: "Final: C", 148: "a full-width B",
    }.items()
}  # fmt: skip
"""Cases in which earlier trainers did not read a label that anybody would."""


def cases(function: str):
    if DATA is None:
        return []
    return [
        pytest.param(case, id=case["id"])
        for case in json.loads((DATA / "scoring_cases.json").read_text("utf-8"))
        if case["benchmark"] == "livemathematicianbench" and case["function"].startswith(function)
    ]


@needs_data
def test_all_cases_of_the_benchmark_are_here():
    assert len(cases("evaluate")) == 21
    assert len(cases("shuffle_choices")) == 3
    assert set(RIGHT_BY_OUR_RULE) <= {case.id for case in cases("evaluate")}


@needs_data
def test_the_manifest_that_is_carried_is_the_published_one():
    folder = Path(skillopt_env_livemathematicianbench.__file__).parent / "manifest"
    carried, published = read_manifest(folder), read_manifest(DATA / "livemathematicianbench" / "manifest")
    assert [len(carried.parts[part]) for part in ("train", "selection", "test")] == [35, 17, 125]
    for part, entries in published.parts.items():
        papers = [(entry.fields["id"], entry.fields["paper_link"]) for entry in entries]
        assert [(entry.fields["id"], entry.fields["paper_link"]) for entry in carried.parts[part]] == papers
        assert all(entry.fields["id"] == f"{entry.fields['month']}:{entry.fields['no']}" for entry in entries)
    assert carried.facts["counts"] == published.facts["counts"]


@needs_data
@pytest.mark.parametrize("case", cases("evaluate"))
def test_a_label_is_scored(case, environment):
    choices, right = case["inputs"]["choices"], case["inputs"]["correct_choice"]
    made = environment()
    task = Task("t", inputs={"question": "Q?", "choices": choices}, reference=right)
    attempt = made.attempt(task.hidden(), "", ScriptedTarget(case["inputs"]["response"]))
    score = made.score(task, attempt, ScriptedJudge("{}"))
    assert score.hard == score.soft == float(case["id"] in RIGHT_BY_OUR_RULE or case["hard"])
    # What earlier trainers made of it stays comparable under a name of its own.
    assert score.named["reference_accuracy"] == case["hard"] == case["soft"]
    label = earlier_label(attempt.output, choices_of(task))
    assert label == case["predicted_label"]
    assert next((each["text"] for each in choices if each["label"] == label), "") == case["predicted_text"]
    if case["id"] in RIGHT_BY_OUR_RULE:
        assert case["flag"], "a case that is no defect of the earlier rule is scored as it was"


@needs_data
@pytest.mark.parametrize("case", cases("shuffle_choices"))
def test_choices_are_shuffled_by_seed_and_id(case):
    item = case["inputs"]["item"]
    choices = tuple(Choice(each["label"], each["text"]) for each in item["choices"])
    question = Question(item["id"], "Q?", choices, item["correct_choice"]["label"])
    made = shuffled(question, case["inputs"]["seed"])
    assert [choice.text for choice in made.choices] == case["expected"]["order"]
    assert [choice.label for choice in made.choices] == list("ABCDE")
    assert {"label": made.right, "text": made.right_text} == case["expected"]["correct"]
