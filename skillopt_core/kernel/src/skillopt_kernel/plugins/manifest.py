"""The manifest: what an entry point names, cheap enough to import for a listing.

A manifest holds facts and import strings only, so that reading it loads nothing but the kernel and the
standard library. The settings class and the factory are imported when a configuration names the plugin.
"""

from typing import NamedTuple

PLUGIN_API = 1
"""The plugin interface this kernel speaks. A manifest says which one its author wrote against."""

ACCEPTED_APIS = frozenset({1})

_KINDS = "backend env gate scheduler update scorer executor source redactor command hook"
KINDS: dict[str, str] = {kind: f"skillopt.{kind}s" for kind in _KINDS.split()}
"""Kind of a plugin -> the entry point group in which its manifest is published."""


class Manifest(NamedTuple):
    """What one plugin is, in facts and import strings.

    kind      one of `KINDS`
    name      the name a configuration uses; equal to the entry point's name
    api       the integer plugin interface it was written against (`PLUGIN_API`)
    summary   one line for listings, without a final full stop
    factory   "package.module:attribute"; called as `factory(settings, context)` to make the driver. For a
              command, the click command itself; for a hook plugin, a class or function that makes the plugin.
    settings  "package.module:Class", a frozen attrs class with a default and a description for every field;
              empty when the plugin has no settings
    section   the configuration section whose further keys the settings class owns; empty: the kind's own
    prefix    for backends: what its keys in `model` begin with, e.g. "qwen_chat_"; empty: fields bear whole keys
    needs     names of environment variables without which it cannot work, for `skillopt doctor`
    keys      for hook plugins: keys of known sections that mean "use me", e.g. ("evaluation.use_x",)
    data      for environments: "package.module:command", the click command that `skillopt data NAME` runs
    """

    kind: str
    name: str
    api: int
    summary: str
    factory: str
    settings: str = ""
    section: str = ""
    prefix: str = ""
    needs: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    data: str = ""
