"""What is installed, and one plugin by its name.

Three depths: `installed` reads metadata and imports nothing; `load_manifest` and `settings_class` import the
manifest and the settings class; `make_driver` imports and calls the factory. A scan reads a file of every distribution
that there is, and is remembered until one is installed or removed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillopt_kernel.plugins.errors import (
    PASSED_ON,
    DriverFailed,
    ObjectNotFound,
    PluginApiMismatch,
    PluginBroken,
    PluginConflict,
    PluginNotFound,
)
from skillopt_kernel.plugins.manifest import ACCEPTED_APIS, KINDS, Manifest

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from skillopt_kernel.interfaces import DriverContext

METHODS: dict[str, tuple[str, ...]] = {
    "backend": ("open_chat", "open_agent", "endpoint", "check"),
    "env": ("splits", "attempt", "score"),
    "gate": ("judge", "score"),
    "scheduler": ("budget",),
    "update": ("prompts", "read_item", "write_item", "describe_item", "apply"),
    "scorer": ("score",),
    "executor": ("submit", "close"),
    "source": ("discover", "read"),
    "redactor": ("find",),
}
"""What a driver of each kind must be able to do: the methods of its protocol in `skillopt_kernel.interfaces`."""


class Installed(NamedTuple):
    """One plugin as metadata tells of it. `value` is the import string of its manifest."""

    kind: str
    name: str
    value: str
    distribution: str
    version: str

    @property
    def owner(self) -> str:
        """The distribution and its version: "skillopt-gate-hard 0.1.0"."""
        return f"{self.distribution} {self.version}"


def installed(kind: str | None = None) -> tuple[Installed, ...]:
    """What is installed, of one kind or of all in the order of `KINDS`, sorted by name, then distribution.

    Reads metadata and imports no plugin. Raises `KeyError` for a kind that is none of `KINDS`.
    """
    listed = _listed(tuple((place, Path(place).stat().st_mtime_ns) for place in sys.path if Path(place).exists()))
    return sum(listed.values(), ()) if kind is None else listed[kind]


@functools.lru_cache(maxsize=1)
def _listed(_: tuple[tuple[str, int], ...]) -> dict[str, tuple[Installed, ...]]:
    from importlib.metadata import entry_points

    entries, owner = entry_points(), functools.cache(lambda dist: (dist.metadata["Name"], dist.metadata["Version"]))
    listed = {}
    for kind, group in KINDS.items():
        found = [Installed(kind, e.name, e.value, *owner(e.dist)) for e in entries.select(group=group) if e.dist]
        listed[kind] = tuple(sorted(found, key=lambda plugin: (plugin.name, plugin.distribution)))
    return listed


def find(kind: str, name: str, where: str = "") -> Installed:
    """The one installed plugin of that name. Raises `PluginNotFound` or `PluginConflict`."""
    found = installed(kind)
    matches = [plugin for plugin in found if plugin.name == name]
    if not matches:
        raise PluginNotFound(kind, name, [plugin.name for plugin in found], where)
    if len(matches) > 1:
        raise PluginConflict(kind, name, [plugin.owner for plugin in matches], where)
    return matches[0]


def owner_of(kind: str, name: str) -> str:
    """The distribution and version of an installed plugin, empty when it is not installed."""
    return next((plugin.owner for plugin in installed(kind) if plugin.name == name), "")


def load_manifest(kind: str, name: str, where: str = "") -> Manifest:
    """Import the manifest of the plugin `name`; `where` (file, line, key) begins the message of any error.

    Raises `PluginNotFound`, `PluginConflict`, `PluginBroken` or `PluginApiMismatch`.
    """
    plugin = find(kind, name, where)
    from skillopt_kernel.plugins.selection import select

    return read_manifest(plugin, where, select)


def read_manifest(
    plugin: Installed, where: str = "", load: Callable[[EntryPoint], Any] = lambda entry: entry.load()
) -> Manifest:
    """The manifest of a plugin that a listing found, if this kernel can use it and it is what its entry says.

    Raises `PluginBroken` or `PluginApiMismatch`.
    """
    from importlib.metadata import EntryPoint

    kind, name, owner = plugin.kind, plugin.name, plugin.owner
    try:
        manifest = load(EntryPoint(name, plugin.value, KINDS[kind]))
    except (Exception, SystemExit) as error:
        raise PluginBroken(kind, name, owner, error, where) from error
    if not isinstance(manifest, Manifest):
        problem = f"{plugin.value} is a {type(manifest).__name__}, not a skillopt_kernel.plugins.manifest.Manifest"
        raise PluginBroken(kind, name, owner, problem, where)
    if type(manifest.api) is not int or manifest.api not in ACCEPTED_APIS:
        raise PluginApiMismatch(kind, name, owner, manifest.api, where)
    if (manifest.kind, manifest.name) != (kind, name):
        told = f"its manifest {plugin.value} says {manifest.kind!r} {manifest.name!r}"
        problem = f"{told}, but its entry point is {name!r} in the group {KINDS[kind]!r}"
        raise PluginBroken(kind, name, owner, problem, where)
    return manifest


def _resolve(path: str) -> Any:
    from pkgutil import resolve_name

    if not path.partition(":")[2]:
        raise ValueError(f"{path!r} is not an object path like 'package.module:name'")
    return resolve_name(path)


def load_object(path: str, where: str = "") -> Any:
    """The object that `package.module:attribute` names. Raises `ObjectNotFound`, whatever its import raises."""
    try:
        return _resolve(path)
    except (Exception, SystemExit) as error:
        start = f"{where}: " if where else ""
        raise ObjectNotFound(f"{start}{path!r} cannot be imported: {type(error).__name__}: {error}.") from error


def load_part(manifest: Manifest, path: str, where: str = "") -> Any:
    """What an import string of the manifest names. Raises `PluginBroken`."""
    try:
        return _resolve(path)
    except (Exception, SystemExit) as error:
        owner = owner_of(manifest.kind, manifest.name)
        raise PluginBroken(manifest.kind, manifest.name, owner, error, where) from error


def settings_class(manifest: Manifest, where: str = "") -> type[Any] | None:
    """The attrs class of the plugin's settings, or `None` when it has none. Raises `PluginBroken`."""
    if not manifest.settings:
        return None
    import attrs

    found = load_part(manifest, manifest.settings, where)
    if not (isinstance(found, type) and attrs.has(found)):
        owner = owner_of(manifest.kind, manifest.name)
        raise PluginBroken(manifest.kind, manifest.name, owner, f"{manifest.settings} is not an attrs class", where)
    return found


