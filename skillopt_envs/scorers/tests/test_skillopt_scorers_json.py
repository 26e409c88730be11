"""JSON answers by field, by value and by schema."""

import json
import logging

import pytest
from skillopt_kernel.errors import ConfigError, EnvironmentFailure
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import make_driver
from skillopt_kernel.records import Task
from skillopt_lib_env.scoring import ScorerChoice
from skillopt_scorers.settings import JsonSettings, NumericSettings
from skillopt_testkit import ScriptedJudge

TASK = Task("t")
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def scorer(**settings):
    return make_driver("scorer", "json", JsonSettings(**settings), DriverContext(logging.getLogger("test")))


@pytest.mark.parametrize(
    ("answer", "reference", "hard", "soft"),
    [
        ('{"a": 1, "b": [true, null]}', {"a": 1.0, "b": [True, None]}, 1, 1),
        ('{"b": 2, "a": 1}', '{"a": 1, "b": 2}', 1, 1),
        ('So:\n```json\n{"a": 1}\n```', {"a": 1}, 1, 1),
        ('{"a": 1, "extra": 2}', {"a": 1}, 1, 1),
        ('{"a": true}', {"a": 1}, 0, 0),
        ('{"a": "1"}', {"a": 1}, 0, 0),
        ('{"a": 1}', {"a": 1, "b": 2}, 0, 0.5),
        ("[1, 2]", [1, 2], 1, 1),
        ("[2, 1]", [1, 2], 0, 0),
        ("7", 7, 1, 1),
        ('"x"', '"x"', 1, 1),
        ("{}", {}, 1, 1),
        ('{"a": 1} or {"a": 2}', {"a": 1}, 0, 0),
        ('{"a": NaN}', {"a": 1}, 0, 0),
        ('Here it is: {"a": 1}. I hope it helps!', {"a": 1}, 1, 1),
        ('{"a": 1, "a": 2}', {"a": 1}, 0, 0),  # of a key that stands twice the last one counts, as in any reader
        ("{'a': 1}", {"a": 1}, 0, 0),
        ('{"a": null}', {"a": None}, 1, 1),
        ("{}", {"a": None}, 0, 0),
        ('{"a": 12345678901234567890}', {"a": 12345678901234567891}, 0, 0),
        ('{"a": ' + "[" * 2000 + "]" * 2000 + "}", {"a": 1}, 0, 0),
        ("```\n[1]\n```\n```\n[2]\n```", [1], 0, 0),
        ("True", True, 0, 0),
    ],
)
def test_by_value(answer, reference, hard, soft):
    score = scorer().score(answer, reference, TASK)
    assert (score.hard, score.soft) == (hard, soft)


def test_by_field_each_with_its_scorer():
    fields = {
        "name": ScorerChoice("exact"),
        "size.km": ScorerChoice("numeric", NumericSettings(relative_tolerance=0.1)),
        "notes": ScorerChoice("llm_judge"),
    }
    made = scorer(fields=fields)
    reference = {"name": "Jif", "size": {"km": 10}, "notes": "It is old."}
    answer = json.dumps({"name": "jif", "size": {"km": "10.5"}, "notes": "Old it is."})
    judge = ScriptedJudge('{"reasoning": "Half of it.", "score": 0.5}')
    score = made.score(answer, reference, TASK, judge)
    assert score.named == {"name": 1, "size.km": 1, "notes": 0.5}
    assert (score.hard, score.soft) == (0, pytest.approx(2.5 / 3))
    assert score.feedback == "1 of 3 parts are wrong. notes: Half of it."
    assert "It is old." in judge.messages[0][1].text


def test_a_field_that_its_scorer_cannot_compare_is_an_error():
    made = scorer(fields={"size": ScorerChoice("numeric")})
    with pytest.raises(ValueError, match=r"the reference's field 'size': the reference 'big' must hold exactly one"):
        made.check({"size": "big"}, TASK)
    with pytest.raises(ValueError, match="the reference's field 'size': a reference must be a number"):
        made.check({"other": 1}, TASK)


def test_a_number_of_the_reference_is_taken_as_text_where_a_scorer_wants_one():
    made = scorer(fields={"year": ScorerChoice("exact")})
    assert made.score('{"year": 1999}', {"year": 1999}, TASK).hard == 1
    assert made.score('{"year": "1999"}', {"year": 1999}, TASK).hard == 1
    assert made.score("{}", {"year": 1999}, TASK).feedback == (
        '1 of 1 parts are wrong. year: Wrong: there is no answer; accepted: "1999".'
    )


def test_a_schema_alone_needs_no_reference(tmp_path):
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    for made in (scorer(schema=SCHEMA), scorer(schema_file=file)):
        assert made.score('{"n": 1}', None, TASK).hard == 1
        wrong = made.score('{"n": "1"}', None, TASK)
        assert wrong.hard == 0
        assert wrong.feedback == (
            "1 of 1 parts are wrong. It does not follow the schema: $.n: '1' is not of type 'integer'."
        )


