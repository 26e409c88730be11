"""What is installed, and one plugin by its name.

Three depths: `installed` reads metadata and imports nothing; `load_manifest` and `settings_class` import the
manifest and the settings class; `make_driver` imports and calls the factory. Nothing is remembered between
calls, so that a plugin installed or edited meanwhile is seen; a scan costs a few milliseconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from skillopt_kernel.errors import ModelError, SkillOptError
from skillopt_kernel.plugins.errors import (
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

_OBJECT_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")

METHODS: dict[str, tuple[str, ...]] = {
    "backend": ("open_chat", "open_agent", "endpoint", "check"),
    "env": ("splits", "attempt", "score"),
    "gate": ("judge", "score"),
    "scheduler": ("budget",),
    "update": ("prompts", "read_item", "write_item", "describe_item", "apply"),
    "scorer": ("score",),
    "executor": ("submit", "close"),
    "source": ("discover", "read"),
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


def _scan(kind: str) -> list[tuple[Installed, EntryPoint]]:
    from importlib.metadata import entry_points

    found = []
    for entry in entry_points(group=KINDS[kind]):
        distribution = entry.dist.name if entry.dist else "an unknown distribution"
        version = entry.dist.version if entry.dist else "?"
        found.append((Installed(kind, entry.name, entry.value, distribution, version), entry))
    return sorted(found, key=lambda pair: pair[0])


def installed(kind: str | None = None) -> tuple[Installed, ...]:
    """What is installed, of one kind or of all in the order of `KINDS`, sorted by name, then distribution.

    Reads metadata and imports no plugin. Raises `KeyError` for a kind that is none of `KINDS`.
    """
    kinds = KINDS if kind is None else (kind,)
    return tuple(plugin for each in kinds for plugin, _ in _scan(each))


def find(kind: str, name: str, where: str = "") -> Installed:
    """The one installed plugin of that name. Raises `PluginNotFound` or `PluginConflict`."""
    return _find(_scan(kind), kind, name, where)[0]


def _find(
    scan: Sequence[tuple[Installed, EntryPoint]], kind: str, name: str, where: str
) -> tuple[Installed, EntryPoint]:
    matches = [pair for pair in scan if pair[0].name == name]
    if not matches:
        raise PluginNotFound(kind, name, [plugin.name for plugin, _ in scan], where)
    if len(matches) > 1:
        raise PluginConflict(kind, name, [plugin.owner for plugin, _ in matches], where)
    return matches[0]


def load_manifest(kind: str, name: str, where: str = "") -> Manifest:
    """Import the manifest of the plugin `name`; `where` (file, line, key) begins the message of any error.

    Raises `PluginNotFound`, `PluginConflict`, `PluginBroken` or `PluginApiMismatch`.
    """
    plugin, entry = _find(_scan(kind), kind, name, where)
    from skillopt_kernel.plugins.selection import select

    try:
        manifest = select(KINDS[kind], entry)
    except (Exception, SystemExit) as error:
        raise PluginBroken(kind, name, plugin.owner, error, where) from error
    return check_manifest(manifest, plugin, where)


def read_manifest(plugin: Installed, where: str = "") -> Manifest:
    """The manifest of a plugin that a listing found. Raises `PluginBroken` or `PluginApiMismatch`."""
    try:
        manifest = load_object(plugin.value)
    except ObjectNotFound as error:
        raise PluginBroken(plugin.kind, plugin.name, plugin.owner, _import_failure(error), where) from error
    return check_manifest(manifest, plugin, where)


def check_manifest(manifest: object, plugin: Installed, where: str = "") -> Manifest:
    """What an entry point named, if it is a manifest this kernel can use and that names itself as its entry does."""
    kind, name, owner = plugin.kind, plugin.name, plugin.owner
    if not isinstance(manifest, Manifest):
        problem = f"{plugin.value} is a {type(manifest).__name__}, not a skillopt_kernel.plugins.manifest.Manifest"
        raise PluginBroken(kind, name, owner, problem, where)
    if type(manifest.api) is not int or manifest.api not in ACCEPTED_APIS:
        from skillopt_kernel.version import version_of

        raise PluginApiMismatch(kind, name, owner, manifest.api, version_of("skillopt-kernel"), where)
    problem = ""
    if (manifest.kind, manifest.name) != (kind, name):
        problem = (
            f"its manifest {plugin.value} says {manifest.kind!r} {manifest.name!r}, but its entry point is "
            f"{name!r} in the group {KINDS[kind]!r}"
        )
    for field in ("factory", "settings"):
        value = getattr(manifest, field)
        if (value or field == "factory") and not is_object_path(value):
            problem = f"its manifest's {field} {value!r} is not an import string like 'package.module:name'"
    if problem:
        raise PluginBroken(kind, name, owner, problem, where)
    return manifest


def is_object_path(text: object) -> bool:
    """Whether `text` has the form `package.module:attribute`."""
    return isinstance(text, str) and _OBJECT_PATH.fullmatch(text) is not None


def load_object(path: str, where: str = "") -> Any:
    """The object that `package.module:attribute` names.

    Raises `ObjectNotFound` when the text has another form, when the module is missing or its import raises,
    and when it has no such attribute.
    """
    from importlib import import_module

    start = f"{where}: " if where else ""
    if not is_object_path(path):
        raise ObjectNotFound(f"{start}{path!r} is not an object path like 'package.module:name'.")
    module_name, _, attributes = path.partition(":")
    try:
        found: Any = import_module(module_name)
    except (Exception, SystemExit) as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name is not None
        if missing and f"{module_name}.".startswith(f"{error.name}."):  # type: ignore[union-attr]
            raise ObjectNotFound(f"{start}there is no module {module_name!r} to import {path!r} from.") from error
        raise ObjectNotFound(
            f"{start}the module of {path!r} cannot be imported: {type(error).__name__}: {error}."
        ) from error
    for attribute in attributes.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError as error:
            raise ObjectNotFound(f"{start}{path!r} cannot be found: {error}.") from error
    return found


def owner_of(kind: str, name: str) -> str:
    """ "distribution version" of an installed plugin, empty when it is not installed."""
    return next((plugin.owner for plugin in installed(kind) if plugin.name == name), "")


def load_part(manifest: Manifest, path: str, where: str = "") -> Any:
    """What an import string of the manifest names. Raises `PluginBroken`."""
    try:
        return load_object(path)
    except ObjectNotFound as error:
        owner = owner_of(manifest.kind, manifest.name)
        raise PluginBroken(manifest.kind, manifest.name, owner, _import_failure(error), where) from error


def _import_failure(error: ObjectNotFound) -> BaseException | str:
    return error.__cause__ if isinstance(error.__cause__, ModuleNotFoundError) else str(error).rstrip(".")


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
    except (SkillOptError, ModelError):
        raise
    except Exception as error:
        raise PluginBroken(kind, name, owner_of(kind, name), error, where) from error
    absent = [method for method in METHODS.get(kind, ()) if not callable(getattr(driver, method, None))]
    if absent:
        problem = f"what its factory made, a {type(driver).__name__}, has no method {', '.join(absent)}"
        raise PluginBroken(kind, name, owner_of(kind, name), problem, where)
    return driver
