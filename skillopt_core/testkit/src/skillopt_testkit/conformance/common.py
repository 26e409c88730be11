"""What every plugin must keep: an honest and light manifest, plain settings, a factory without side effects."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest
from skillopt_kernel.config.fields import default_of, description
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import find, load_manifest, make_driver, settings_class
from skillopt_kernel.plugins.manifest import Manifest

_LOADED_BY_IMPORT = """
import sys
import skillopt_kernel.plugins.manifest, skillopt_kernel.version
import importlib
before = set(sys.modules)
importlib.import_module({module!r})
print(*sorted(set(sys.modules) - before))
"""


class PluginConformance:
    """The base of all suites.

    kind, name  of the plugin, as it is installed
    options     values of its settings that differ from their defaults
    """

    kind: ClassVar[str]
    name: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}

    @pytest.fixture
    def settings(self) -> Any:
        """The plugin's settings; override it where they depend on other fixtures."""
        return self.settings_with()

    @pytest.fixture
    def context(self) -> DriverContext:
        """What the factory is given; override it where the plugin needs more."""
        return DriverContext(logger=logging.getLogger("skillopt.testkit"), seed=7)

    @pytest.fixture
    def driver(self, settings: Any, context: DriverContext) -> Any:
        """The driver as a run would make it."""
        return self.made(settings, context)

    def made(self, settings: Any, context: DriverContext) -> Any:
        """A driver as a run makes it: from the entry point of its name."""
        return make_driver(self.kind, self.name, settings, context)

    def settings_with(self, **values: Any) -> Any:
        """The settings class called with `options` and `values`; `None` for a plugin without settings."""
        found = settings_class(load_manifest(self.kind, self.name))
        return found(**{**self.options, **values}) if found else None

    @property
    def manifest(self) -> Manifest:
        return load_manifest(self.kind, self.name)

    def test_manifest_is_complete(self) -> None:
        summary = self.manifest.summary
        assert summary.strip() == summary != ""
        assert "\n" not in summary, "a summary is one line"
        assert not summary.endswith("."), "a summary has no final full stop: listings add what they need"

    def test_manifest_loads_nothing_else(self) -> None:
        module = find(self.kind, self.name).value.partition(":")[0]
        code = _LOADED_BY_IMPORT.format(module=module)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        own = module.partition(".")[0]
        allowed = sys.stdlib_module_names | {own, "skillopt_kernel"}
        foreign = sorted({name for name in done.stdout.split() if name.partition(".")[0] not in allowed})
        assert not foreign, f"importing the manifest also imports {', '.join(foreign)}; import them where they are used"

    def test_settings_are_frozen_and_described(self) -> None:
        found = settings_class(self.manifest)
        if found is None:
            return
        fields = attrs.fields(found)
        for field in fields:
            assert field.default is not attrs.NOTHING, f"{field.name} has no default"
            assert description(found, field.name), f"{field.name} is described nowhere"
        made = found(**self.options)
        assert made == found(**self.options), "settings with equal values are equal"
        if fields:
            with pytest.raises(attrs.exceptions.FrozenInstanceError):
                setattr(made, fields[0].name, default_of(fields[0]))

    def test_factory_changes_nothing_global(self, settings: Any, context: DriverContext) -> None:
        make_driver(self.kind, self.name, settings, context)  # imports, which may register things once
        before = _process_state()
        make_driver(self.kind, self.name, settings, context)
        assert _process_state() == before, "making the driver changed the environment, folder, logging or random state"


def _process_state() -> tuple[Any, ...]:
    root = logging.getLogger()
    return dict(os.environ), Path.cwd(), root.level, list(root.handlers), random.getstate()
