"""The liveness rule for settings under `env.scorer`: switching one changes a score, its reason, or what is asked."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from skillopt_kernel import train
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import installed, load_manifest, make_driver, settings_class
from skillopt_kernel.records import Task
from skillopt_lib_env.scoring import ScorerChoice
from skillopt_testkit import ScriptedJudge
from skillopt_testkit.project import Project

CONTEXT = DriverContext(logging.getLogger("test"))
PRINT = "import json, os, time; time.sleep(float(os.environ.get('SLOW', 0)))"
KEY = f"{PRINT}; print(json.dumps({{'score': 0.5, 'feedback': str('SOME_API_KEY' in os.environ) + os.getcwd()}}))"
HANGS = "while True: pass"


@attrs.frozen
class Case:
    """A setting's value that is not the default, an answer to which it matters, and what stands beside it."""

    value: Any
    answer: str = "a"
    reference: Any = "b"
    besides: Mapping[str, Any] = attrs.field(factory=dict)


CASES: dict[str, Case] = {
    "exact.ignore": Case("nothing", "Paris", "paris"),
    "contains.require": Case("all", "x", ["x", "y"]),
    "contains.ignore_case": Case(False, "X", "x"),
    "contains.whole_words": Case(True, "cats", "cat"),
    "regex.pattern": Case("^a$", "a", "b"),
    "regex.whole": Case(True, "ab", "a"),
    "regex.ignore_case": Case(True, "A", "a"),
    "regex.multiline": Case(True, "a\nb", "^b$"),
    "regex.dot_all": Case(True, "a\nb", "a.b"),
    "regex.time_limit": Case(0.1, "a" * 60 + "!", "^(a|a)*$", {"time_limit": 0.3}),
    "numeric.relative_tolerance": Case(0.1, "10.5", 10),
    "numeric.absolute_tolerance": Case(1, "10.5", 10),
    "numeric.take": Case("last", "1 + 1 = 2", 2),
    "numeric.unit": Case("required", "5", "5 km"),
    "numeric.decimal_comma": Case(True, "1,5", "1,5"),
    "choice.labels": Case("BC", "A", "B"),
    "choice.several": Case(True, "A and C", ["A", "C"]),
    "choice.choices": Case("options", "Rome", "B"),
    "json.fields": Case({"a": ScorerChoice("exact")}, '{"a": "X"}', {"a": "x"}),
    "json.schema": Case({"required": ["b"]}, '{"a": 1}', {"a": 1}),
    "json.schema_file": Case(Path("schema.json"), '{"a": 1}', {"a": 1}),
    "json.extra_fields": Case(False, '{"a": 1, "b": 2}', {"a": 1}),
    "anls.threshold": Case(0.8, "abcde", "abcxy"),
    "anls.ignore_case": Case(False, "AB", "ab"),
    "anls.right_from": Case(0.5, "abcde", "abcxy"),
    "llm_judge.rubric": Case("It rhymes."),
    "llm_judge.rubric_file": Case(Path("rubric.md")),
    "llm_judge.pass_at": Case(0.5),
    "llm_judge.inputs": Case(("hint",)),
    "llm_judge.longest_answer": Case(3, "abcdef"),
    "python.function": Case("mine:other", besides={"function": "mine:score"}),
    "python.path": Case((Path("elsewhere"),), besides={"function": "mine:score"}),
    "python.arguments": Case({"weight": 0.25}, besides={"function": "mine:score"}),
    "python.time_limit": Case(0.5, besides={"function": "mine:hangs", "time_limit": 1.0}),
    "command.command": Case((sys.executable, "-c", "print(1)")),
    "command.time_limit": Case(0.2, besides={"command": (sys.executable, "-c", HANGS), "time_limit": 0.4}),
    "command.output_limit": Case(1),
    "command.folder": Case(Path("elsewhere")),
    "command.variables": Case(("SOME_API_KEY",)),
}
"""Scorer and setting -> what shows that it matters."""

ELSEWHERE = {"math.digits", "math.strict", "math.time_limit"}
"""Settings of a scorer whose processes take seconds to start: its own tests show what they change."""

BASE: dict[str, dict[str, Any]] = {
    "python": {"path": (Path(),)},
    "command": {"command": (sys.executable, "-c", KEY)},
}


def test_every_setting_is_in_the_table_once() -> None:
    found = set()
    for plugin in installed("scorer"):
        settings = settings_class(load_manifest("scorer", plugin.name))
        if plugin.distribution == "skillopt-scorers" and settings is not None:
            found |= {f"{plugin.name}.{field.name}" for field in attrs.fields(settings)}
    assert found == set(CASES) | ELSEWHERE


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "schema.json").write_text('{"required": ["b"]}')
    (tmp_path / "rubric.md").write_text("It rhymes.")
    (tmp_path / "elsewhere" / "mine.py").write_text("def score(weight=1): return 0.75\n")
    (tmp_path / "mine.py").write_text(
        "def score(weight=0.5): return weight\ndef other(): return 1\ndef hangs():\n    while True: pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOME_API_KEY", "sk-0123456789")
    return tmp_path


@pytest.mark.parametrize("setting", CASES)
def test_switching_a_setting_changes_what_is_scored_or_asked(here: Path, setting: str) -> None:
    scorer, _, name = setting.partition(".")
    case = CASES[setting]
    given = {**BASE.get(scorer, {}), **case.besides}
    changed = {**given, name: case.value}
    assert seen(scorer, given, case) != seen(scorer, changed, case)
    assert seen(scorer, given, case) == seen(scorer, given, case), "the same settings tell the same"


def seen(scorer: str, given: Mapping[str, Any], case: Case) -> Any:
    """The score of one answer with what the judge was asked, or the error that it came to."""
    found = settings_class(load_manifest("scorer", scorer))
    assert found is not None
    judge = ScriptedJudge('{"reasoning": "Mostly.", "score": 0.6}')
    inputs = {"question": "Where?", "hint": "A city", "choices": ["Oslo", "Rome", "Bern"], "options": ["Rome", "Oslo"]}
    try:
        made = make_driver("scorer", scorer, found(**given), CONTEXT)
        score = made.score(case.answer, case.reference, Task("t", inputs=inputs), judge)
    except (SkillOptError, ValueError, Exception) as error:
        return str(error)
    return score, judge.messages


def test_a_setting_of_the_scorer_is_another_run_and_scores_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project.make(tmp_path, train=6, selection=4, test=2)
    items = [item for split in ("train", "val", "test") for item in project.json(f"data/{split}/items.json")]
    project.write("all.json", json.dumps([{**item, "answers": item["answers"][0].upper()} for item in items]))
    monkeypatch.chdir(tmp_path)
    project.write(
        "world.yaml",
        (tmp_path / "world.yaml")
        .read_text()
        .replace("right_without: 0.1, right_with: 0.95", "right_without: 1, right_with: 1"),
    )
    base = ["env.name=tasks", "env.split_mode=ratio", "env.split_ratio=2:1:0", "env.data_path=all.json"]
    base += ["env.fields={reference: answers}", "env.scorer={name: exact, ignore: case}", "train.num_epochs=1"]
    base += ["evaluation.eval_test=false", "optimizer.use_slow_update=false", "optimizer.use_meta_skill=false"]
    folders = [Path(train("config.yaml", [*base, *more]).folder) for more in ([], ["env.scorer.ignore=nothing"])]
    assert folders[0].name != folders[1].name
    hard = [
        sum(row["hard"] for path in folder.rglob("results.jsonl") for row in project.lines(path)) for folder in folders
    ]
    assert hard[0] > hard[1] == 0
