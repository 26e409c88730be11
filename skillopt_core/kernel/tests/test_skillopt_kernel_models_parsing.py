"""JSON out of replies: cases of real users, vectors, and inputs made to be slow."""

from __future__ import annotations

import json
import random
import time
from typing import Any

import pytest
from skillopt_kernel.models.parsing import extract_json, extract_json_array

EDIT = {"op": "append", "content": "Check units."}
ONE = {"edits": [EDIT]}
TEXT = json.dumps(ONE)


def test_an_unclosed_brace_in_prose_hides_no_array() -> None:
    assert extract_json_array(f"I put it in {{ braces.\n{json.dumps([EDIT])}") == [EDIT]
    assert extract_json(f"I put it in {{ braces.\n{TEXT}") == ONE


def test_a_pseudo_object_in_prose_is_no_answer() -> None:
    assert extract_json("Use `{op: delete}` only if needed; nothing to change today.") is None
    assert extract_json('Use {"op": "delete",} only if needed; nothing to change today.') is None
    assert extract_json("{op: delete}") is None, "its first key is not quoted"


def test_scratch_json_in_reasoning_is_no_answer() -> None:
    last = '{"edits":[{"op":"append","content":"Round to 2 digits."}]}'
    assert extract_json(f'<think>maybe {{"edits": []}}</think>\n{last}') == json.loads(last)


@pytest.mark.parametrize(
    "reply",
    [
        f'<thinking>{{"edits": []}}</thinking>{TEXT}',
        f'<reasoning>\n{{"a": 1}}\n</reasoning>\n\n```json\n{TEXT}\n```',
        f"<THINK>first</THINK><think>second</think>Here it is: {TEXT}",
        f'the opening tag stood in the prompt {{"a": 1}}</think>{TEXT}',
        f"<think>a <think>nested</think> {{}} </think>{TEXT}",
    ],
)
def test_reasoning_goes_first(reply: str) -> None:
    assert extract_json(reply) == ONE


def test_reasoning_that_never_ends_holds_no_answer() -> None:
    assert extract_json(f"<think>let me see {TEXT}") is None
    assert extract_json_array("<think>let me see [1]") is None


def test_an_answer_may_speak_of_reasoning_tags() -> None:
    answer = {"edits": ["Write <think> before and </think> after."]}
    assert extract_json(json.dumps(answer)) == answer
    assert extract_json(f"<think>hm</think>\n{json.dumps(answer)}") == answer
    assert extract_json(f"```json\n{json.dumps(answer)}\n```") == answer


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('Before {"b": 2}\n```json\n{"a": 1}\n```\nafter {"b": 2}', {"a": 1}),
        ('```json\n{"a": \n```\nI mean {"b": 2}', {"b": 2}),
        ('```json\n{"a": 1}', {"a": 1}),
        ('```json {"a": 1} ```', {"a": 1}),
        ('```JSON\r\n{"a": 1}\r\n```\r\n', {"a": 1}),
        ('```\n{"a": 1}\n```', {"a": 1}),
        ("```json\n[1, 2]\n```", [1, 2]),
        ('```json\n{"a": 1}\n```\nor\n```json\n{"a": 2}\n```', None),
        ('```json\n{"a": 1}\n```\nagain\n```json\n{"a": 1}\n```', {"a": 1}),
        ('```json\n{"a": "```python\\nx\\n```"}\n```', {"a": "```python\nx\n```"}),
    ],
)
def test_fences(reply: str, found: Any) -> None:
    assert extract_json(reply) == found


@pytest.mark.parametrize(
    "reply",
    [
        '{"a": 1}{"b": 2}',
        '{"a": 1}\n{"a": 1}',
        "",
        "   \n",
        "no JSON at all",
        "}{",
        '[{"a": 1}]',
        "true",
        '{"edits": [{"op": "append", "content": "x"}, {"op": "repl',
        'Sure: {"edits": [{"op": "append"}, {"op": "repl',
    ],
)
def test_no_object_or_several_or_cut_off(reply: str) -> None:
    assert extract_json(reply) is None


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("[not JSON] and then [1, 2, 3]", [1, 2, 3]),
        ("[1] and [2]", None),
        ('{"a": [1, 2]}', None),
        ('{"a": [1, 2], "b": ', None),
        ("```json\n[1]\n```\nand [2]", [1]),
        ('quotes "like [this" and [1]', [1]),
        ('an open " quote\n[1]', [1]),
        ("a ] and a } before [1]", [1]),
        ("[]", []),
        ("[1, 2", None),
        ("[[1, 2] [3, 4]]", None),
    ],
)
def test_arrays(reply: str, found: list[Any] | None) -> None:
    assert extract_json_array(reply) == found


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('{"a": 1,}', {"a": 1}),
        ('```json\n{"a": [1, 2,],}\n```', {"a": [1, 2]}),
        ('{"a": "first line\nsecond {line"}', {"a": "first line\nsecond {line"}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ("{}", {}),
    ],
)
def test_repair_of_a_reply_that_is_one_object(reply: str, found: Any) -> None:
    assert extract_json(reply) == found


