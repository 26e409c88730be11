"""Formats of known providers. The samples are put together here, so that no file holds what a scanner would find."""

from __future__ import annotations

import random
import re
import string
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from skillopt_redactor_patterns.finding import SecretPatterns
from skillopt_redactor_patterns.formats import KnownFormats
from skillopt_redactor_patterns.rules import entropy, gitleaks_rules, python_pattern, rules_file

ALPHANUMERIC = string.ascii_letters + string.digits
FINDER = KnownFormats()


def letters(count: int, alphabet: str = ALPHANUMERIC, seed: int = 1) -> str:
    return "".join(random.Random(f"{seed}|{count}").choices(alphabet, k=count))


SAMPLES = {
    "anthropic-api-key": "sk-ant-" + "api03-" + letters(93) + "AA",
    "openai-api-key": "sk-" + letters(20) + "T3Blbk" + "FJ" + letters(20),
    "huggingface-access-token": "hf" + "_" + letters(34, string.ascii_letters),
    "github-pat": "ghp" + "_" + letters(36),
    "gcp-api-key": "AI" + "za" + letters(35),
    "aws-access-token": "AK" + "IA" + letters(16, string.ascii_uppercase + "234567"),
    "slack-bot-token": "xo" + "xb-" + letters(12, string.digits) + "-" + letters(12, string.digits) + letters(24),
    "stripe-access-token": "sk" + "_live_" + letters(24),
    "jwt": "ey" + letters(30) + ".ey" + letters(40) + "." + letters(43),
    "gitlab-pat": "glpat" + "-" + letters(20),
    "databricks-api-token": "da" + "pi" + letters(32, "0123456789abcdef"),
    "perplexity-api-key": "pp" + "lx-" + letters(48),
    "generic-api-key": 'app_secret = "' + letters(28) + '"',
    "cohere-api-token": "COHERE_TOKEN=" + letters(40),
}


def found(text: str) -> list[tuple[str, str]]:
    return [(text[start:end], name) for start, end, name in FINDER.find(text)]


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("around", ["{}", "it was {} then", '{{"error": "no: {}"}}', "a\n{}\nb", "x" * 5000 + " {}"])
def test_formats_of_known_providers_are_found(name: str, around: str) -> None:
    sample = SAMPLES[name]
    told = found(around.format(sample))
    assert name in {which for _, which in told}
    secret = max((place for place, which in told if which == name), key=len)
    assert secret in sample and len(secret) >= 16


@pytest.mark.parametrize(
    "text",
    [
        "scheduler_linear: " + letters(32, "0123456789abcdef"),
        "facebook = " + letters(32, "0123456789abcdef") + "; heroku: 6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "cache_key: " + letters(64, "0123456789abcdef") + ", sourcegraph " + letters(40, "0123456789abcdef"),
        "the key is `skillopt_backend_openai_compatible_1`, the token gate_score_0001, the secret test_case_12_of_20",
        "AK" + "IAIOSFODNN7EXAMPLE is the example of the manual",
        "twilio SK, key=value1, auth: basic, s.abcdefghijklmnop1",
    ],
)
def test_digests_names_and_examples_are_left_alone(text: str) -> None:
    assert found(text) == []


def test_the_rules_are_those_of_gitleaks_and_each_can_be_used() -> None:
    rules = gitleaks_rules(rules_file())
    assert len(rules) > 200
    assert len({rule.name for rule in rules}) == len(rules)
    for rule in rules:
        assert not list(rule.find("", 0, 0)), rule.name
        assert not rule._harmless("qW9-" + letters(40), "x"), "its allow lists can be used"


