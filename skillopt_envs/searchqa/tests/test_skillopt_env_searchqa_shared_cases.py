"""Scoring, cutting and splitting held to the shared cases and the published manifest, where they are at hand."""

import json
import logging
import os
import threading
from pathlib import Path

import pytest
import skillopt_env_searchqa
from skillopt_env_searchqa.settings import SearchQASettings
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.errors import DataError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.loop.target import AttemptTarget
from skillopt_kernel.models.requests import ChatReply
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_kernel.records import Splits, Task
from skillopt_kernel.splits import check_splits
from skillopt_lib_env.data_files import read_items
from skillopt_lib_env.documents import truncated_documents
from skillopt_lib_env.ratio_split import FOLDERS, parse_split_ratio, split_counts
from skillopt_lib_env.split_manifest import read_manifest

DATA = Path(os.environ["SKILLOPT_TEST_DATA"]) if os.environ.get("SKILLOPT_TEST_DATA") else None
needs_data = pytest.mark.skipif(DATA is None, reason="SKILLOPT_TEST_DATA is not set")


def cases(benchmark: str, function: str):
    if DATA is None:
        return []
    found = [
        pytest.param(case, id=case["id"])
        for case in json.loads((DATA / "scoring_cases.json").read_text("utf-8"))
        if case["benchmark"] == benchmark and case["function"].startswith(function)
    ]
    assert found, f"the shared cases hold none for {benchmark} {function}"
    return found


@pytest.fixture(scope="module")
def environment():
    return make_driver("env", "searchqa", SearchQASettings(), DriverContext(logging.getLogger("test")))


@needs_data
@pytest.mark.parametrize("case", cases("searchqa", "evaluate"))
def test_scoring_equals_the_official_value(case, environment):
    response, gold = case["inputs"]["response"], case["inputs"]["gold_answers"]
    target = AttemptTarget(
        lambda request: ChatReply(response),
        None,
        stage="rollout",
        deadline=None,
        call_timeout=None,
        stop=threading.Event(),
    )
    task = Task("t", inputs={"question": "Q?"}, reference=gold)
    attempt = environment.attempt(task.hidden(), "", target)
    score = environment.score(task, attempt, None)
    assert attempt.output == case["predicted_answer"]
    assert score.hard == case["official"]["hard"]
    assert score.soft == pytest.approx(case["official"]["soft"], abs=1e-6)
    # The values of earlier trainers stay comparable under names of their own.
    assert score.named["em"] == case["hard"]
    assert score.named["reference_f1"] == pytest.approx(case["soft"], abs=1e-6)
    assert score.named["reference_sub_em"] == case["sub_em"]


@needs_data
@pytest.mark.parametrize("case", cases("searchqa", "truncate_context"))
def test_contexts_are_cut_as_in_the_cases(case):
    recipes = {
        "'[DOC] '+'a'*3000+' [DOC] '+'b'*2000+' [DOC] '+'c'*2000": (
            "[DOC] " + "a" * 3000 + " [DOC] " + "b" * 2000 + " [DOC] " + "c" * 2000
        ),
        "'a'*7000": "a" * 7000,
        "'[DOC] '+'a'*7000+'[DOC] b'": "[DOC] " + "a" * 7000 + "[DOC] b",
    }
    expected = case["expected"]
    cut = truncated_documents(recipes[case["inputs"]["context_recipe"]], 6000)
    marker = "[DOC]" if "marker" in case["flag"] else ""  # flagged as a defect: the first marker was dropped
    assert len(cut) == expected["length"] + len(marker)
    assert cut.endswith(expected["ends_with"])
    assert cut.startswith(marker + expected.get("starts_with", ""))


@needs_data
@pytest.mark.parametrize("case", cases("common", "split_counts"))
def test_split_counts_equal_the_cases(case):
    assert list(split_counts(case["inputs"]["total"], case["inputs"]["ratio"])) == case["expected"]


@needs_data
@pytest.mark.parametrize("case", cases("common", "parse_split_ratio"))
def test_ratios_are_read_as_in_the_cases(case):
    """But for "2:1:0": an explicit zero is honoured here."""
    if case["inputs"]["text"] == "2:1:0":
        assert parse_split_ratio("2:1:0") == (2, 1, 0)
    elif isinstance(case["expected"], str):
        with pytest.raises(DataError, match=r"env\.split_ratio"):
            parse_split_ratio(case["inputs"]["text"])
    else:
        assert list(parse_split_ratio(case["inputs"]["text"])) == case["expected"]


@needs_data
def test_the_published_manifest_is_a_valid_split():
    folder = DATA / "searchqa" / "manifest"
    declared = json.loads((folder / "split_manifest.json").read_text("utf-8"))["counts"]
    parts = {
        part: tuple(Task(item.required_text("id")) for item in read_items(folder / name / "items.json"))
        for part, name in FOLDERS.items()
    }
    assert {FOLDERS[part]: len(tasks) for part, tasks in parts.items()} == declared
    check_splits(Splits(**parts), "the manifest")
    carried = read_manifest(Path(skillopt_env_searchqa.__file__).parent / "manifest")
    assert {part: [entry.fields["id"] for entry in entries] for part, entries in carried.parts.items()} == {
        part: [task.id for task in tasks] for part, tasks in parts.items()
    }


@needs_data
def test_the_manifest_itself_is_refused_as_data_with_what_to_do():
    common = EnvSettings(name="searchqa", split_mode="split_dir", split_dir=DATA / "searchqa" / "manifest")
    made = make_driver("env", "searchqa", SearchQASettings(), DriverContext(logging.getLogger("test"), common=common))
    with pytest.raises(DataError, match=r"item 1: the file lists ids only .*skillopt data searchqa"):
        made.splits()
