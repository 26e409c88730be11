"""The plugin manager of one run: made fresh, checked, then frozen.

Registered in this order, the last asked first: the kernel's default stages (`trylast`), the drivers that the
configuration names, its hook plugins in the order listed, and the functions of `hooks.override` and
`hooks.wrap`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pluggy
from attrs import frozen

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.hookspecs import STAGES
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.calls import HookCalls
from skillopt_kernel.plugins.discovery import make_driver, owner_of
from skillopt_kernel.plugins.errors import did_you_mean
from skillopt_kernel.plugins.hook_loading import import_objects, make_plugin
from skillopt_kernel.plugins.registry import Chosen, RunManager

if TYPE_CHECKING:
    from skillopt_kernel.config.schema import HooksSettings

OPTIONAL_STAGES = ("slow_update", "meta_skill")
"""The stages whose default may be disabled; the others can only be overridden."""

TRACE_VARIABLE = "SKILLOPT_TRACE_HOOKS"


@frozen
class Asked:
    """One implementation as `skillopt hooks explain` lists it; wrappers stand around those that follow."""

    plugin: str
    wrapper: bool


@frozen
class Assembled:
    """One run's hooks. `calls` asks them; `owners` says where each hook plugin comes from, `manager` holds them."""

    calls: HookCalls
    owners: Mapping[str, str]
    manager: pluggy.PluginManager

    def asked(self, hook: str) -> tuple[Asked, ...]:
        """Who is asked at the hook `skillopt_...`, in order, wrappers first."""
        implementations = getattr(self.manager.hook, hook).get_hookimpls()
        return tuple(Asked(each.plugin_name, each.wrapper) for each in reversed(implementations))


def assemble(
    defaults: Iterable[tuple[str, object]],
    hooks: HooksSettings,
    base_folder: Path | None = None,
    *,
    context: DriverContext | None = None,
    drivers: Sequence[tuple[str, object]] = (),
    report: Callable[[str], None] | None = None,
    where: Callable[[str], str] = str,
) -> Assembled:
    """Make the hooks of one run.

    defaults     the kernel's own plugins as (name, plugin), each hookimpl `trylast`
    hooks        the section `hooks`; its `path` is relative to `base_folder`, the configuration file's folder
    context      what factories get; its logger serves for reports, too
    drivers      the run's drivers and further plugins as (name, object); those that implement hooks are asked
                 before the defaults
    report       gets the sentence when an observer fails for the first time; default: a warning in the log
    where        puts file and line before a key: "a.yaml:3:5: hooks.override.select", for messages

    With SKILLOPT_TRACE_HOOKS set and not "0", each call writes a line to standard error. Raises `ConfigError` or a
    `PluginError` for everything that the user can correct.
    """
    context = context or DriverContext(logger=logging.getLogger("skillopt"))
    problems = list(dict.fromkeys(_problems(hooks, [name for name, _ in drivers], where)))
    if problems:
        raise ConfigError(*problems)
    manager, defaults = RunManager(where), tuple(defaults)
    disabled = {*hooks.disable, *(f"kernel.{word}" for word in hooks.disable)}
    for name, plugin in (*defaults, *drivers):
        if name not in disabled and manager.implementations_of(plugin):
            manager.add(name, plugin)
    owners = _add_configured(manager, hooks, base_folder or Path(), context, where)
    manager.frozen = True
    calls = HookCalls(
        manager,
        ours=[name for name, _ in defaults],
        report=report or context.logger.warning,
        strict=hooks.strict,
        trace=os.environ.get(TRACE_VARIABLE, "") not in ("", "0"),
    )
    return Assembled(calls, owners, manager)


def _add_configured(
    manager: RunManager, hooks: HooksSettings, base_folder: Path, context: DriverContext, where: Callable[[str], str]
) -> dict[str, str]:
    """Register the plugins and functions that the configuration names; where each plugin comes from."""
    plugins = [name for name in hooks.plugins if name not in hooks.disable]
    chosen = [
        (path, stage, f"hooks.{key}.{stage}", key == "wrap")
        for key, functions in (("override", hooks.override), ("wrap", hooks.wrap))
        for stage, path in functions.items()
    ]
    paths = {name: where("hooks.plugins") for name in plugins if ":" in name}
    paths |= {path: where(key) for path, _, key, _ in chosen}
    objects = import_objects(paths, [base_folder / folder for folder in hooks.path])
    owners = {}
    for name in plugins:
        values = hooks.settings.get(name)
        if ":" in name:
            plugin, owners[name] = make_plugin(objects[name], name, values, context, where), name.partition(":")[0]
        else:
            plugin = make_driver("hook", name, values, context, where("hooks.plugins"))
            owners[name] = owner_of("hook", name)
        manager.add(name, plugin)
    for path, stage, key, wrapper in chosen:
        name = f"{key.removesuffix('.' + stage)}: {path} ({stage})"
        manager.add(name, Chosen(objects[path], f"skillopt_{stage}", wrapper), key)
    return owners


def _problems(hooks: HooksSettings, drivers: Sequence[str], where: Callable[[str], str]) -> Iterator[str]:
    """What is wrong with the names in the section `hooks`, found before any plugin is loaded."""
    for name in hooks.settings:
        if name not in hooks.plugins and name not in hooks.disable:
            cure = did_you_mean(name, hooks.plugins) or " Add it to hooks.plugins, or remove its settings."
            yield f"{where('hooks.settings.' + name)}: no hook plugin of this name is in use.{cure}"
    for key, chosen in (("override", hooks.override), ("wrap", hooks.wrap)):
        for stage in chosen:
            if stage not in STAGES:
                guess = did_you_mean(stage.removeprefix("skillopt_"), STAGES)
                place = where(f"hooks.{key}.{stage}")
                yield f"{place}: there is no stage {stage!r}.{guess} Stages: {', '.join(STAGES)}."
    known = [*OPTIONAL_STAGES, *hooks.plugins, *drivers]
    for word in hooks.disable:
        stage, place = word.removeprefix("kernel."), where("hooks.disable")
        if stage in STAGES and stage not in OPTIONAL_STAGES:
            yield f"{place}: {word!r} cannot be disabled, it can only be overridden (hooks.override)."
        elif stage not in known:
            guess = did_you_mean(word, known)
            yield f"{place}: there is no plugin {word!r} to disable.{guess} Known: {', '.join(known)}."
