"""Without the library of an extra, a scorer says which line installs it, before the run."""

import logging
import subprocess
import sys

import pytest
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import installed, make_driver
from skillopt_kernel.records import Task
from skillopt_scorers.settings import JsonSettings

CONTEXT = DriverContext(logging.getLogger("test"))


@pytest.mark.parametrize(
    ("library", "extra", "name", "settings"),
    [
        ("rapidfuzz.distance", "anls", "anls", None),
        ("math_verify", "math", "math", None),
        ("jsonschema", "schema", "json", JsonSettings(schema={"type": "object"})),
        ("pint", "units", "numeric", None),
    ],
)
def test_a_library_that_is_not_installed_is_named_with_its_line(monkeypatch, library, extra, name, settings):
    monkeypatch.setitem(sys.modules, library, None)  # as Python marks what cannot be imported
    with pytest.raises(ConfigError) as caught:
        make_driver("scorer", name, settings, CONTEXT).check("5 km", Task("t"))
    assert f"pip install 'skillopt-scorers[{extra}]'" in str(caught.value)
    assert library in str(caught.value)


def test_numbers_without_units_and_json_without_a_schema_need_no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "pint", None)
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    assert make_driver("scorer", "numeric", None, CONTEXT).score("$5.00", "5 USD", Task("t")).hard == 1
    assert make_driver("scorer", "numeric", None, CONTEXT).score("12 %", "0.12", Task("t")).hard == 1
    assert make_driver("scorer", "json", None, CONTEXT).score("[1]", [1], Task("t")).hard == 1


def test_making_every_scorer_loads_no_heavy_library():
    names = [plugin.name for plugin in installed("scorer") if plugin.name not in ("python", "command", "anls")]
    code = (
        "import logging, sys\nfrom skillopt_kernel.interfaces import DriverContext\n"
        "from skillopt_kernel.plugins.discovery import make_driver\n"
        f"for name in {names}: make_driver('scorer', name, None, DriverContext(logging.getLogger()))\n"
        "heavy = {'pint', 'sympy', 'math_verify', 'jsonschema', 'rapidfuzz', 'openai', 'regex'}\n"
        "print(*sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
