"""Who owns which key: the drivers in use, hook plugins, and drivers that are merely installed or known."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from skillopt_kernel.config import known
from skillopt_kernel.config.draft import Draft, load_owner, without_role
from skillopt_kernel.config.resolved import DRIVER_KEYS, DriverChoice
from skillopt_kernel.config.schema import HooksSettings
from skillopt_kernel.config.structure import fields_of
from skillopt_kernel.config.tree import Node
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.plugins.manifest import Manifest


def take_drivers(draft: Draft, kernel: dict[str, Any]) -> dict[str, DriverChoice]:
    """The drivers that the kernel's keys name, by kind. One that cannot be loaded is a problem and owns nothing."""
    drivers = {}
    for kind, key in DRIVER_KEYS.items():
        section, _, field = key.partition(".")
        name = getattr(kernel[section], field)
        if kind == "scheduler" and kernel["optimizer"].lr_control_mode == "autonomous":
            key, name = "optimizer.lr_control_mode", "autonomous"
        if kind == "executor" and name == "auto":
            name = "threads"
        where = draft.where(key)
        owner = draft.load(kind, name, where) if name else None
        if owner is not None:
            section = owner[0].section or section
            draft.keys.setdefault(section, set()).update(fields_of(owner[1]))
            settings = draft.take(owner[1], draft.section(section), f"{section}.", where)
            drivers[kind] = DriverChoice(kind, name, settings, where)
    return drivers


def take_hooks(draft: Draft, hooks: HooksSettings) -> tuple[HooksSettings, dict[str, DriverChoice]]:
    """The hooks section with the plugins that keys of other sections switch on, and each plugin's settings.

    A plugin that `hooks.disable` names is not looked at: it need not even be installed.
    """
    wheres = {name: draft.where("hooks.plugins") for name in hooks.plugins}
    for key, node in draft.untaken():
        if node.value is True:
            owner = draft.hook_owners.get(key)
            name = owner[0].name if owner is not None and key in owner[0].keys else known.SWITCHES.get(key)
            if name is not None:
                wheres.setdefault(name, f"{node.where}: {key}")
    chosen, settings = {}, dict(hooks.settings)
    for name, where in wheres.items():
        wanted = ":" not in name and name not in hooks.disable
        owner = draft.load("hook", name, where) if wanted else None
        if owner is not None:
            chosen[name] = DriverChoice("hook", name, _take_plugin(draft, *owner, where), where)
            settings[name] = chosen[name].settings
    return evolve(hooks, plugins=tuple(wheres), settings=settings), chosen


def _take_plugin(draft: Draft, manifest: Manifest, settings: type | None, where: str) -> Any:
    """A hook plugin's settings, from `hooks.settings` and from the keys that it owns in other sections."""
    prefix, fields = f"hooks.settings.{manifest.name}.", fields_of(settings)
    given = draft.section("hooks").get("settings")
    own = given.value.get(manifest.name) if given is not None and isinstance(given.value, dict) else None
    nodes = dict(own.value) if own is not None and isinstance(own.value, dict) else {}
    for name, node in nodes.items():
        if name not in fields:
            draft.unknown(prefix + name, node, fields)
    for key, node in list(draft.untaken()):
        if key in manifest.keys or draft.hook_owners.get(key, (None,))[0] == manifest:
            draft.origins[key] = str(node.place)
            nodes.setdefault(key.rpartition(".")[2], node)
    return draft.take(settings, nodes, prefix, where)


def check_other_keys(draft: Draft) -> None:
    """Judge every key that nobody in use has taken: its owner may be known, else it is a problem."""
    for key, node in list(draft.untaken()):
        section, _, name = key.partition(".")
        backend = draft.backend_of(name) if section == "model" else None
        if key in known.IGNORED:
            draft.warnings.append(f"{node.where}: {key}: {known.IGNORED[key]}")
            draft.unused[key] = known.IGNORED[key]
        elif backend is not None:
            _check_idle(draft, node, key, "backend", backend)
        elif key in known.OWNED:
            _check_idle(draft, node, key, *known.OWNED[key])
        elif key in draft.hook_owners:
            _check_idle(draft, node, key, "hook", draft.hook_owners[key][0].name)
        else:
            taken = {each.partition(".")[2] for each in draft.origins if each.startswith(f"{section}.")}
            draft.unknown(key, node, taken)


def _check_idle(draft: Draft, node: Node, key: str, kind: str, name: str) -> None:
    """A key of a driver that is not in use: checked where the driver is installed, and noted as unused."""
    draft.origins[key] = str(node.place)
    draft.unused[key] = f"the {kind} {name} is not in use"
    try:
        manifest, settings = load_owner(kind, name)
    except SkillOptError:
        return
    fields = fields_of(settings)
    field = fields.get(without_role(key.partition(".")[2]).removeprefix(manifest.prefix))
    if field is not None and not node.empty:
        draft.value(node, field, key)
    elif field is None and kind == "backend" and key not in known.OWNED:
        draft.unknown(key, node, [manifest.prefix + each for each in fields])