def make_driver(kind: str, name: str, settings: Any, context: DriverContext, where: str = "") -> Any:
    """Import the factory of the plugin `name` and call it with `settings` (`None`: its defaults) and `context`.

    A context without a `driver` is given one, so that the driver can ask for another by name. Raises
    `PluginBroken` for a factory that raises or makes something without the methods of its kind; errors that
    already are sentences pass unchanged.
    """
    import attrs

    manifest = load_manifest(kind, name, where)
    factory = load_part(manifest, manifest.factory, where)
    if settings is None and (settings_type := settings_class(manifest, where)) is not None:
        settings = settings_type()
    if context.driver is None:

        def another(kind: str, name: str, settings: Any = None) -> Any:
            return make_driver(kind, name, settings, context)

        context = attrs.evolve(context, driver=another)
    try:
        driver = factory(settings, context)
    except PASSED_ON:
        raise
    except Exception as error:
        raise PluginBroken(kind, name, owner_of(kind, name), error, where) from error
    absent = [method for method in METHODS.get(kind, ()) if not callable(getattr(driver, method, None))]
    if absent:
        problem = f"what its factory made, a {type(driver).__name__}, has no method {', '.join(absent)}"
        raise PluginBroken(kind, name, owner_of(kind, name), problem, where)
    return GuardedDriver(driver, kind, name) if kind in ("gate", "scheduler", "update") else driver


class GuardedDriver:
    """A driver that default stages ask: what it raises ends the run under its name, not as a defect of ours."""

    def __init__(self, driver: Any, kind: str, name: str) -> None:
        self._driver, self._kind, self._name = driver, kind, name

    def __getattr__(self, attribute: str) -> Any:
        found = getattr(self._driver, attribute)
        # `read_item` says by its `ValueError` what is wrong with an item.
        if attribute not in METHODS[self._kind] or attribute == "read_item":
            return found

        @functools.wraps(found)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return found(*args, **kwargs)
            except PASSED_ON:
                raise
            except Exception as error:
                owner = owner_of(self._kind, self._name)
                raise DriverFailed(self._kind, self._name, owner, attribute, error) from error

        return guarded
