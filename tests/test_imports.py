"""What is loaded when: nothing heavy at start, and nothing but the kernel and the standard library by a manifest.

Each case asks a fresh interpreter for its `sys.modules`. Counting modules is stable where a stopwatch is not.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from skillopt_kernel.plugins.discovery import Installed, installed

HEAVY = (
    "openai", "httpx", "httpx2", "pydantic", "numpy", "yaml", "cattrs", "attr", "attrs", "stevedore", "pluggy", "rich",
    "stamina", "json_repair", "genai_prices", "filelock",
)  # fmt: skip
"""Packages that no one loads who only asks for help or a version."""

PROVIDERS = ("openai", "httpx", "httpx2", "pydantic", "numpy", "anthropic", "aiohttp", "requests", "torch")


def loaded_by(code: str) -> set[str]:
    """The top-level packages in `sys.modules` after `code`, without those that a bare interpreter has loaded."""
    program = (
        "import sys; before = set(sys.modules)\n"
        f"{code}\n"
        "import json; print('\\n' + json.dumps(sorted({name.partition('.')[0] for name in set(sys.modules) - before})))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize("package", ["skillopt_kernel", "skillopt_core"])
def test_importing_a_package_loads_nothing_heavy(package: str) -> None:
    loaded = loaded_by(f"import {package}")
    assert package in loaded
    assert loaded & {*HEAVY, *PROVIDERS} == set()


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["trian"], ["plugins"], ["train", "--help"]])
def test_a_command_that_does_nothing_loads_nothing_heavy(words: list[str]) -> None:
    loaded = loaded_by(f"from skillopt_kernel.cli.main import main; main({words!r})")
    assert "skillopt_kernel" in loaded
    assert loaded & {*HEAVY, *PROVIDERS} == set()


@pytest.mark.parametrize("plugin", installed(), ids=lambda plugin: f"{plugin.kind}-{plugin.name}")
def test_a_manifest_loads_the_kernel_and_the_standard_library_only(plugin: Installed) -> None:
    module = plugin.value.partition(":")[0]
    own = module.partition(".")[0]
    loaded = loaded_by(f"import importlib; importlib.import_module({module!r})")
    foreign = loaded - set(sys.stdlib_module_names) - {"skillopt_kernel", own}
    assert foreign == set()


def test_the_listing_of_plugins_imports_none_of_them() -> None:
    own = {plugin.value.partition(".")[0].partition(":")[0] for plugin in installed()}
    own -= {"skillopt_kernel", "skillopt_commands"}  # the command itself
    assert own
    assert loaded_by("from skillopt_kernel.cli.main import main; main(['plugins'])") & own == set()


def test_settings_of_every_plugin_load_no_provider_library() -> None:
    code = (
        "from skillopt_kernel.plugins.discovery import *\n"
        "for plugin in installed(): settings_class(load_manifest(plugin.kind, plugin.name))"
    )
    assert loaded_by(code) & set(PROVIDERS) == set()
