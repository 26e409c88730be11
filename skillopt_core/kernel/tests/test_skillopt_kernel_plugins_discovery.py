"""What is installed, and one plugin by name: every way in which it can be missing or broken."""

from __future__ import annotations

import logging
import sys

import pytest
from skillopt_kernel.errors import DataError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import (
    find,
    installed,
    load_manifest,
    load_object,
    make_driver,
    settings_class,
)
from skillopt_kernel.plugins.errors import (
    DriverFailed,
    ObjectNotFound,
    PluginApiMismatch,
    PluginBroken,
    PluginConflict,
    PluginError,
    PluginNotFound,
    nearest,
)
from skillopt_kernel.plugins.known import distribution_of, known_names
from skillopt_kernel.plugins.manifest import KINDS

CONTEXT = DriverContext(logger=logging.getLogger("test"))
GATE = """
from attrs import frozen

@frozen
class Settings:
    \"\"\"weight  how much\"\"\"
    weight: float = 0.5

class Gate:
    def __init__(self, settings, context):
        self.name, self.settings, self.context = "acme", settings, context
    def judge(self, trial):
        from skillopt_kernel.errors import DataError
        raise ValueError("odd trial") if trial == "odd" else DataError("a sentence")
    def score(self, hard, soft, skill): return hard

def make(settings, context):
    return Gate(settings, context)

def raises(settings, context):
    raise ValueError("no such weight")

def refuses(settings, context):
    from skillopt_kernel.errors import DataError
    raise DataError("the data is missing; make it")

def half(settings, context):
    return object()
"""


@pytest.fixture
def gate(install, manifest_of):
    """Installs a gate `acme` whose manifest has these facts."""

    def do(distribution="acme-gate 1.2", entry="acme", **facts):
        text = manifest_of("gate", "acme", **{"factory": "acme_parts:make", **facts})
        return install(
            distribution, {f"skillopt.gates {entry}": "acme_gate:plugin"}, {"acme_gate.py": text, "acme_parts.py": GATE}
        )

    return do


def test_a_listing_reads_metadata_sorted_and_imports_nothing(gate):
    gate()
    names = [plugin.name for plugin in installed("gate")]
    assert names == sorted(names)
    assert find("gate", "acme").owner == "acme-gate 1.2"
    assert [plugin.kind for plugin in installed()] == sorted((p.kind for p in installed()), key=list(KINDS).index)
    assert "acme_gate" not in sys.modules


def test_a_manifest_is_loaded_without_its_factory(gate):
    gate(settings="acme_parts:Settings")
    manifest = load_manifest("gate", "acme")
    assert manifest.summary == "the gate acme"
    assert "acme_parts" not in sys.modules
    assert settings_class(manifest).__name__ == "Settings"


def test_a_plugin_installed_meanwhile_is_seen_and_a_removed_one_is_gone(gate):
    with pytest.raises(PluginNotFound):
        find("gate", "acme")
    folder = gate()
    assert load_manifest("gate", "acme").name == "acme"
    (folder / "acme_gate-1.2.dist-info" / "entry_points.txt").unlink(missing_ok=True)
    (folder / "acme_gate-1.2.dist-info").rename(folder / "gone")
    with pytest.raises(PluginNotFound):
        load_manifest("gate", "acme")


@pytest.mark.parametrize(
    ("kind", "name", "parts"),
    [
        ("gate", "acmee", ["there is no gate named 'acmee'", "Did you mean 'acme'?", "Installed: acme"]),
        ("gate", "paired", ["Install it with: pip install skillopt-gate-paired."]),
        ("gate", "pared", ["Did you mean 'paired' (pip install skillopt-gate-paired)?"]),
        ("env", "alfworld", ["there is no environment named", "pip install skillopt-env-alfworld"]),
        ("source", "zzz", ["No transcript source is installed."]),
    ],
)
def test_a_missing_plugin_is_named_with_its_place_and_a_cure(gate, kind, name, parts):
    gate()
    with pytest.raises(PluginNotFound) as caught:
        load_manifest(kind, name, "a.yaml:3:7: evaluation.gate_metric")
    message = str(caught.value)
    assert message.startswith("a.yaml:3:7: evaluation.gate_metric: there is no ")
    for part in parts:
        assert part in message
    assert caught.value.exit_code == 2


def test_an_import_that_raises_is_broken_and_never_missing(install):
    install("acme-gate 1.2", {"skillopt.gates acme": "acme_gate:plugin"}, {"acme_gate.py": "import textworld_of_acme"})
    with pytest.raises(PluginBroken) as caught:
        load_manifest("gate", "acme")
    message = str(caught.value)
    assert "the gate 'acme' of acme-gate 1.2 is installed but cannot be used" in message
    assert "No module named 'textworld_of_acme'" in message
    assert "install what provides 'textworld_of_acme'" in message
    assert load_manifest("executor", "threads").name == "threads"  # and breaks nothing else


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("raise SystemExit('licence expired')", "SystemExit: licence expired"),
        ("assert False, 'no display'", "AssertionError: no display"),
        ("plugin = (", "SyntaxError"),
        ("plugin = 'gate'", "is a str, not a skillopt_kernel.plugins.manifest.Manifest"),
        ("other = 1", "has no attribute 'plugin'"),
    ],
)
def test_whatever_an_import_does_is_reported_under_the_plugins_name(install, text, cause):
    install("acme-gate 1.2", {"skillopt.gates acme": "acme_gate:plugin"}, {"acme_gate.py": text})
    with pytest.raises(PluginBroken, match=r"'acme' of acme-gate 1\.2") as caught:
        load_manifest("gate", "acme")
    assert cause in str(caught.value)


