"""From a merged node tree and overrides to the resolved configuration, collecting every problem on the way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import evolve

from skillopt_kernel.config import known
from skillopt_kernel.config.backends import resolve_backends
from skillopt_kernel.config.credentials import take_credentials
from skillopt_kernel.config.draft import Draft, load_owner
from skillopt_kernel.config.layers import ALLOWED, in_sections, without_role
from skillopt_kernel.config.load import Loaded, Override, overrides_of
from skillopt_kernel.config.resolved import DRIVER_KEYS, Config, DriverChoice
from skillopt_kernel.config.schema import SECTIONS, HooksSettings, PromptFile
from skillopt_kernel.config.structure import fields_of, guess
from skillopt_kernel.config.tree import Node, merge
from skillopt_kernel.errors import ConfigError, SkillOptError
from skillopt_kernel.plugins.discovery import installed
from skillopt_kernel.plugins.errors import nearest
from skillopt_kernel.plugins.manifest import Manifest

_SWITCH = fields_of(HooksSettings)["strict"]  # as what the switch of a hook plugin is read: true or false
_LISTED = f"; there are {', '.join(ALLOWED)}"


def build(loaded: Loaded, overrides: Sequence[Override], environ: Mapping[str, str]) -> Config:
    """Resolve a configuration. Raises `ConfigError` with every problem that was found."""
    draft = Draft(loaded.root, environ)
    draft.warnings += loaded.warnings
    _check_sections(draft)
    _apply(draft, overrides)
    _stop(draft)  # the sections must stand before what is in them can be judged
    kernel = {name: draft.take(cls, draft.section(name), f"{name}.") for name, cls in SECTIONS.items()}
    _check_together(draft, kernel)
    drivers = _take_drivers(draft, kernel)
    backends = resolve_backends(draft, kernel["model"])
    hooks, plugins = _take_hooks(draft, kernel["hooks"])
    prompts = _take_prompts(draft)
    _check_other_keys(draft)
    _stop(draft)
    return Config(
        name=loaded.name,
        path=loaded.path,
        **(kernel | {"hooks": hooks}),
        prompts=prompts,
        drivers=drivers,
        backends=backends,
        plugins=plugins,
        credentials=take_credentials(draft),
        origins=dict(sorted(draft.origins.items())),
        unused=dict(sorted(draft.unused.items())),
        warnings=tuple(dict.fromkeys(draft.warnings)),
        written=draft.written,
        rebuilt=lambda values, origin: build(loaded, [*overrides, *overrides_of(values, origin)], environ),
    )


def _stop(draft: Draft) -> None:
    """Raise `ConfigError` if there are problems, in the order of files and lines."""

    def line_of(problem: str) -> tuple[str, int, int]:
        found = re.match(r"(.*?):(\d+):(\d+): ", problem)
        return (found[1], int(found[2]), int(found[3])) if found else ("", 0, 0)

    if draft.problems:
        raise ConfigError(*sorted(draft.problems, key=line_of))


def _check_sections(draft: Draft) -> None:
    for key, node in draft.root.value.items():
        if key not in ALLOWED:
            draft.problem(node, key, f"is no section{guess(key, ALLOWED, _LISTED)}")
        elif not (node.value is None or isinstance(node.value, dict)):
            draft.problem(node, key, "is a section, a mapping of keys")


def _check_together(draft: Draft, kernel: Mapping[str, Any]) -> None:
    """Values that are right by themselves and make no sense beside each other."""
    train, evaluation = kernel["train"], kernel["evaluation"]
    if train and evaluation and train.samples_per_task > 1 and evaluation.deterministic_target:
        where = draft.where("train.samples_per_task")
        draft.problems.append(
            f"{where}: is {train.samples_per_task}, but evaluation.deterministic_target "
            f"says that the target always answers alike; attempt each task once, or set that to false"
        )


def _apply(draft: Draft, overrides: Sequence[Override]) -> None:
    """Put overrides into the tree, one after the other, each a layer of its own."""
    for key, node in overrides:
        for name in reversed(key.split(".")):
            node = Node({name: node}, node.place)
        draft.root = merge(draft.root, in_sections(node, draft.warnings))
    _check_sections(draft)


def _take_prompts(draft: Draft) -> dict[str, Path]:
    prompts = {}
    for name, node in draft.section("prompts").items():
        if not node.empty:
            draft.origins[f"prompts.{name}"] = str(node.place)
            prompts[name] = draft.value(node, fields_of(PromptFile)["path"], f"prompts.{name}")
    return prompts


def _take_drivers(draft: Draft, kernel: dict[str, Any]) -> dict[str, DriverChoice]:
    """The drivers that the kernel's keys name, by kind. One that cannot be loaded is a problem and owns nothing."""
    drivers = {}
    for kind, key in DRIVER_KEYS.items():
        section, _, field = key.partition(".")
        name = getattr(kernel[section], field)
        if kind == "scheduler" and kernel["optimizer"].lr_control_mode == "autonomous":
            key, name = "optimizer.lr_control_mode", "autonomous"
        where = draft.where(key)
        asked = name
        if kind == "executor" and name == "auto":  # the environment says which, once it is made; one has settings
            asked = "processes" if any(each.name == "processes" for each in installed(kind)) else "threads"
        owner = draft.load(kind, asked, where) if asked else None
        if owner is None and name:
            draft.ownerless.add(section)
        elif owner is not None:
            section = owner[0].section or section
            settings = draft.take(owner[1], draft.section(section), f"{section}.", where)
            drivers[kind] = DriverChoice(kind, name, settings, where)
    return drivers


