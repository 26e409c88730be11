"""O-H3: which scorers look at the shape of an answer alone, and say so before a run."""

import logging

import pytest
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_kernel.records import Task
from skillopt_lib_env.scoring import ScorerChoice, only_shape
from skillopt_scorers.rubrics import speaks_of_form
from skillopt_scorers.settings import ContainsSettings, JsonSettings, JudgeSettings, RegexSettings

CONTEXT = DriverContext(logging.getLogger("test"))
FORM = 'It has the heading "Results".'


def told(name, settings, *references):
    scorer = make_driver("scorer", name, settings, CONTEXT)
    return only_shape(scorer, [Task(f"t{number}", reference=each) for number, each in enumerate(references)])


@pytest.mark.parametrize(
    ("name", "settings", "references", "sentence"),
    [
        ("contains", None, ("## Results", "## Results"), 'for the same text in the answer, "## Results"'),
        ("contains", ContainsSettings(require="all"), (["a", "b"], ["a", "b"]), 'in the answer, "a" or "b"'),
        ("regex", RegexSettings(pattern="^## "), (None, None), 'whether the answer matches the same pattern, "^##"'),
        ("regex", RegexSettings(pattern="^## "), ("1", "2"), "whether the answer matches the same pattern"),
        ("regex", None, ("^## ", "^## "), "whether the answer matches the same pattern"),
        ("json", JsonSettings(schema={"type": "object"}), (None, None), "only whether the answer follows the same sch"),
        ("json", None, ({"a": 1}, '{"a": 1.0}'), "for the same JSON value"),
        (
            "json",
            JsonSettings(fields={"a": ScorerChoice("contains"), "b": ScorerChoice("exact")}),
            ({"a": "x", "b": "y"}, {"a": "x", "b": "y"}),
            'in the field a for the same text in the answer, "x"; in the field b for the same answer',
        ),
        ("llm_judge", JudgeSettings(rubric=FORM), (None, None), "at the form of the answer alone, since the rubric"),
        ("llm_judge", None, ({"rubric": FORM}, {"rubric": "At least 3 bullets."}), "names no outcome"),
        ("exact", None, ("yes", "yes"), "for the same answer, since they have one reference"),
        ("numeric", None, (3, 3), "for the same answer"),
        ("anls", None, ("x", "x"), "for the same answer"),
    ],
)
def test_what_looks_at_the_shape_alone_is_told(name, settings, references, sentence):
    assert sentence in told(name, settings, *references)


@pytest.mark.parametrize(
    ("name", "settings", "references"),
    [
        ("contains", None, ("Paris", "Rome")),
        ("regex", None, ("18..", "19..")),
        ("json", JsonSettings(schema={"type": "object"}), ({"a": 1}, {"a": 2})),
        ("json", JsonSettings(schema={"type": "object"}), ({"a": 1}, None)),
        (
            "json",
            JsonSettings(fields={"a": ScorerChoice("contains"), "b": ScorerChoice("exact")}),
            ({"a": "x", "b": "y"}, {"a": "x", "b": "z"}),
        ),
        ("llm_judge", JudgeSettings(rubric=FORM), ("4", "5")),
        ("llm_judge", JudgeSettings(rubric="It names the cause of the outage."), (None, None)),
        ("llm_judge", None, ({"rubric": FORM}, {"rubric": "It gives the mean."})),
        ("llm_judge", None, ({"rubric": FORM, "reference": "4"}, {"rubric": FORM, "reference": "5"})),
        ("exact", None, ("yes", "no")),
        ("contains", None, ("## Results",)),
    ],
)
def test_what_depends_on_the_outcome_is_not(name, settings, references):
    assert told(name, settings, *references) == ""


def test_of_a_function_or_program_nothing_is_known(tmp_path):
    import sys

    from skillopt_scorers.settings import CommandSettings, PythonSettings

    (tmp_path / "mine.py").write_text("def score(answer, reference):\n    return answer == reference\n")
    python = PythonSettings(function="mine:score", path=(tmp_path,))
    assert told("python", python, {"checks": ["a"]}, {"checks": ["a"]}) == ""
    assert told("command", CommandSettings(command=(sys.executable,)), "a", "a") == ""


@pytest.mark.parametrize(
    "rubric",
    [
        FORM,
        "The answer contains the text 'DEFAULT_ORG'.",
        "It begins with a greeting and ends with a signature.",
        "Use Markdown.\nAt least three bullets.\nNo more than 100 words.",
        "The tone is polite; sentences are short.",
    ],
)
def test_rubrics_of_form(rubric):
    assert speaks_of_form(rubric)


@pytest.mark.parametrize(
    "rubric",
    [
        "",
        "It gives the measured mean.",
        "It has a heading for each section. The total is correct.",
        "It names the cause of the outage in one sentence.",
        "It states nothing that the report does not say.",
        "The summary is short and supported by the source.",
        "It must rhyme.",
        "It has the heading Results. The customer knows what to do next.",
    ],
)
def test_rubrics_of_an_outcome(rubric):
    assert not speaks_of_form(rubric)