def test_two_distributions_that_claim_a_name_are_both_named(gate, install):
    gate()
    install("other-gate 0.3", {"skillopt.gates acme": "other_gate:plugin"}, {"other_gate.py": "raise ImportError"})
    with pytest.raises(PluginConflict) as caught:
        load_manifest("gate", "acme")
    assert "acme-gate 1.2 and by other-gate 0.3" in str(caught.value)
    assert "pip uninstall other-gate" in str(caught.value)


@pytest.mark.parametrize(
    ("api", "upgrade"),
    [(0, "pip install --upgrade acme-gate"), (2, "pip install --upgrade skillopt-kernel"), (True, "interface True")],
)
def test_another_plugin_interface_names_what_to_upgrade(gate, api, upgrade):
    gate(api=api)
    with pytest.raises(PluginApiMismatch) as caught:
        load_manifest("gate", "acme")
    assert upgrade in str(caught.value)
    assert "acme-gate 1.2" in str(caught.value)


def test_a_manifest_must_say_what_its_entry_point_says(gate):
    gate(entry="acme_two")
    with pytest.raises(PluginBroken, match="says 'gate' 'acme', but its entry point is 'acme_two'"):
        load_manifest("gate", "acme_two")


@pytest.mark.parametrize("factory", ["", "acme_parts.make", "acme_parts:", ":make", "a b:c", "acme-parts:make"])
def test_an_import_string_must_have_its_form(gate, factory):
    gate(factory=factory)
    with pytest.raises(PluginBroken, match=r"is not an object path|invalid format"):
        make_driver("gate", "acme", None, CONTEXT)


def test_a_driver_is_made_with_its_settings_or_its_defaults(gate):
    gate(settings="acme_parts:Settings")
    assert make_driver("gate", "acme", None, CONTEXT).settings.weight == 0.5
    cls = settings_class(load_manifest("gate", "acme"))
    driver = make_driver("gate", "acme", cls(weight=0.25), CONTEXT)
    assert driver.settings.weight == 0.25
    assert driver.context.driver("gate", "acme").settings.weight == 0.5


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"factory": "acme_parts:raises"}, "ValueError: no such weight"),
        ({"factory": "acme_parts:absent"}, "has no attribute 'absent'"),
        ({"factory": "acme_absent:make"}, "No module named 'acme_absent'"),
        ({"factory": "acme_parts:half"}, "what its factory made, a object, has no method judge, score"),
        ({"settings": "acme_parts:Gate"}, "acme_parts:Gate is not an attrs class"),
        ({"settings": "acme_parts:Missing"}, "has no attribute 'Missing'"),
    ],
)
def test_a_driver_that_cannot_be_made_stops_with_that_error(gate, facts, cause):
    """O-U2: a constructor that raises stops the run; nothing else is taken in its stead."""
    gate(**facts)
    with pytest.raises(PluginBroken, match=r"'acme' of acme-gate 1\.2") as caught:
        make_driver("gate", "acme", None, CONTEXT, "a.yaml:1:1: evaluation.gate_metric")
    assert cause in str(caught.value)
    assert str(caught.value).startswith("a.yaml:1:1: evaluation.gate_metric: ")


def test_what_a_driver_raises_names_it_but_its_own_sentences_pass(gate):
    gate()
    driver = make_driver("gate", "acme", None, CONTEXT)
    with pytest.raises(DriverFailed, match=r"the gate 'acme' of acme-gate 1\.2 failed in judge: ValueError: odd trial"):
        driver.judge("odd")
    with pytest.raises(DataError, match=r"^a sentence$"):
        driver.judge("sentence")
    assert driver.score(0.5, 0, "") == 0.5
    assert not hasattr(driver, "absent")


def test_a_factorys_own_sentence_passes_unchanged(gate):
    gate(factory="acme_parts:refuses")
    with pytest.raises(Exception, match=r"^the data is missing; make it$"):
        make_driver("gate", "acme", None, CONTEXT)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("json", "is not an object path"),
        ("json:", "is not an object path"),
        ("no_such_module_of_acme:x", "No module named 'no_such_module_of_acme'"),
        ("json.no_such:x", "No module named 'json.no_such'"),
        ("json:no_such", "has no attribute 'no_such'"),
    ],
)
def test_an_object_path_that_leads_nowhere(path, message):
    with pytest.raises(ObjectNotFound, match=message):
        load_object(path, "a.yaml:2:1: hooks.plugins")


def test_an_object_path_may_go_into_an_object():
    assert load_object("json:JSONDecoder.decode").__name__ == "decode"


def test_nearest_names():
    assert nearest("Token-F1", ["exact", "token_f1"]) == "token_f1"
    assert nearest("zzzz", ["exact", "token_f1"]) is None


def test_every_first_party_name_leads_to_a_distribution_named_like_it():
    for kind in KINDS:
        for name in known_names(kind):
            assert distribution_of(kind, name).startswith("skillopt-")
    assert distribution_of("update", "full_rewrite_minibatch") == "skillopt-update-full-rewrite-minibatch"
    assert distribution_of("gate", "acme") is None


def test_what_is_installed_of_ours_is_known_under_the_distribution_that_provides_it():
    ours = [plugin for plugin in installed() if plugin.distribution.startswith("skillopt-")]
    assert ours
    for plugin in ours:
        assert distribution_of(plugin.kind, plugin.name) == plugin.distribution
    assert issubclass(PluginNotFound, PluginError)
