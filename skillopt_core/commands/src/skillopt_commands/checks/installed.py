"""Python, the distributions and their versions, and whether every plugin can be loaded."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator

from skillopt_kernel.plugins.discovery import Installed, find, installed, load_part, read_manifest, settings_class
from skillopt_kernel.plugins.errors import PluginError
from skillopt_kernel.plugins.manifest import KINDS
from skillopt_kernel.version import version_of

from skillopt_commands.checks.finding import Report


def check_installed(report: Report, *, listed: bool) -> None:
    """What every configuration needs; `listed`: by itself, with the names of all plugins.

    Beside a configuration a broken plugin is a warning: one that it names is found with it.
    """
    report.add(
        "python", "ok", f"{platform.python_implementation()} {platform.python_version()} on {platform.platform()}"
    )
    kernel = version_of("skillopt-kernel")
    found = installed()
    versions = {plugin.distribution: plugin.version for plugin in found}
    ours = {name: version for name, version in versions.items() if name.startswith("skillopt-")}
    report.add("versions", "ok", f"skillopt-kernel {kernel}, {len(versions)} distributions with plugins")
    for name, version in sorted(ours.items()):
        if version != kernel:
            cure = f"Install all of one version: pip install --upgrade skillopt-kernel {name}."
            report.add("versions", "warning", f"{name} is {version}, the kernel {kernel}. {cure}")
    for plugin, problem in broken(found):
        report.add(f"{plugin.kind} plugins", "error" if listed else "warning", problem)
    if listed:
        for kind in KINDS:
            names = sorted({plugin.name for plugin in found if plugin.kind == kind})
            if names:
                report.add(f"{kind} plugins", "ok", ", ".join(names))


def broken(plugins: Iterable[Installed]) -> Iterator[tuple[Installed, str]]:
    """The plugins whose manifest, settings class, factory or data command cannot be loaded, each with the reason."""
    for plugin in plugins:
        try:
            find(plugin.kind, plugin.name)
            manifest = read_manifest(plugin)
            settings_class(manifest)
            load_part(manifest, manifest.factory)
            if manifest.data:
                load_part(manifest, manifest.data)
        except PluginError as error:
            yield plugin, str(error)
