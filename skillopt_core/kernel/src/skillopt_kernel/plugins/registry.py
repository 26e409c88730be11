"""The plugins of one run, each implementation checked against its hook before it is registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import pluggy

from skillopt_kernel import hookspecs
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.hookspecs import OBSERVERS, PROJECT, STAGES, hookimpl
from skillopt_kernel.plugins.calls import RESULT_CHECKS
from skillopt_kernel.plugins.errors import nearest
from skillopt_kernel.plugins.guards import (
    ObserverErrors,
    Trace,
    argument_names,
    guard_observer,
    guard_stage,
    guard_wrapper,
    tagged,
)

HOOKS: dict[str, tuple[str, ...]] = {
    name: tuple(inspect.signature(spec).parameters)
    for name, spec in vars(hookspecs).items()
    if hasattr(spec, f"{PROJECT}_spec")
}
"""Every hook with its arguments, in the order in which they are called."""


class RunManager(pluggy.PluginManager):
    """A plugin manager that changes no more once it is frozen: pluggy promises nothing of changes during calls."""

    def __init__(self) -> None:
        super().__init__(PROJECT)
        self.add_hookspecs(hookspecs)
        self._frozen = False

    def freeze(self) -> None:
        self._frozen = True

    def register(self, plugin: object, name: str | None = None) -> str | None:
        self._refuse_when_frozen()
        return super().register(plugin, name)

    def unregister(self, plugin: object | None = None, name: str | None = None) -> Any | None:
        self._refuse_when_frozen()
        return super().unregister(plugin, name)

    def set_blocked(self, name: str) -> None:
        self._refuse_when_frozen()
        super().set_blocked(name)

    def _refuse_when_frozen(self) -> None:
        if self._frozen:
            raise RuntimeError("the plugins of a run are fixed once it is assembled")


class Guarded:
    """What pluggy is given in a plugin's stead: its implementations, each in its guard."""


def implementations_of(plugin: object) -> list[tuple[str, Callable[..., Any], Mapping[str, Any]]]:
    """(hook, bound function, options) of each function marked with `@hookimpl`."""
    reader = pluggy.PluginManager(PROJECT)
    found: list[tuple[str, Callable[..., Any], Mapping[str, Any]]] = []
    for attribute in dir(plugin):
        options = reader.parse_hookimpl_opts(plugin, attribute)
        if options is not None:
            found.append((options.get("specname") or attribute, getattr(plugin, attribute), options))
    return found


class Registry:
    """Checks each implementation and registers it in its guard."""

    def __init__(self, errors: ObserverErrors, trace: Trace, where: Callable[[str], str]) -> None:
        self.manager = RunManager()
        self._errors, self._trace, self._where = errors, trace, where

    def add(self, name: str, plugin: object, *, ours: bool = False) -> None:
        """Register a plugin. Raises `ConfigError` for unknown hooks, wrong arguments, or no hook at all."""
        found = implementations_of(plugin)
        self._refuse_unmarked(name, plugin, {hook for hook, _, _ in found})
        stand_in = Guarded()
        for hook, function, options in found:
            if hook not in HOOKS and options.get("optionalhook"):
                continue
            wrapper = bool(options.get("wrapper"))
            if options.get("hookwrapper"):
                self._refuse(name, hook, "is marked hookwrapper=True; mark it wrapper=True and return the result")
            self._check(name, hook, function, wrapper)
            marker = hookimpl(
                wrapper=wrapper,
                tryfirst=bool(options.get("tryfirst")),
                trylast=bool(options.get("trylast")),
                specname=hook,
            )
            setattr(stand_in, f"{hook}_{len(vars(stand_in))}", marker(self._guard(name, hook, function, wrapper, ours)))
        self.manager.register(stand_in, name)

    def add_function(self, name: str, hook: str, function: Callable[..., Any], *, wrapper: bool) -> None:
        """Register one function of the configuration, asked before every plugin."""
        self._check(name, hook, function, wrapper)
        stand_in = Guarded()
        marker = hookimpl(wrapper=wrapper, tryfirst=True, specname=hook)
        setattr(stand_in, hook, marker(self._guard(name, hook, function, wrapper, ours=False)))
        self.manager.register(stand_in, f"{name} ({hook.removeprefix('skillopt_')})")

    def _guard(
        self, name: str, hook: str, function: Callable[..., Any], wrapper: bool, ours: bool
    ) -> Callable[..., Any]:
        if hook.removeprefix("skillopt_") in OBSERVERS:
            return guard_observer(function, hook, name, self._errors, self._trace)
        check = RESULT_CHECKS[hook]
        if wrapper:
            return guard_wrapper(function, hook, name, check, self._trace)
        guarded = guard_stage(function, hook, name, check, self._trace, ours=ours)
        return tagged(guarded, name) if hook == "skillopt_configure" else guarded

    def _check(self, name: str, hook: str, function: Callable[..., Any], wrapper: bool) -> None:
        if hook not in HOOKS:
            guess = nearest(hook, HOOKS)
            cure = f"Did you mean {guess}? " if guess else ""
            self._refuse(name, hook, f"is no hook. {cure}Hooks: {', '.join(HOOKS)}")
        stage = hook.removeprefix("skillopt_")
        if wrapper and stage not in STAGES:
            self._refuse(name, hook, f"cannot be wrapped; only stages can: {', '.join(STAGES)}")
        if wrapper and not inspect.isgeneratorfunction(function):
            self._refuse(name, hook, "is marked wrapper=True but has no yield")
        unknown = [argument for argument in argument_names(function) if argument not in HOOKS[hook]]
        parameters = inspect.signature(function).parameters
        # An argument with a default that the hook does not know is the author's own business.
        unknown = [argument for argument in unknown if parameters[argument].default is inspect.Parameter.empty]
        if unknown:
            self._refuse(
                name, hook, f"takes {', '.join(map(repr, unknown))}; its arguments are {', '.join(HOOKS[hook])}"
            )
        only = [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
        if only:
            self._refuse(name, hook, f"takes {', '.join(map(repr, only))} by keyword only; remove the `*` before it")

    def _refuse_unmarked(self, name: str, plugin: object, marked: set[str]) -> None:
        unmarked = [attribute for attribute in dir(plugin) if attribute in HOOKS and attribute not in marked]
        if unmarked:
            self._refuse(name, unmarked[0], "has no `@hookimpl` above it (from skillopt_kernel import hookimpl)")
        if not marked:
            raise ConfigError(
                f"{self._where('hooks.plugins')}: the plugin {name!r} implements no hook. It needs a function named "
                f"like a hook with `@hookimpl` above it; `skillopt hooks` lists them."
            )

    def _refuse(self, name: str, hook: str, problem: str) -> NoReturn:
        raise ConfigError(f"{self._where('hooks')}: in the plugin {name!r}, {hook} {problem}.")
