"""Configured credentials never reach a file, in whatever form they stand."""

import base64
import json
import random
import string
from urllib.parse import quote, quote_plus, urlencode

import pytest
from skillopt_kernel.records import Attempt, ToolCall, Turn
from skillopt_kernel.store.patterns import MARKER, clipped
from skillopt_kernel.store.redaction import Redactor, unmistakable

KEY = "sk-" + "a1B2" * 10
ODD = 'p/w+d?"é\\ =&%1'


def test_credentials_are_replaced_everywhere_the_longest_first() -> None:
    redactor = Redactor([KEY[:20], KEY, "", "  "])
    assert redactor.redact(f"use {KEY}, not {KEY[:20]}!") == f"use {MARKER}, not {MARKER}!"
    value = {KEY: [KEY, 1, None, {"a": (f"x{KEY}",)}], "b": 0.5, "c": True}
    assert redactor.redact_value(value) == {MARKER: [MARKER, 1, None, {"a": (f"x{MARKER}",)}], "b": 0.5, "c": True}


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_credential_is_found_inside_json_and_json_within_json(ascii_only: bool) -> None:
    redactor, inner = Redactor([ODD]), json.dumps({"password": ODD}, ensure_ascii=ascii_only)
    for text in (ODD, inner, json.dumps({"arguments": inner})):
        redacted = redactor.redact(text)
        assert MARKER in redacted
        assert "w+d" not in redacted
    assert json.loads(redactor.redact(inner)) == {"password": MARKER}


@pytest.mark.parametrize("encode", [lambda text: quote(text, ""), quote_plus, lambda text: quote(text, "").lower()])
def test_a_credential_is_found_in_an_address(encode) -> None:
    assert Redactor([ODD]).redact(f"https://h/v1?key={encode(ODD)}&x=1") == f"https://h/v1?key={MARKER}&x=1"
    assert Redactor([ODD]).redact(urlencode({"key": ODD})) == f"key={MARKER}"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("credential", [KEY, ODD, "12345678"])
def test_a_credential_is_found_in_base64_whatever_stands_around_it(encode, credential: str) -> None:
    redactor = Redactor([credential])
    for before in ("", ":", "me:", "user:", "a-user:"):
        for after in ("", "\n", "!!", "and more"):
            told = redactor.redact(encode(f"{before}{credential}{after}".encode()).decode())
            assert MARKER in told
            rest = told.partition(MARKER)
            assert len(rest[0]) <= 4 * len(before) // 3 + 2 and len(rest[2]) <= 4 * len(after) // 3 + 6


def test_any_text_can_be_a_credential_and_is_found_in_every_form() -> None:
    random_text = random.Random(7)
    alphabet = string.printable + "é日🙂\ud800"
    for _ in range(300):
        credential = "".join(random_text.choices(alphabet, k=random_text.randrange(9, 40))).strip()
        if not unmistakable(credential):
            continue
        redactor = Redactor([credential])
        for form in (credential, json.dumps(credential), json.dumps(credential, ensure_ascii=False)):
            assert MARKER in redactor.redact(f"<{form}>")


def test_records_keep_their_closed_words_whatever_the_credential() -> None:
    turn = Turn("assistant", "assistant", tool_calls=(ToolCall("1", "f", "assistant_1"),))
    attempt = Attempt("max_turns", (turn,), files={"a": b"max_turns", "b": b"\xffmax_turns"}, ended="max_turns")
    redacted = Redactor(["assistant_1", "max_turns"]).redact_value(attempt)
    assert redacted.trajectory == (Turn("assistant", "assistant", (ToolCall("1", "f", MARKER),)),)
    assert (redacted.output, redacted.ended) == (MARKER, "max_turns")


def test_a_binary_file_keeps_its_length() -> None:
    files = {"a": KEY.encode(), "b": b"\xff" + KEY.encode() + b"\x00"}
    redacted = Redactor([KEY]).redact_value(Attempt("", files=files))
    assert redacted.files == {"a": MARKER.encode(), "b": b"\xff" + b"*" * len(KEY) + b"\x00"}


@pytest.mark.parametrize("credential", ["none", "dummy", "EMPTY", "ollama", "1234567", "password", "placeholder"])
def test_a_value_that_could_be_an_ordinary_word_is_left_alone(credential: str) -> None:
    text = f"{credential} of the {credential}s"
    assert not unmistakable(credential)
    assert Redactor([credential, KEY]).redact(text) == text


@pytest.mark.parametrize("credential", ["12345678", "no-key-1", "secret-value", "supersecretkey", "hunter-22"])
def test_other_values_are_replaced(credential: str) -> None:
    assert unmistakable(credential)
    assert Redactor([credential]).redact(f"a {credential}.") == f"a {MARKER}."


def test_without_credentials_values_are_handed_back_as_they_are() -> None:
    value = {"a": (1, 2)}
    assert Redactor().redact_value(value) is value


def test_case_o_p1_a_credential_across_the_cut_leaves_nothing_behind() -> None:
    redactor = Redactor([KEY])
    for before in range(3940, 4010):
        text = "x" * before + KEY + "y" * 100
        cut = clipped(redactor.redact(text), 4000)
        assert len(cut) <= 4000
        assert "sk-" not in cut
        assert cut.replace(MARKER, "").strip("xy") == ""
        assert redactor.redact(text).startswith(cut)


@pytest.mark.parametrize("length", range(40))
def test_a_cut_never_falls_inside_a_marker(length: int) -> None:
    text = f"ab {MARKER} {MARKER}{MARKER}"
    cut = clipped(text, length)
    assert len(cut) <= length
    assert "[" not in cut.replace(MARKER, "")