@pytest.mark.parametrize(
    "reply",
    [
        'Here: {"a": 1,}',
        'Here: {"a": 1 "b": {"c": 2}}',
        '{"a": 1,}{"a": 2,}',
        '{"a": [{"b": 1}',
        '{"a": 1,} is it',
        '{"a": 1,}{"b": 2,}',
        '{"a": 1, "b": [2}',
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": ' + "9" * 5000 + "}",
        '{"a": ' + "[" * 1000 + "]" * 1000 + ",}",
    ],
)
def test_what_is_not_repaired(reply: str) -> None:
    assert extract_json(reply) is None


def test_half_of_a_surrogate_pair_can_be_written_as_utf_8() -> None:
    found = extract_json('{"a": "\\ud83d", "b": "\\ud83d\\ude00"}')
    assert found == {"a": "\ufffd", "b": "\U0001f600"}
    json.dumps(found, ensure_ascii=False).encode("utf-8")


SLOW_PIECES = [
    "{", "[", '{"', '{"a":', "[1,", '"', '\\"', '"\\""', '\n"', '"{\n', "{}", "{ ", "<think>", "</think>",
    "<think></think>", '<think>{"a":1}</think>x', "</think>[[[", "[1 ", '{"a ', "{}x", "```json\n", "```json {}```\n",
    "`",
]  # fmt: skip


@pytest.mark.parametrize("piece", SLOW_PIECES)
def test_a_hundred_thousand_of_anything_takes_linear_time(piece: str) -> None:
    def seconds(count: int) -> float:
        began = time.process_time()
        extract_json(piece * count)
        extract_json_array(piece * count)
        return time.process_time() - began

    seconds(1000)
    # Ten times the text may take ten times as long, with room for noise; quadratic would be a hundred times.
    assert seconds(100_000) < max(0.3, 40 * seconds(10_000))


def test_many_open_braces_are_no_json_within_a_second() -> None:
    began = time.process_time()
    assert extract_json("{" * 100_000) is None
    assert extract_json_array("{" * 100_000) is None
    assert time.process_time() - began < 1.0


def test_deep_nesting_is_no_json_and_no_exception() -> None:
    depth = 100_000
    assert extract_json_array("[" * depth + "]" * depth) is None
    assert extract_json('{"a":' * depth + "1" + "}" * depth) is None
    assert extract_json("```json\n" + "[" * depth + "]" * depth + "\n```") is None
    assert extract_json('{"a":' * 20 + "1" + "}" * 20) is not None


def test_no_text_raises() -> None:
    pieces = [
        *'{}[]":,\\` \n1a',
        "```json\n",
        "\n```",
        "<think>",
        "</think>",
        '{"a": ',
        "\\ud83d",
        "NaN",
        "é",
        "\ud800",
    ]
    draw = random.Random(5)
    for _ in range(3000):
        text = "".join(draw.choice(pieces) for _ in range(draw.randrange(25)))
        found = extract_json(text)
        assert found is None or isinstance(found, dict | list | str | int | float | bool)
        assert isinstance(extract_json_array(text), list | None)


def test_every_object_is_found_in_prose() -> None:
    draw = random.Random(7)
    strings = ["{", "}", "[", "]]", '"', "\\", "</think", "a\nb", "é", "```"]
    for _ in range(300):
        value = {"k": [draw.choice(strings) + draw.choice(strings), {"n": draw.random()}], "s": draw.choice(strings)}
        assert extract_json(f"Here you are:\n{json.dumps(value)}\nHope that helps.") == value
        assert extract_json(json.dumps(value, indent=2, ensure_ascii=False)) == value
        assert extract_json_array(f"Here you are:\n{json.dumps([value])}\nHope that helps.") == [value]
