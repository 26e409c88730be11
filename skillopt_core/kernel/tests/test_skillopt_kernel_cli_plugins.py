"""`skillopt plugins` and `skillopt hooks`."""

from __future__ import annotations

import sys

import pytest
from skillopt_kernel.cli.main import main
from skillopt_kernel.plugins.registry import HOOKS

SETTINGS = """
from attrs import field, frozen

@frozen
class Settings:
    \"\"\"Settings of acme.

    model    the model's name
    api_key  the key
    \"\"\"
    model: str = "acme-1"
    api_key: str = field(default="", metadata={"env": "ACME_KEY"})
    limits: tuple[int, ...] = field(factory=tuple, metadata={"description": "limits of a call"})

def make(settings, context): ...
"""


@pytest.fixture
def acme(install, manifest_of):
    def do(distribution="acme-backend 1.2", **facts):
        given = {"factory": "acme_parts:make", "settings": "acme_parts:Settings", "prefix": "acme_", **facts}
        return install(
            distribution,
            {"skillopt.backends acme": "acme_backend:plugin"},
            {"acme_backend.py": manifest_of("backend", "acme", **given), "acme_parts.py": SETTINGS},
        )

    return do


def test_the_listing_imports_no_plugin(acme, capsys):
    acme()
    assert main(["plugins"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["backend", "acme", "acme-backend", "1.2"] in rows
    assert ["executor", "threads", "skillopt-kernel"] in [row[:3] for row in rows]
    assert "acme_backend" not in sys.modules


def test_a_broken_plugin_is_listed_like_any_other(install, capsys):
    install("acme-backend 1.2", {"skillopt.backends acme": "acme_backend:plugin"}, {"acme_backend.py": "1 / 0"})
    assert main(["plugins"]) == 0
    assert "acme-backend" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["backend", "Backend"])
def test_one_plugin_is_shown_with_its_settings(acme, capsys, kind):
    acme(needs=("ACME_HOME",))
    assert main(["plugins", "show", kind, "acme"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "backend acme: the backend acme",
        "  of acme-backend 1.2, for plugin interface 1",
        "  manifest acme_backend:plugin, factory acme_parts:make",
        "  needs the environment variables ACME_HOME",
        "settings  (acme_parts:Settings)",
        "  model.acme_model: str = 'acme-1'",
        "      the model's name",
        "      environment: ACME_MODEL",
        "  model.acme_api_key: str = ''",
        "      the key",
        "      a credential: never shown, never stored",
        "      environment: ACME_KEY",
        "  model.acme_limits: tuple[int, ...] = ()",
        "      limits of a call",
        "      environment: ACME_LIMITS",
        "For one role only: optimizer_, target_ or judge_ before a key, OPTIMIZER_, ... before a variable.",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gat", "x"], "'gat' is not one of 'backend', 'env', 'gate'"),
        (["backend", "acmee"], "there is no backend named 'acmee'. Did you mean 'acme'?"),
        (["executor", "ray"], "pip install skillopt-executor-ray"),
    ],
)
def test_what_is_not_there_cannot_be_shown(acme, capsys, words, message):
    acme()
    assert main(["plugins", "show", *words]) == 2
    assert message in capsys.readouterr().err


def findings(capsys):
    code = main(["plugins", "check"])
    lines = capsys.readouterr().out.splitlines()
    return code, [line for line in lines if "acme" in line]


def test_a_check_finds_nothing_wrong_with_a_plugin_in_order(acme, capsys):
    acme()
    assert findings(capsys)[1] == []


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"api": 7}, "was written for plugin interface 7"),
        ({"factory": "acme_parts:absent"}, "has no attribute 'absent'"),
        ({"settings": "acme_parts:make"}, "is not an attrs class"),
    ],
)
def test_a_check_finds_what_is_wrong_and_ends_with_one(acme, capsys, facts, message):
    acme(**facts)
    code, lines = findings(capsys)
    assert code == 1
    assert len(lines) == 1
    assert message in lines[0]


def test_a_check_finds_a_name_that_two_claim(acme, install, capsys):
    acme()
    install("other-backend 3.0", {"skillopt.backends acme": "acme_backend:plugin"}, {})
    code, lines = findings(capsys)
    assert code == 1
    assert "acme-backend 1.2 and by other-backend 3.0" in lines[0]


def test_hooks_are_listed_in_the_order_of_the_loop(capsys):
    assert main(["hooks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert heads[2] == "skillopt_reflect(run, step, outcomes, skill)  [first answer]"
    assert [head.partition("(")[0] for head in heads] == list(HOOKS)
    assert "skillopt_score_bonus(run, skill)  [all answers]" in heads
    assert "skillopt_model_called(event)  [observer]" in heads


def test_an_explanation_needs_a_configuration_that_is_there(capsys):
    assert main(["hooks", "explain"]) == 2
    assert main(["hooks", "explain", "no_such.yaml"]) == 2
    assert "no_such.yaml" in capsys.readouterr().err
