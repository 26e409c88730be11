"""Hook plugins and functions that a configuration names by object path, `package.module:attribute`."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import invalidate_caches
from pathlib import Path
from typing import Any

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import load_object
from skillopt_kernel.plugins.errors import PASSED_ON, ObjectNotFound

_import_lock = threading.RLock()
"""The search path is the process's: two runs that are assembled at once must not see each other's folders."""


@contextmanager
def importable_from(folders: Sequence[Path]) -> Iterator[None]:
    """Import from `folders` first, only inside the block.

    What was loaded from them is this run's own: it leaves `sys.modules` again, so that another run with a module of
    the same name in another folder gets its own, too.
    """
    with _import_lock:
        path, modules = list(sys.path), set(sys.modules)
        sys.path[:0] = [str(folder) for folder in folders]
        invalidate_caches()
        try:
            yield
        finally:
            sys.path[:] = path
            for name in set(sys.modules) - modules:
                file = getattr(sys.modules[name], "__file__", None)
                if file and any(Path(file).is_relative_to(folder.absolute()) for folder in folders):
                    del sys.modules[name]


def import_objects(paths: Mapping[str, str], folders: Sequence[Path]) -> dict[str, Any]:
    """What object paths name. paths: object path -> the place of its key. Raises `ConfigError` with the cure."""
    cure = "If it lies beside the configuration file, add the line `path: [.]` under `hooks:`."
    if folders:
        cure = f"Looked in {', '.join(map(str, folders))} (hooks.path) and in what is installed."
    with importable_from(folders):
        try:
            return {path: load_object(path, where) for path, where in paths.items()}
        except ObjectNotFound as error:
            missing = isinstance(error.__cause__, ModuleNotFoundError)
            raise ConfigError(f"{error} {cure}" if missing else str(error)) from error


def make_plugin(
    found: Any, name: str, values: Mapping[str, Any] | None, context: DriverContext, where: Callable[[str], str]
) -> object:
    """The plugin that an object path names: an object or module as it is, a class or function called.

    It is called with those of `settings` (the mapping as it stands in the file) and `context` that it names as
    parameters.
    """
    called = inspect.isclass(found) or inspect.isfunction(found)
    parameters = inspect.signature(found).parameters if called else {}
    if values and "settings" not in parameters:
        raise ConfigError(
            f"{where(f'hooks.settings.{name}')}: {name!r} takes no settings (it has no parameter of that name); "
            f"remove them."
        )
    if not called:
        return found
    given = {"settings": dict(values or {}), "context": context}
    try:
        return found(**{parameter: value for parameter, value in given.items() if parameter in parameters})
    except PASSED_ON:
        raise
    except Exception as error:
        raise ConfigError(
            f"{where('hooks.plugins')}: {name!r} cannot be made: {type(error).__name__}: {error}. It is called with "
            f"those of `settings` and `context` that it takes as parameters."
        ) from error
