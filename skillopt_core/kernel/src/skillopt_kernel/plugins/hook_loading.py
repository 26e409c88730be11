"""Hook plugins as a configuration names them: an installed name, or an object path `package.module:attribute`."""

from __future__ import annotations

import inspect
import pkgutil
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import ConfigError, ModelError, SkillOptError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import (
    load_manifest,
    load_object,
    load_part,
    owner_of,
    settings_class,
)
from skillopt_kernel.plugins.errors import ObjectNotFound, PluginBroken
from skillopt_kernel.plugins.manifest import Manifest

_import_lock = threading.RLock()
"""The search path is the process's: two runs that are assembled at once must not see each other's folders."""


@contextmanager
def importable_from(folders: Sequence[Path]) -> Iterator[None]:
    """Import from `folders` first, only inside the block.

    Modules stay loaded afterwards. One that an earlier run loaded from another such folder under the same name
    is forgotten first, so that every run gets its own.
    """
    with _import_lock:
        before = list(sys.path)
        _forget_namesakes(folders)
        sys.path[:0] = [str(folder) for folder in folders]
        invalidate_caches()
        try:
            yield
        finally:
            sys.path[:] = before


def _forget_namesakes(folders: Sequence[Path]) -> None:
    installed = [Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib")]
    for found in pkgutil.iter_modules([str(folder) for folder in folders]):
        module = sys.modules.get(found.name)
        file = getattr(module, "__file__", None)
        if file is None or found.name in sys.stdlib_module_names:
            continue
        origin = Path(file).resolve()
        here = any(origin.is_relative_to(folder.resolve()) for folder in folders)
        if not here and not any(origin.is_relative_to(place) for place in installed):
            for name in [name for name in sys.modules if f"{name}.".startswith(f"{found.name}.")]:
                del sys.modules[name]


def import_object(path: str, folders: Sequence[Path], where: str) -> Any:
    """What an object path of the configuration names. Raises `ConfigError` with the place and the cure."""
    try:
        with importable_from(folders):
            return load_object(path, where)
    except ObjectNotFound as error:
        if not isinstance(error.__cause__, ModuleNotFoundError):
            raise ConfigError(str(error)) from error
        looked = ", ".join(str(folder) for folder in folders)
        cure = (
            f"Looked in {looked} (hooks.path) and in what is installed."
            if folders
            else "If it lies beside the configuration file, add the line `path: [.]` under `hooks:`."
        )
        raise ConfigError(f"{error} {cure}") from error


def load_hook_plugin(
    name: str,
    values: Any,
    folders: Sequence[Path],
    context: DriverContext,
    where: Callable[[str], str],
) -> tuple[object, str]:
    """The plugin object for one word of `hooks.plugins`, and where it comes from ("distribution version" or a path).

    values: its settings as `load_config` resolves them: an object of its settings class for an installed name, the
    mapping as written for an object path, `None` when there are none. Raises `ConfigError` or a `PluginError`.
    """
    if ":" in name:
        found = import_object(name, folders, where("hooks.plugins"))
        return _made_here(found, name, values, context, where), _origin(found, name)
    if "." in name:
        raise ConfigError(
            f"{where('hooks.plugins')}: {name!r} is neither an installed name nor an object path; "
            f"write {name + ':NAME'!r} with the class or object that has the hooks."
        )
    manifest = load_manifest("hook", name, where("hooks.plugins"))
    settings = hook_settings(manifest, values, where)
    factory = load_part(manifest, manifest.factory)
    owner = owner_of("hook", name)
    try:
        return factory(settings, context), owner
    except (SkillOptError, ModelError):
        raise
    except Exception as error:
        raise PluginBroken("hook", name, owner, error, where("hooks.plugins")) from error


def hook_settings(manifest: Manifest, given: Any, where: Callable[[str], str]) -> Any:
    """The settings object of an installed hook plugin: the one given, else its defaults, `None` when it has none."""
    cls = settings_class(manifest, where("hooks.plugins"))
    if given is None or given == {}:
        return None if cls is None else cls()
    if cls is None or not isinstance(given, cls):
        key, wanted = f"hooks.settings.{manifest.name}", manifest.settings or "none: it has no settings"
        raise ConfigError(f"{where(key)}: {type(given).__name__} is given where {wanted} is expected.")
    return given


def _made_here(
    found: Any, name: str, values: Mapping[str, Any] | None, context: DriverContext, where: Callable[[str], str]
) -> object:
    """The plugin that an object path names: an object or module as it is, a class or function called.

    It is called with those of `settings` (the mapping as it stands in the file) and `context` that it names as
    parameters.
    """
    key = f"hooks.settings.{name}"
    called = inspect.isclass(found) or inspect.isfunction(found)
    parameters = inspect.signature(found).parameters if called else {}
    if values and "settings" not in parameters:
        raise ConfigError(f"{where(key)}: {name!r} takes no settings (it has no parameter of that name); remove them.")
    if not called:
        return found
    given = {"settings": dict(values or {}), "context": context}
    given = {parameter: value for parameter, value in given.items() if parameter in parameters}
    try:
        return found(**given)
    except (SkillOptError, ModelError):
        raise
    except Exception as error:
        raise ConfigError(
            f"{where('hooks.plugins')}: {name!r} cannot be made: {type(error).__name__}: {error}. It is called with "
            f"those of `settings` and `context` that it takes as parameters."
        ) from error


def _origin(found: Any, name: str) -> str:
    return str(getattr(found, "__module__", None) or name.partition(":")[0])


def hook_function(path: str, folders: Sequence[Path], key: str, where: Callable[[str], str]) -> Callable[..., Any]:
    """The function that `hooks.override` or `hooks.wrap` names under `key`. Raises `ConfigError`."""
    found = import_object(path, folders, where(key))
    if not (inspect.isfunction(found) or inspect.ismethod(found)):
        kind = "class" if inspect.isclass(found) else type(found).__name__
        raise ConfigError(f"{where(key)}: {path!r} is a {kind}, not a function.")
    generator = inspect.isgeneratorfunction(found)
    if key.startswith("hooks.wrap") and not generator:
        raise ConfigError(
            f"{where(key)}: {path!r} has no yield. A wrapper is a generator: `result = yield`, then `return result`; "
            f"a function that answers instead belongs under hooks.override."
        )
    if key.startswith("hooks.override") and generator:
        raise ConfigError(f"{where(key)}: {path!r} has a yield; such a function belongs under hooks.wrap.")
    return found