@pytest.mark.parametrize(
    ("go", "matches", "not_matches"),
    [
        (r"(?i)ab", ["ab", "AB"], ["ac"]),
        (r"ab(?i)cd", ["abCD"], ["ABcd"]),
        (r"(?:a(?i)b)c", ["aBc"], ["aBC", "Abc"]),
        (r"(?:a(?i)[)b]\))c|d", ["aB)c", "d"], ["aB)C", "D"]),
        (r"a(?i)b(?-i:C)(?i)d", ["aBCD"], ["aBcd"]),
        (r"a(?:b|\z)", ["ab", "a"], ["a\n"]),
        (r"[[:alnum:]]{2}", ["a1"], ["a-"]),
    ],
)
def test_expressions_of_go_mean_the_same_in_python(go: str, matches: list[str], not_matches: list[str]) -> None:
    expression = re.compile(python_pattern(go))
    assert all(expression.fullmatch(text) for text in matches)
    assert not any(expression.fullmatch(text) for text in not_matches)


def test_entropy_is_in_bits_a_character() -> None:
    assert entropy("aaaa") == 0
    assert entropy("abab") == 1
    assert entropy("0123456789abcdef") == 4


def test_the_sources_and_pages_of_the_project_hold_none() -> None:
    """No false alarm in some 20,000 lines of code and prose."""
    here = Path(__file__).resolve().parents[3]
    files = [*here.glob("skillopt_*/*/src/**/*.py"), *here.glob("docs/*.md"), here / "README.md", here / "CHANGELOG.md"]
    finder = SecretPatterns()
    assert len(files) > 100
    for path in files:
        text = path.read_text(encoding="utf-8")
        told = [text[max(0, start - 30) : end] for start, end, _ in finder.find(text)]
        assert told == [], path


def seconds(work: Callable[[], object]) -> float:
    """The least CPU time of three times: of this thread, so that others on the machine do not matter."""
    measured = []
    for _ in range(3):
        began = time.thread_time()
        work()
        measured.append(time.thread_time() - began)
    return min(measured)


HOSTILE = {
    "one word": "a1" * 1000,
    "keywords": "adafruit_api_key.token.secret.password.sk-ant-api03.ghp_1" * 40,
    "assignments": "secret=abcdef1234567890 " * 80,
    "quotes": 'api_key": "' * 180,
    "spaces": "api_key" + " " * 2000,
    "bearers": "bearer " * 280,
    "addresses": "://a:" * 400,
    "key begins": "-----begin private key-----" * 74,
    "dashes": "-----begin private key-----" + "-" * 2000,
    "dots": "ey.ey1234567890abcdef." * 90,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_the_time_is_linear_in_the_text_however_hostile(kind: str) -> None:
    """Eight times the text takes about eight times as long, and would take 64 times if it were quadratic."""
    finder, text = SecretPatterns(), HOSTILE[kind]
    list(finder.find(text))  # rules are compiled when they are first needed
    once = max(seconds(lambda: list(finder.find(text * 4))), 0.001)
    assert seconds(lambda: list(finder.find(text * 32))) < 24 * once


def test_random_text_keeps_all_but_its_secrets() -> None:
    """Whatever stands around: no secret survives, nothing else is touched, and a second pass finds nothing."""
    from skillopt_kernel.store.patterns import MARKER, replace_secrets

    random_text = random.Random(20261130)
    words = [
        "the",
        "key",
        "token:",
        "=",
        "{",
        '"',
        "api",
        "a1b2c3",
        "https://h/v1",
        "\n",
        "of 8000",
        "日本",
        "[",
        "]",
        ",",
    ]
    secrets = [
        SAMPLES[name] for name in ("anthropic-api-key", "github-pat", "gcp-api-key", "perplexity-api-key", "jwt")
    ]
    for _ in range(300):
        pieces = random_text.choices(words, k=random_text.randrange(1, 60))
        planted = random_text.sample(secrets, random_text.randrange(4))
        for secret in planted:
            pieces.insert(random_text.randrange(len(pieces) + 1), secret)
        text = " ".join(pieces)
        replaced, told = replace_secrets(text)
        assert not any(secret in replaced for secret in planted)
        assert len(told) >= len(planted)
        assert replace_secrets(replaced) == (replaced, [])
        kept = iter(text.split())
        for word in replaced.split():
            if MARKER not in word:
                assert word in kept, "words stand in their order, unchanged"
