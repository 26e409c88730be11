"""The plugins of one run, each implementation checked against its hook before it is registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, cast

import pluggy

from skillopt_kernel import hookspecs
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.hookspecs import PROJECT, STAGES
from skillopt_kernel.plugins.errors import did_you_mean

HOOKS: dict[str, tuple[str, ...]] = {
    name: tuple(inspect.signature(spec).parameters)
    for name, spec in vars(hookspecs).items()
    if hasattr(spec, f"{PROJECT}_spec")
}
"""Every hook with its arguments, in the order in which they are called."""


class Chosen:
    """A function that the configuration names for one hook, as a plugin."""

    def __init__(self, function: Any, hook: str, wrapper: bool) -> None:
        self.function = function
        self.options = {"wrapper": wrapper, "tryfirst": True, "specname": hook}


class RunManager(pluggy.PluginManager):
    """The plugin manager of one run, which checks what is registered.

    It changes no more once it is frozen: pluggy promises nothing of changes during calls. `where` puts file and
    line before a key of the configuration.
    """

    def __init__(self, where: Callable[[str], str] = str) -> None:
        super().__init__(PROJECT)
        self.add_hookspecs(hookspecs)
        self.frozen = False
        self._where = where

    def add(self, name: str, plugin: object, key: str = "hooks.plugins") -> None:
        """Register a plugin that `key` names. Raises `ConfigError` for unknown hooks, wrong arguments, or none."""
        found = self.implementations_of(plugin)
        problems = [_problem(*implementation) for implementation in found]
        marked = {hook for hook, _, _ in found}
        problems += [
            f"{attribute} has no `@hookimpl` above it (from skillopt_kernel import hookimpl)"
            for attribute in dir(plugin)
            if attribute in HOOKS and attribute not in marked
        ]
        if not found:
            problems.append(
                "there is no hook. It needs a function named like a hook with `@hookimpl` above it; "
                "`skillopt hooks` lists them"
            )
        if any(problems):
            raise ConfigError(*(f"{self._where(key)}: in the plugin {name!r}, {each}." for each in problems if each))
        self.register(plugin, name)

    def implementations_of(self, plugin: object) -> list[tuple[str, Callable[..., Any], bool]]:
        """(hook, function, whether it is a wrapper) of each implementation."""
        options = {attribute: self.parse_hookimpl_opts(plugin, attribute) for attribute in dir(plugin)}
        return [
            (each.get("specname") or attribute, getattr(plugin, attribute), bool(each.get("wrapper")))
            for attribute, each in options.items()
            if each is not None
        ]

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        if isinstance(plugin, Chosen):
            return cast(pluggy.HookimplOpts, plugin.options) if name == "function" else None
        return super().parse_hookimpl_opts(plugin, name)

    def register(self, plugin: object, name: str | None = None) -> str | None:
        if self.frozen:
            raise RuntimeError("the plugins of a run are fixed once it is assembled")
        return super().register(plugin, name)


def _problem(hook: str, function: Callable[..., Any], wrapper: bool) -> str:
    """What is wrong with an implementation, or an empty text."""
    if hook not in HOOKS:
        return f"{hook} is no hook.{did_you_mean(hook, HOOKS)} Hooks: {', '.join(HOOKS)}"
    if wrapper and hook.removeprefix("skillopt_") not in STAGES:
        return f"{hook} cannot be wrapped; only stages can: {', '.join(STAGES)}"
    if not inspect.isroutine(function):
        return f"{hook} is a {'class' if inspect.isclass(function) else type(function).__name__}, not a function"
    generator = inspect.isgeneratorfunction(function)
    if wrapper and not generator:
        return f"{hook} has no yield. A wrapper is a generator: `result = yield`, then `return result`"
    if generator and not wrapper:
        return f"{hook} has a yield; a wrapper belongs under hooks.wrap, or is marked `@hookimpl(wrapper=True)`"
    unknown = [
        repr(parameter.name)
        for parameter in inspect.signature(function).parameters.values()
        # An argument with a default is the author's own business.
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        and (parameter.name not in HOOKS[hook] or parameter.kind is parameter.KEYWORD_ONLY)
    ]
    if unknown:
        return f"{hook} takes {', '.join(unknown)}; its arguments, none by keyword only, are {', '.join(HOOKS[hook])}"
    return ""