def test_a_schema_is_one_part_beside_the_fields():
    score = scorer(schema=SCHEMA).score('{"n": "1", "a": 1}', {"a": 1}, TASK)
    assert (score.hard, score.soft) == (0, 0.5)


def test_further_fields_can_be_refused():
    score = scorer(extra_fields=False).score('{"a": 1, "b": 2}', {"a": 1}, TASK)
    assert (score.hard, score.soft) == (0, 0.5)
    assert 'fields that were not asked for: "b"' in score.feedback


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"schema": {"type": "objekt"}}, "`schema` is no JSON schema: 'objekt' is not valid"),
        ({"schema": {"type": 7}}, "is no JSON schema"),
        ({"schema": {"type": "object"}, "schema_file": "x"}, "not both"),
    ],
)
def test_a_schema_that_is_none_is_told_before_the_run(settings, sentence):
    with pytest.raises(ConfigError, match=sentence):
        scorer(**settings)


@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "$ref": "#/$defs/a"}]
)
def test_a_schema_that_refers_to_itself_without_end_is_told_before_the_run(schema):
    with pytest.raises(ConfigError, match="`schema` refers to itself without end"):
        scorer(schema=schema)


def test_a_schema_that_does_so_for_some_answers_is_no_zero():
    made = scorer(schema={"properties": {"a": {"$ref": "#/properties/a"}}})
    assert made.score("{}", None, TASK).hard == 1
    with pytest.raises(EnvironmentFailure, match="refers to itself without end"):
        made.score('{"a": 1}', None, TASK)
    tree = scorer(schema={"properties": {"a": {"$ref": "#"}}, "type": "object"})
    assert tree.score('{"a": ' * 20 + "{}" + "}" * 20, None, TASK).hard == 1
    assert "nested too deep" in tree.score('{"a": ' * 500 + "{}" + "}" * 500, None, TASK).feedback


@pytest.mark.parametrize(
    ("items", "unique"),
    [
        ([1, True, "1", None, [1], {"a": 1}], True),
        ([1, 1.0], False),
        ([{"a": 1, "b": [2]}, {"b": [2.0], "a": 1}], False),
        ([{"a": n} for n in range(5000)], True),
    ],
)
def test_items_that_must_differ_are_compared_in_linear_time(items, unique):
    """With each compared to each the last would take a minute."""
    assert scorer(schema={"uniqueItems": True}).score(json.dumps(items), None, TASK).hard == unique


def test_true_and_false_are_compared_by_a_fields_scorer_as_texts():
    made = scorer(fields={"a": ScorerChoice("exact")})
    assert made.score('{"a": true}', {"a": True}, TASK).hard == 1
    assert made.score('{"a": false}', {"a": True}, TASK).hard == 0


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '"\\ud800'])
def test_a_schema_file_that_cannot_be_read_is_told(text, tmp_path):
    file = tmp_path / "schema.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"the schema file .*schema\.json cannot be read"):
        scorer(schema_file=file)


def test_nothing_is_fetched_for_a_schema():
    with pytest.raises(ConfigError, match="which it does not hold; nothing is fetched"):
        scorer(schema={"$ref": "http://127.0.0.1:9/schema.json"})
    made = scorer(schema={"properties": {"a": {"$ref": "http://127.0.0.1:9/schema.json"}}})
    with pytest.raises(EnvironmentFailure, match="which it does not hold; nothing is fetched"):
        made.score('{"a": 1}', None, TASK)


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"pattern": "^(a|a)*$"}}},
        {"patternProperties": {"^(a|a)*$": {}}},
    ],
)
def test_a_pattern_of_a_schema_that_never_ends_is_given_up(schema):
    nasty = "a" * 60 + "!"
    with pytest.raises(EnvironmentFailure, match=r"the schema's pattern .* took more than 2 seconds"):
        scorer(schema=schema).score(json.dumps({"a": nasty, nasty: 1}), None, TASK)


def test_patterns_of_a_schema_are_held():
    made = scorer(schema={"properties": {"a": {"pattern": "^x"}}, "patternProperties": {"^n_": {"type": "integer"}}})
    assert made.score('{"a": "xy", "n_1": 1}', None, TASK).hard == 1
    assert "does not match" in made.score('{"a": "y"}', None, TASK).feedback
    assert "$.n_1" in made.score('{"n_1": "1"}', None, TASK).feedback


@pytest.mark.parametrize("reference", [None, "no JSON", float("nan"), object(), {1, 2}])
def test_a_reference_that_is_no_json_is_an_error(reference):
    with pytest.raises(ValueError, match="a reference must be JSON"):
        scorer().check(reference, TASK)