def _take_hooks(draft: Draft, hooks: HooksSettings) -> tuple[HooksSettings, dict[str, DriverChoice]]:
    """The hooks section with the plugins that keys of other sections switch on, and each plugin's settings.

    A plugin that `hooks.disable` names is not looked at: it need not even be installed.
    """
    wheres = {name: draft.where("hooks.plugins") for name in hooks.plugins}
    for key, node in draft.untaken():
        if node.value is True:
            owner = draft.hook_owners.get(key)
            name = owner[0].name if owner is not None and key in owner[0].keys else known.SWITCHES.get(key)
            if name is not None and name not in wheres:
                wheres[name] = f"{node.where}: {key}"
                draft.origins["hooks.plugins"] += f", {wheres[name]}"
    chosen, settings = {}, dict(hooks.settings)
    for name, where in wheres.items():
        wanted = ":" not in name and name not in hooks.disable
        owner = draft.load("hook", name, where) if wanted else None
        if owner is not None:
            chosen[name] = DriverChoice("hook", name, _take_plugin(draft, *owner, where), where)
            settings[name] = chosen[name].settings
    return evolve(hooks, plugins=tuple(wheres), settings=settings), chosen


def _take_plugin(draft: Draft, manifest: Manifest, settings: type | None, where: str) -> Any:
    """A hook plugin's settings, from `hooks.settings` and from the keys that it owns in other sections.

    Of two keys for one setting the nearer wins, `hooks.settings` where both are as near.
    """
    prefix, fields = f"hooks.settings.{manifest.name}.", fields_of(settings)
    given = draft.section("hooks").get("settings")
    own = given.value.get(manifest.name) if given is not None and isinstance(given.value, dict) else None
    nodes = dict(own.value) if own is not None and isinstance(own.value, dict) else {}
    for name, node in nodes.items():
        if name not in fields:
            draft.unknown(prefix + name, node, fields)
    keys: dict[str, str] = {}
    for key, node in list(draft.untaken()):
        name = key.rpartition(".")[2]
        if key in manifest.keys:
            draft.origins[key] = str(node.place)
            if not node.empty and draft.value(node, _SWITCH, key) is False:
                draft.problem(node, key, f"is false, but hooks.plugins names {manifest.name}; delete one of the two")
        elif draft.hook_owners.get(key, (None,))[0] == manifest:
            draft.origins[key] = str(node.place)
            if name in nodes and nodes[name].place.depth <= node.place.depth:
                draft.unused[key] = f"{prefix}{name} stands as near or nearer"
            else:
                nodes[name], keys[name] = node, key
                draft.origins["hooks.settings"] += f", {node.where}: {key}"
    return draft.take(settings, nodes, prefix, where, keys)


def _check_other_keys(draft: Draft) -> None:
    """Judge every key that nobody in use has taken: its owner may be known, else it is a problem."""
    for key, node in list(draft.untaken()):
        section, _, name = key.partition(".")
        backend = draft.backend_of(name) if section == "model" else None
        retired = known.RETIRED.get(f"{section}.{without_role(name)}")
        if retired is not None:
            draft.warnings.append(f"{node.where}: {node.alias or key}: {retired}")
            draft.origins[key], draft.unused[key] = str(node.place), retired
        elif backend is not None:
            _check_idle(draft, node, key, "backend", backend)
        elif key in known.OWNED:
            _check_idle(draft, node, key, *known.OWNED[key])
        elif key in draft.hook_owners:
            _check_idle(draft, node, key, "hook", draft.hook_owners[key][0].name)
        else:
            keys = (*draft.origins, *known.OWNED)
            names = {each.partition(".")[2] for each in keys if each.startswith(f"{section}.")}
            # Without its driver a section may hold keys unknown here, `env` nearly only such; a slip is told elsewhere.
            near = section != "env" and nearest(name, names)
            if near or section not in draft.ownerless:
                draft.unknown(key, node, names)


def _check_idle(draft: Draft, node: Node, key: str, kind: str, name: str) -> None:
    """A key of a driver that is not in use: checked where the driver is installed, and noted as unused."""
    draft.origins[key] = str(node.place)
    draft.unused[key] = f"the {kind} {name} is not in use"
    try:
        manifest, settings = load_owner(kind, name)
    except SkillOptError:
        return
    fields = fields_of(settings) | {each.partition(".")[2]: _SWITCH for each in manifest.keys}
    field = fields.get(without_role(key.partition(".")[2]).removeprefix(manifest.prefix))
    if field is not None and not node.empty:
        draft.value(node, field, key)
    elif field is None and kind == "backend" and key not in known.OWNED:
        draft.unknown(key, node, [manifest.prefix + each for each in fields])
