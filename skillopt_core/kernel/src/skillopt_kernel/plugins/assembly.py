"""The plugin manager of one run: made fresh, checked, then frozen.

Registered in this order, the last asked first: the kernel's default stages (`trylast`), the drivers that the
configuration names, its hook plugins in the order listed, and the functions of `hooks.override` and
`hooks.wrap`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pluggy
from attrs import frozen

from skillopt_kernel.errors import ConfigError
from skillopt_kernel.hookspecs import OBSERVERS, STAGES
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.calls import HookCalls
from skillopt_kernel.plugins.errors import nearest
from skillopt_kernel.plugins.guards import ObserverErrors, Trace
from skillopt_kernel.plugins.hook_loading import hook_function, load_hook_plugin
from skillopt_kernel.plugins.registry import Registry, implementations_of

OPTIONAL_STAGES = ("slow_update", "meta_skill")
"""The stages whose default may be disabled; the others can only be overridden."""

TRACE_VARIABLE = "SKILLOPT_TRACE_HOOKS"
LOGGER = "skillopt"


class HookChoices(Protocol):
    """The section `hooks` of a configuration, as far as assembly reads it."""

    @property
    def plugins(self) -> Sequence[str]: ...
    @property
    def path(self) -> Sequence[str | Path]: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def disable(self) -> Sequence[str]: ...
    @property
    def override(self) -> Mapping[str, str]: ...
    @property
    def wrap(self) -> Mapping[str, str]: ...
    @property
    def strict(self) -> bool: ...


@frozen
class Asked:
    """One implementation as `skillopt hooks explain` lists it; wrappers stand around those that follow."""

    plugin: str
    wrapper: bool


@frozen
class Assembled:
    """One run's hooks. `calls` asks them; `owners` says where each hook plugin comes from."""

    calls: HookCalls
    owners: Mapping[str, str]
    _manager: pluggy.PluginManager

    def asked(self, hook: str) -> tuple[Asked, ...]:
        """Who is asked at the hook `skillopt_...`, in order, wrappers first."""
        implementations = getattr(self._manager.hook, hook).get_hookimpls()
        return tuple(Asked(each.plugin_name, each.wrapper) for each in reversed(implementations))


def assemble(
    defaults: Iterable[tuple[str, object]],
    hooks: HookChoices,
    base_folder: Path | None = None,
    *,
    context: DriverContext | None = None,
    drivers: Iterable[tuple[str, object]] = (),
    report: Callable[[str], None] | None = None,
    where: Callable[[str], str] = str,
    trace: bool | None = None,
) -> Assembled:
    """Make the hooks of one run.

    defaults     the kernel's own plugins as (name, plugin), each hookimpl `trylast`
    hooks        the section `hooks`; its `path` is relative to `base_folder`, the configuration file's folder
    context      what factories get; its logger serves for reports, too
    drivers      the run's drivers and further plugins as (name, object); those that implement hooks are asked
                 before the defaults
    report       gets the sentence when an observer fails for the first time; default: a warning in the log
    where        puts file and line before a key: "a.yaml:3:5: hooks.override.select", for messages
    trace        a line to standard error for each call; default: SKILLOPT_TRACE_HOOKS is set and not "0"

    Raises `ConfigError` or a `PluginError` for everything that the user can correct.
    """
    context = context or DriverContext(logger=logging.getLogger(LOGGER))
    if trace is None:
        trace = os.environ.get(TRACE_VARIABLE, "0") not in ("", "0")
    folders = [(base_folder or Path()) / folder for folder in hooks.path]
    errors = ObserverErrors(report or context.logger.warning)
    registry = Registry(errors, Trace(trace), where)
    defaults, drivers = tuple(defaults), tuple(drivers)
    blocked = _blocked(hooks.disable, (*defaults, *drivers), hooks.plugins, where)
    _check_names(hooks, where)
    for name, plugin in defaults:
        if name not in blocked:
            registry.add(name, plugin, ours=True)
    for name, driver in drivers:
        if name not in blocked and implementations_of(driver):
            registry.add(name, driver)
    owners = {}
    for name in hooks.plugins:
        if name not in blocked:
            values = hooks.settings.get(name)
            plugin, owners[name] = load_hook_plugin(name, values, folders, context, where)
            registry.add(name, plugin)
    for key, chosen, wrapper in (("override", hooks.override, False), ("wrap", hooks.wrap, True)):
        for stage, path in chosen.items():
            function = hook_function(path, folders, f"hooks.{key}.{stage}", where)
            registry.add_function(f"hooks.{key}: {path}", f"skillopt_{stage}", function, wrapper=wrapper)
    registry.manager.freeze()
    return Assembled(HookCalls(registry.manager, errors, strict=hooks.strict), owners, registry.manager)


def _check_names(hooks: HookChoices, where: Callable[[str], str]) -> None:
    problems = []
    for name in hooks.plugins:
        if list(hooks.plugins).count(name) > 1:
            problems.append(f"{where('hooks.plugins')}: {name!r} stands there twice; remove one.")
    for name in hooks.settings:
        if name not in hooks.plugins and name not in hooks.disable:
            guess = nearest(name, hooks.plugins)
            cure = f"Did you mean {guess!r}?" if guess else f"Add {name!r} to hooks.plugins, or remove its settings."
            problems.append(f"{where('hooks.settings.' + name)}: no hook plugin of this name is in use. {cure}")
    for key, chosen in (("override", hooks.override), ("wrap", hooks.wrap)):
        for stage in chosen:
            if stage not in STAGES:
                guess = nearest(stage.removeprefix("skillopt_"), STAGES)
                cure = f"Did you mean {guess!r}? " if guess else ""
                problems.append(
                    f"{where(f'hooks.{key}.{stage}')}: there is no stage {stage!r}. {cure}Stages: {', '.join(STAGES)}."
                )
    if problems:
        raise ConfigError(*dict.fromkeys(problems))


def _blocked(
    disable: Sequence[str],
    present: Sequence[tuple[str, object]],
    plugins: Sequence[str],
    where: Callable[[str], str],
) -> set[str]:
    """The names that are not to be registered, found before any plugin is loaded."""
    blocked, problems = set[str](), []
    for word in disable:
        stage = word.removeprefix("kernel.")
        own = {name: plugin for name, plugin in present if name in (word, f"kernel.{stage}")}
        observing = own and all(_observes_only(plugin) for plugin in own.values())
        if word in plugins:
            blocked.add(word)
        elif stage in OPTIONAL_STAGES or observing:
            blocked.update(own)
        elif stage in STAGES or own:
            problems.append(
                f"{where('hooks.disable')}: {word!r} cannot be disabled, it can only be overridden "
                f"(hooks.override). {', '.join(OPTIONAL_STAGES)} and observers can be disabled."
            )
        else:
            known = [*OPTIONAL_STAGES, *(n for n, plugin in present if _observes_only(plugin)), *plugins]
            guess = nearest(word, known)
            cure = f"Did you mean {guess!r}? " if guess else ""
            problems.append(
                f"{where('hooks.disable')}: there is no plugin {word!r} to disable. {cure}Known: {', '.join(known)}."
            )
    if problems:
        raise ConfigError(*problems)
    return blocked


def _observes_only(plugin: object) -> bool:
    stages = [hook.removeprefix("skillopt_") for hook, _, _ in implementations_of(plugin)]
    return bool(stages) and all(stage in OBSERVERS for stage in stages)
