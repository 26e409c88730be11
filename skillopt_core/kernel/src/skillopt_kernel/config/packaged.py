"""Where files are found: beside the file that names them, in the working directory, in installed packages.

A packaged configuration is `configs/<name>.yaml` in the import package that an entry point of ours names. The
kernel itself carries `default`. No package is imported to look for its files.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from skillopt_kernel.config.tree import Place
from skillopt_kernel.errors import ConfigError

PREFIX = "package:"


def candidates(text: str, place: Place, where: str = "") -> list[Path]:
    """Where a path written at `place` is looked for: beside that file, then in the working directory.

    Raises `ConfigError` for a `package:` path that leads nowhere.
    """
    if text.startswith(PREFIX):
        return [package_path(text, where)]
    path = Path(text).expanduser()
    folders = [place.folder, Path.cwd()] if place.folder else [Path.cwd()]
    return list(dict.fromkeys((folder / path).resolve() for folder in folders))


def package_path(text: str, where: str = "") -> Path:
    """The file or folder that `package:import_name/sub/path` names.

    Raises `ConfigError` when the package is not installed, the path leaves it, or it has no such file.
    """
    start = f"{where}: " if where else ""
    name, _, inside = text.removeprefix(PREFIX).replace("\\", "/").partition("/")
    folder = _package_folder(name)
    if folder is None:
        raise ConfigError(f"{start}{text!r}: no package {name!r} is installed")
    path = folder / inside
    if ".." in inside.split("/") or inside.startswith("/"):
        raise ConfigError(f"{start}{text!r}: the path must stay inside the package")
    if not path.exists():
        raise ConfigError(f"{start}{text!r}: the package has no {inside!r}")
    return path


def _package_folder(name: str) -> Path | None:
    """The folder of a top-level import package, without importing it; `None` when it is not installed."""
    try:
        spec = find_spec(name) if name.isidentifier() else None
    except (ImportError, ValueError):
        return None
    places = list(spec.submodule_search_locations or ()) if spec else []
    return Path(places[0]) if places else None


def packaged_names() -> dict[str, list[str]]:
    """Every packaged configuration: name -> its `package:` paths; more than one is a conflict."""
    from skillopt_kernel.plugins.discovery import installed

    names: dict[str, list[str]] = {"default": [f"{PREFIX}skillopt_kernel/default.yaml"]}
    packages = {plugin.value.partition(":")[0].partition(".")[0] for plugin in installed()} | {"skillopt_core"}
    for package in sorted(packages):
        configs = (_package_folder(package) or Path()) / "configs"
        for path in sorted(configs.rglob("*.yaml")) if configs.is_absolute() else ():
            name = path.relative_to(configs).with_suffix("").as_posix()
            names.setdefault(name, []).append(f"{PREFIX}{package}/configs/{name}.yaml")
    return dict(sorted(names.items()))


def find_packaged(name: str, where: str = "") -> str | None:
    """The `package:` path of a packaged configuration, or `None`. Raises `ConfigError` when two have the name."""
    found = packaged_names().get(name, [])
    if len(found) > 1:
        start = f"{where}: " if where else ""
        raise ConfigError(f"{start}the configuration {name!r} is carried by {' and by '.join(found)}; name one of them")
    return found[0] if found else None
