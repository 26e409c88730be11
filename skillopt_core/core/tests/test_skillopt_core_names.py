import subprocess
import sys
from importlib.metadata import requires, version

import pytest
import skillopt_kernel

import skillopt_core


def test_hands_on_every_public_name_of_the_kernel():
    homes = {
        "run_slow_update": "skillopt_analysis.epoch_functions",
        "run_meta_skill": "skillopt_analysis.epoch_functions",
    }
    homes["evaluate"] = "skillopt_commands.evaluation"
    assert set(skillopt_core.__all__) == {*skillopt_kernel.__all__, *homes}
    assert all(getattr(skillopt_core, name).__module__ == home for name, home in homes.items())
    for name in skillopt_kernel.__all__:
        assert getattr(skillopt_core, name) is getattr(skillopt_kernel, name)


def test_star_import_gives_the_public_names():
    names: dict = {}
    exec("from skillopt_core import *", names)
    assert names["compute_score"] is skillopt_kernel.compute_score
    assert names["train"] is skillopt_kernel.train


def test_has_its_own_version_and_no_other_name():
    assert skillopt_core.__version__ == version("skillopt-core")
    with pytest.raises(AttributeError, match="skillopt_core"):
        skillopt_core.no_such_name  # noqa: B018


def test_import_loads_nothing_but_the_kernel_root():
    code = "import sys; import skillopt_core; print(sorted(m for m in sys.modules if m.startswith('skillopt_')))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert eval(loaded) == ["skillopt_core", "skillopt_kernel", "skillopt_kernel.version"]


def test_the_default_plugins_are_installed_with_it():
    from skillopt_kernel.plugins.discovery import installed

    found = {(plugin.kind, plugin.name): plugin.distribution for plugin in installed()}
    expected = {
        ("gate", "hard"), ("gate", "soft"), ("gate", "mixed"),
        ("scheduler", "constant"), ("scheduler", "linear"), ("scheduler", "cosine"),
        ("scheduler", "autonomous"), ("update", "rewrite_from_suggestions"), ("update", "full_rewrite_minibatch"),
        ("update", "patch"), ("backend", "simulated"), ("backend", "openai_compatible"), ("command", "calls"),
        ("command", "train"),
    }  # fmt: skip
    assert expected <= set(found)
    declared = {line.split(">")[0].strip() for line in requires("skillopt-core") or ()}
    assert {found[key] for key in expected} <= declared
