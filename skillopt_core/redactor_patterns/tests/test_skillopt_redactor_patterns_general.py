"""What is a credential whoever gave it, and what only looks like one."""

from __future__ import annotations

import sys

import pytest
from skillopt_redactor_patterns.general import GeneralPatterns

FINDER = GeneralPatterns()


def found(text: str) -> list[str]:
    return [text[start:end] for start, end, _ in FINDER.find(text)]


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("401 Unauthorized: Authorization: Bearer abc123def456ghi789", "abc123def456ghi789"),
        ('headers {"Authorization": "Bearer abc123def456"}', "abc123def456"),
        (r'"{\"authorization\": \"Basic dXNlcjpwYXNz\"}"', "dXNlcjpwYXNz"),
        ("authorization=Basic dXNlcjpwYXNz", "dXNlcjpwYXNz"),
        ("AUTHORIZATION: bearer letters-only", "letters-only"),
        ("Proxy-Authorization: abc123", "abc123"),
        ("the header was Bearer abc123def456.", "abc123def456."),
        ("(b'x-api-key', b'abcdef')", "abcdef"),
        ("x-api-key: abcdef", "abcdef"),
        ("Incorrect API key provided: sk-proj-abc1efghijklmnop.", "sk-proj-abc1efghijklmnop"),
        ("use gsk_0123456789abcdef or not", "gsk_0123456789abcdef"),
        ("token hf" + "_" + "abcdefghijklmnopqrstuvwxyzabcdefgh", "_abcdefghijklmnopqrstuvwxyzabcdefgh"),
        ("GET https://h.example/v1?api_key=abcdef&x=1", "abcdef"),
        ("?next=%2Fv1%3Fapi_key%3Dabcdef", "abcdef"),
        ("OPENAI_API_KEY=abcdef;", "abcdef"),
        ('{"client_secret": "swordfish"}', "swordfish"),
        ('{"db_password":"swordfish"}', "swordfish"),
        ("password: hunter22", "hunter22"),
        ("AWS_SECRET_ACCESS_KEY = wJalr/bPx1", "wJalr/bPx1"),
        ("export API_KEY=abc123456789 then fix the test", "abc123456789"),
        ("proxy http://user:hunter22@proxy.example:8080 refused", "user:hunter22"),
        ("redis://:hunter22@h:6379/0", ":hunter22"),
    ],
)
def test_a_secret_is_found_and_nothing_beside_it(text: str, secret: str) -> None:
    assert found(text)
    assert all(secret in one and len(one) <= len(secret) + 2 for one in found(text))


def test_a_private_key_is_found_whole_or_cut_off() -> None:
    body = "\nProc-Type: 4,ENCRYPTED\n\nMIIEpAIBAAKCAQEA7bq98ZxY\nabc/+def==\n"
    begin, end = ("-----" + word + " RSA PRIVATE KEY-----" for word in ("BEGIN", "END"))
    assert found(f"it was {begin}{body}{end} so") == [body]
    assert found(f"it was {begin}{body}") == [body]
    assert found("-----BEGIN CERTIFICATE-----\nMIIEpAIBAAKCAQEA7bq98ZxY\n-----END CERTIFICATE-----") == []


@pytest.mark.parametrize(
    "text",
    [
        "the model said: password protection is on; the bearer of this letter may pass",
        "connect to http://127.0.0.1:8000/v1 failed: [Errno 111]",
        "model.api_key: is no key; write openai_compatible_api_key",
        "api_key: str | None = None, password=None, token=null",
        "api_key=self.api_key, password=read_password(), client_secret=options.secrets[0]",
        'names = ("api_key", "access_token", "password")',
        '{"access_token": 4096, "password": null}',
        "Authorization: Bearer",
        "bearer certificates and basic arithmetic",
        "task-0001-000000000123 and disk-0001-0000000123",
        "see https://host.example/a:b@c and mailto:someone@host.example",
        "api_key=[redacted]; Authorization: Bearer [redacted]; https://[redacted]@host",
        'names = {"api_key": "OPENAI_API_KEY", "access_token": "the_access_token"}',
        "open(api_key=(told.azure_openai_api_key))",
    ],
)
def test_what_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert found(text) == []


def test_places_are_those_of_the_text_in_any_case_and_script() -> None:
    longer = [chr(code) for code in range(sys.maxunicode + 1) if len(chr(code).lower()) != 1]
    assert longer == ["\u0130"], "the one character that is taken care of"
    for before in ("\u0130" * 9, "ΑΣ ", "\ud800", "日本 🙂 "):
        assert found(f"{before}PASSWORD=Hunter22") == ["Hunter22"]
