"""Scoring and reading held to the shared cases, and the split to the published one, where they are at hand."""

import json
import os
from pathlib import Path

import pytest
from officeqa_world import TASK, ScriptedModel, environment
from skillopt_env_officeqa.queries import search_queries
from skillopt_env_officeqa.scoring import earlier_answer, earlier_scores, judged
from skillopt_env_officeqa.tasks import list_values
from skillopt_lib_env.answers import last_answer
from skillopt_lib_env.split_manifest import read_manifest

DATA = Path(os.environ["SKILLOPT_TEST_DATA"]) if os.environ.get("SKILLOPT_TEST_DATA") else None
needs_data = pytest.mark.skipif(DATA is None, reason="SKILLOPT_TEST_DATA is not set")
FUNCTIONS = {"evaluate": 27, "extract_answer": 4, "extract_search_queries": 6, "parse_list_field": 6}


def cases(function: str):
    if DATA is None:
        return []
    found = [
        pytest.param(case, id=case["id"])
        for case in json.loads((DATA / "scoring_cases.json").read_text("utf-8"))
        if case["benchmark"] == "officeqa" and case["function"].startswith(f"{function}(")
    ]
    assert len(found) == FUNCTIONS[function]
    return found


@needs_data
@pytest.mark.parametrize("case", cases("evaluate"))
def test_scoring_equals_the_published_value(case):
    answer, reference = case["inputs"]["final_answer"], case["inputs"]["ground_truth"]
    assert judged(answer, reference, 0.0).right == bool(case["official"]["tolerance_0"])
    assert judged(answer, reference, 0.01).right == bool(case["official"]["tolerance_1pct"])
    exact, overlap = earlier_scores(answer, reference)
    assert exact == case["hard"]
    assert overlap == pytest.approx(case["soft"], abs=1e-6)


@needs_data
@pytest.mark.parametrize("case", cases("evaluate"))
def test_an_attempt_scores_the_published_value_and_the_earlier_one_by_name(case):
    answer, reference = case["inputs"]["final_answer"], case["inputs"]["ground_truth"]
    made = environment()
    attempt = made.attempt(TASK.hidden(), "", ScriptedModel(f"So:\n<answer>{answer}</answer>").target())
    assert attempt.output == answer.strip()
    task = type(TASK)(TASK.id, TASK.kind, TASK.inputs, {**TASK.reference, "answer": reference})
    score = made.score(task, attempt, None)
    assert score.hard == score.named["official_0"] == case["official"]["tolerance_0"]
    assert score.named["official_1"] == case["official"]["tolerance_1pct"]
    # An empty answer was never looked at by earlier trainers, whatever their function said of it.
    assert score.named["reference_em"] == (case["hard"] if answer else 0)
    assert score.named["reference_f1"] == pytest.approx(case["soft"] if answer else 0, abs=1e-6)


@needs_data
@pytest.mark.parametrize("case", cases("extract_answer"))
def test_answers_are_found_as_in_the_cases_for_the_earlier_scores(case):
    """The answer that counts is that of the last pair, as everywhere here."""
    reply = case["inputs"]["response"]
    assert earlier_answer(reply) == case["expected"]
    assert last_answer(reply).text == ("2" if "FIRST" in case["note"] else case["expected"])


@needs_data
@pytest.mark.parametrize("case", cases("extract_search_queries"))
def test_queries_are_read_as_in_the_cases(case):
    """But for the one flagged as a defect: a comma inside a quoted query parts nothing."""
    expected = ["receipts in July, 1944"] if "bug" in case["flag"] else case["expected"]
    assert search_queries(case["inputs"]["response"]) == expected


@needs_data
@pytest.mark.parametrize("case", cases("parse_list_field"))
def test_cells_of_several_values_are_read_as_in_the_cases(case):
    """But for the one flagged as a defect: file names that commas part are several."""
    expected = ["a.txt", "b.txt"] if "bug" in case["flag"] else case["expected"]
    assert list_values(case["inputs"]["value"]) == expected


@needs_data
def test_the_manifest_that_is_carried_is_the_published_one():
    import skillopt_env_officeqa

    carried = read_manifest(Path(skillopt_env_officeqa.__file__).parent / "manifest")
    published = read_manifest(DATA / "officeqa" / "manifest")
    assert carried.ids == published.ids
    assert [len(carried.parts[part]) for part in ("train", "selection", "test")] == [50, 24, 172]
