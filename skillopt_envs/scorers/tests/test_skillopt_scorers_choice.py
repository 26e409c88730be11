"""How a configuration writes a scorer: by name, or by name with settings; every mistake is told with its place."""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

import pickle

import attrs
import pytest
from attrs import frozen
from skillopt_kernel.config.fields import option
from skillopt_kernel.config.structure import Structurer, fields_of
from skillopt_kernel.config.tree import Node, Place, from_python
from skillopt_lib_env.scoring import ScorerChoice

HERE = Place("mine.yaml", 3, 5)


@frozen
class Settings:
    scorer: ScorerChoice = option(ScorerChoice("exact"), "how an answer is compared")
    fields: dict[str, ScorerChoice] = option(dict, "several")


def read(value, field="scorer"):
    structurer = Structurer()
    node = value if isinstance(value, Node) else from_python(value, HERE)
    return structurer.value(node, fields_of(Settings)[field], f"env.{field}"), structurer.problems


def test_a_name_alone_takes_the_default_settings():
    for value in ("exact", {"name": "exact"}):
        choice, problems = read(value)
        assert not problems
        assert choice.name == "exact"
        assert choice == ScorerChoice("exact", choice.settings)
        assert choice.provider.startswith("skillopt-scorers ")


def test_settings_stand_beside_the_name():
    choice, problems = read({"name": "numeric", "relative_tolerance": 0.01})
    assert not problems
    assert choice.settings.relative_tolerance == 0.01


def test_what_a_run_directory_holds_is_read_again():
    choice, _ = read({"name": "numeric", "relative_tolerance": 0.01})
    again, problems = read(attrs.asdict(choice))
    assert not problems
    assert again == choice


def test_a_choice_can_be_sent_to_a_worker_process():
    choice, _ = read({"name": "json", "fields": {"a": {"name": "numeric", "relative_tolerance": 0.01}}})
    assert pickle.loads(pickle.dumps(choice)) == choice


def test_scorers_may_stand_in_a_mapping():
    choices, problems = read({"total": "numeric", "name": {"name": "exact"}}, "fields")
    assert not problems
    assert [choice.name for choice in choices.values()] == ["numeric", "exact"]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("exakt", "mine.yaml:3:5: env.scorer: there is no scorer named 'exakt'. Did you mean 'exact'?"),
        (7, "mine.yaml:3:5: env.scorer: expected a scorer by name, or {name: NAME, ...}"),
        (["exact"], "expected a scorer by name"),
        ({"relative_tolerance": 1}, "expected a scorer by name"),
        ({"name": ""}, "expected a scorer by name"),
        ({"name": ["exact"]}, "expected a scorer by name"),
        ({"name": "token_f1", "tolerance": 1}, "the scorer 'token_f1' has no settings, but tolerance is given"),
        (
            {"name": "numeric", "relative_tolerence": 1},
            "env.scorer.relative_tolerence: is no key; did you mean 'relative_tolerance'?",
        ),
        ({"name": "numeric", "relative_tolerance": -1}, "env.scorer.relative_tolerance: must be at least 0, not -1"),
        ({"name": "numeric", "relative_tolerance": "1"}, "expected a number, got the text '1'; write it without"),
    ],
)
def test_mistakes_are_told_with_their_place(value, sentence):
    made, problems = read(value)
    assert made is attrs.NOTHING
    assert len(problems) == 1
    assert sentence in problems[0]
    assert problems[0].startswith("mine.yaml:3:5: ")
