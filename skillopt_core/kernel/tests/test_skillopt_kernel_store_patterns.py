"""What looks like a credential is replaced in what people read; which patterns there are, installed plugins say."""

import logging

import pytest
from skillopt_kernel.console import LogLines, error
from skillopt_kernel.plugins.errors import PluginBroken
from skillopt_kernel.store import patterns
from skillopt_kernel.store.patterns import MARKER, clipped, finders, redact_diagnostics, replace_secrets

LEAK = "401 Unauthorized: Authorization: Bearer abc123def456ghi789"
FINDER = """
from skillopt_kernel.plugins.manifest import Manifest, PLUGIN_API

plugin = Manifest("redactor", "{name}", PLUGIN_API, "finds a word of our own", "{module}:Own")


class Own:
    def __init__(self, settings=None, context=None):
        {init}

    def find(self, text):
        at = text.find("XQZ-")
        return [(at, at + 8, "badge")] if at >= 0 else []
"""


@pytest.fixture
def fresh():
    """Plugins are looked for once a process: what a test installs is seen, and gone after it."""
    finders.cache_clear()
    yield
    finders.cache_clear()


def own(install, init="pass", name="badges"):
    module = f"finder_{name}"
    files = {f"{module}.py": FINDER.format(name=name, module=module, init=init)}
    install(f"acme-{name} 1.0", {f"skillopt.redactors {name}": f"{module}:plugin"}, files)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (LEAK, "abc123def456ghi789"),
        ("Incorrect API key provided: sk-proj-abcdefghijklmnop1", "sk-proj-abcdefghijklmnop1"),
        ("GET https://h.example/v1?api_key=abcdef&x=1", "abcdef"),
        ("proxy http://user:hunter22@proxy.example:8080 refused", "hunter22"),
    ],
)
def test_case_o_p2_diagnostics_show_no_secret(text: str, secret: str) -> None:
    shown = redact_diagnostics(text)
    assert secret not in shown
    assert shown.replace(MARKER, "") != shown
    assert redact_diagnostics(shown) == shown


def test_case_o_p3_what_leaves_can_be_replaced_and_told_before_it_leaves() -> None:
    """What Sleep does before any call: the text to send, and what was found where, to print it or to refuse."""
    typed = "export API_KEY=abc123456789 then fix the test"
    text, found = replace_secrets(typed)
    assert text == f"export API_KEY={MARKER} then fix the test"
    assert [(typed[start:end], name) for start, end, name in found] == [("abc123456789", "named secret")]
    assert replace_secrets("fix the test") == ("fix the test", [])


def test_case_o_p1_what_only_looks_like_a_credential_leaves_no_half_either() -> None:
    text = "x " * 100 + LEAK
    for length in range(len(text) + 1):
        cut = clipped(redact_diagnostics(text), length)
        assert "abc1" not in cut
        assert "[" not in cut.replace(MARKER, "")


def test_places_that_overlap_are_replaced_by_one_marker(monkeypatch) -> None:
    class Two:
        def find(self, text):
            return [(5, 9, "b"), (2, 6, "a"), (2, 3, "c"), (11, 12, "d")]

    monkeypatch.setattr(patterns, "finders", lambda: (Two(),))
    assert replace_secrets("01234567890123")[0] == f"01{MARKER}90{MARKER}23"


def test_a_plugin_of_ones_own_is_asked_beside_the_others(install, fresh) -> None:
    own(install)
    assert redact_diagnostics(f"badge XQZ-1234; {LEAK}") == f"badge {MARKER}; {LEAK[:40]}{MARKER}"


def test_a_broken_plugin_is_told_of_where_it_matters_and_never_hides_an_error(install, fresh, capsys) -> None:
    own(install, init="raise OSError('no file')")
    with pytest.raises(PluginBroken, match="the redactor 'badges' of acme-badges"):
        finders()
    error("the sentence that had to be told")
    assert capsys.readouterr().err == "the sentence that had to be told\n"


def test_errors_and_logs_on_the_console_are_replaced(capsys) -> None:
    error(f"Error: {LEAK}")
    record = logging.LogRecord("skillopt", logging.WARNING, __file__, 1, "%s failed: %s", ("a", LEAK), None)
    LogLines().handle(record)
    assert capsys.readouterr().err == f"Error: {LEAK[:40]}{MARKER}\na failed: {LEAK[:40]}{MARKER}\n"
