"""Who owns which key: the drivers in use, those that are merely installed, and those that people know of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from skillopt_kernel.config import known
from skillopt_kernel.config.backends import backend_fields, split_role
from skillopt_kernel.config.resolved import DRIVER_KEYS, DRIVER_SECTIONS, DriverChoice
from skillopt_kernel.config.schema import SECTIONS, HooksSettings
from skillopt_kernel.config.structure import fields_of
from skillopt_kernel.config.tree import DEFAULT, Node
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.plugins.errors import nearest
from skillopt_kernel.plugins.manifest import Manifest

if TYPE_CHECKING:
    from skillopt_kernel.config.build import Draft


@frozen
class Owner:
    """A driver in use with the class of its settings."""

    kind: str
    name: str
    settings: type | None
    where: str
    section: str


def load_settings(kind: str, name: str, where: str = "") -> tuple[Manifest, type | None]:
    """A plugin's manifest and the class of its settings, whose types can be resolved. Raises `PluginError`."""
    from skillopt_kernel.plugins.discovery import load_manifest, owner_of, settings_class
    from skillopt_kernel.plugins.errors import PluginBroken

    manifest = load_manifest(kind, name, where)
    settings = settings_class(manifest, where)
    try:
        fields_of(settings) if settings is not None else {}
    except (NameError, TypeError) as error:  # an annotation that names something not imported at run time
        raise PluginBroken(kind, name, owner_of(kind, name), error, where) from error
    return manifest, settings


def choose_drivers(draft: Draft, kernel: Mapping[str, Any]) -> list[Owner]:
    """The drivers that the kernel's keys name. One that cannot be loaded is a problem and owns nothing."""
    from skillopt_kernel.plugins.discovery import installed

    owners = []
    for kind, key in DRIVER_KEYS.items():
        section, _, field = key.partition(".")
        name = str(getattr(kernel[section], field))
        if kind == "scheduler" and kernel["optimizer"].lr_control_mode == "autonomous":
            key, field, name = "optimizer.lr_control_mode", "lr_control_mode", "autonomous"
        if kind == "executor" and name == "auto":
            name = "threads"
        if not name:
            continue
        node = draft.section(section).get(field)
        where = f"{node.where if node is not None and not node.empty else DEFAULT}: {key}"
        if name != name.lower() and name not in {plugin.name for plugin in installed(kind)}:
            name = name.lower()
        try:
            manifest, settings = load_settings(kind, name, where)
        except SkillOptError as error:
            draft.problems.append(str(error))
            continue
        owners.append(Owner(kind, name, settings, where, manifest.section or DRIVER_SECTIONS[kind]))
    return owners


class OwnerTable:
    """The owners of one configuration's keys."""

    def __init__(self, owners: Sequence[Owner], draft: Draft) -> None:
        self.owners, self._draft = owners, draft
        self._hook_plugins: list[tuple[Manifest, type | None]] | None = None

    def keys(self, section: str) -> set[str]:
        """The keys of a section that the kernel or a driver in use owns, without backends' keys."""
        found = set(fields_of(SECTIONS[section]))
        for owner in self.owners:
            if owner.section == section and owner.settings is not None:
                found |= set(fields_of(owner.settings))
        return found

    def homes(self, key: str) -> list[str]:
        """The sections that have a key, drivers in use first; known and backends' keys count as well."""
        homes = [section for section in SECTIONS if key in self.keys(section)]
        if not homes:
            homes = [owned.partition(".")[0] for owned in (*known.OWNED, *known.IGNORED) if owned.endswith(f".{key}")]
        if not homes and (backend_of(key) or self._switch_of(f"evaluation.{key}")):
            homes = ["model" if backend_of(key) else "evaluation"]
        return homes

    def all_keys(self) -> list[str]:
        return [key for section in SECTIONS for key in self.keys(section)]

    def _installed_hooks(self) -> list[tuple[Manifest, type | None]]:
        """The installed hook plugins that own keys of sections; asked only for a key that nobody else owns."""
        from skillopt_kernel.plugins.discovery import installed

        if self._hook_plugins is None:
            self._hook_plugins = []
            for plugin in installed("hook"):
                try:
                    manifest, settings = load_settings("hook", plugin.name)
                except SkillOptError:
                    continue  # a broken plugin breaks nothing that does not use it
                if manifest.keys:
                    self._hook_plugins.append((manifest, settings))
        return self._hook_plugins

    def _switch_of(self, key: str) -> str:
        """The hook plugin that a key being true means, or an empty text."""
        installed = next((manifest.name for manifest, _ in self._installed_hooks() if key in manifest.keys), "")
        return installed or known.SWITCHES.get(key, "")

    # Hook plugins ------------------------------------------------------------------------------------------

    def take_hooks(self, hooks: HooksSettings) -> tuple[HooksSettings, dict[str, DriverChoice]]:
        """The hooks section with the plugins that keys of other sections switch on, and each plugin's settings."""
        wheres = {name: self._where("hooks.plugins") for name in hooks.plugins}
        for section in SECTIONS:
            for key, node in self._draft.section(section).items():
                # Plugins that nobody names are looked at only for a key that is true and nobody's.
                if node.value is not True or key in self.keys(section):
                    continue
                name = self._switch_of(f"{section}.{key}")
                if name:
                    wheres.setdefault(name, f"{node.where}: {section}.{key}")
        chosen, settings = {}, dict(hooks.settings)
        for name, where in wheres.items():
            if ":" in name:
                continue
            choice = self._take_plugin(name, where, settings)
            if choice is not None:
                chosen[name] = choice
        return evolve(hooks, plugins=tuple(wheres), settings=settings), chosen

    def _take_plugin(self, name: str, where: str, settings: dict[str, Any]) -> DriverChoice | None:
        try:
            manifest, owner = load_settings("hook", name, where)
        except SkillOptError as error:
            self._draft.problems.append(str(error))
            return None
        nodes = self._hook_nodes(name)
        if owner is None:
            if nodes:
                self._draft.problems.append(f"{where}: the plugin {name!r} has no settings")
            return DriverChoice("hook", name, None, where)
        for section in {key.partition(".")[0] for key in manifest.keys}:
            for key, node in self._draft.section(section).items():
                if f"{section}.{key}" in manifest.keys or (key in fields_of(owner) and key not in self.keys(section)):
                    self._draft.origins[f"{section}.{key}"] = str(node.place)
                    if key in fields_of(owner):
                        nodes = {key: node} | nodes
        for key, node in nodes.items():
            if key not in fields_of(owner):
                self._unknown(node, f"hooks.settings.{name}.{key}", fields_of(owner))
        taken = self._draft.take(owner, nodes, f"hooks.settings.{name}.", where)
        settings[name] = taken
        return DriverChoice("hook", name, taken, where)

    def _hook_nodes(self, name: str) -> dict[str, Node]:
        node = self._draft.section("hooks").get("settings")
        inside = node.value.get(name) if node is not None and isinstance(node.value, dict) else None
        return inside.value if inside is not None and isinstance(inside.value, dict) else {}

    def _where(self, key: str) -> str:
        section, _, field = key.partition(".")
        node = self._draft.section(section).get(field)
        return f"{node.where if node is not None else DEFAULT}: {key}"

    # Keys that no driver in use owns -----------------------------------------------------------------------

    def check_other_keys(self, section: str) -> None:
        """Judge every key of a section that is neither the kernel's nor a driver's in use."""
        draft, own = self._draft, self.keys(section)
        for name, node in draft.section(section).items():
            key = f"{section}.{name}"
            if name in own or key in draft.origins:
                continue
            backend = backend_of(name) if section == "model" else None
            if key in known.IGNORED:
                draft.warnings.append(f"{node.where}: {key}: {known.IGNORED[key]}")
                draft.unused[key] = known.IGNORED[key]
            elif backend is not None:
                self._check_idle(node, key, "backend", backend, split_role(name)[1])
            elif key in known.OWNED:
                self._check_idle(node, key, *known.OWNED[key], name)
            elif not self._hook_owns(key):
                self._unknown(node, key, own, backend_keys(draft) if section == "model" else ())

    def _hook_owns(self, key: str) -> bool:
        section, _, name = key.partition(".")
        for manifest, settings in self._installed_hooks():
            sections = {each.partition(".")[0] for each in manifest.keys}
            if key in manifest.keys or (section in sections and settings and name in fields_of(settings)):
                node = self._draft.section(section)[name]
                self._check_idle(node, key, "hook", manifest.name, name)
                return True
        return False

    def _check_idle(self, node: Node, key: str, kind: str, name: str, field: str) -> None:
        """A key of a driver that is not in use: checked where the driver is installed, and noted as unused."""
        from skillopt_kernel.plugins.discovery import installed

        draft = self._draft
        draft.origins[key] = str(node.place)
        draft.unused[key] = f"the {kind} {name} is not in use"
        if not any(plugin.name == name for plugin in installed(kind)):
            return
        try:
            manifest, owner = load_settings(kind, name)
        except SkillOptError:
            return
        fields = fields_of(owner) if owner is not None else {}
        field = field.removeprefix(manifest.prefix)
        if field in fields:
            if not node.empty:
                draft.structurer.value(node, fields[field], key)
        elif key not in (*manifest.keys, *known.OWNED):
            self._unknown(node, key, [f"{manifest.prefix}{each}" for each in fields])

    def _unknown(self, node: Node, key: str, keys: Iterable[str], more: Iterable[str] = ()) -> None:
        """Collect an unknown key with the nearest of `keys` and `more`, or the section that has it, or `keys`."""
        section, _, name = key.rpartition(".")
        near = nearest(name, [*keys, *more])
        homes = [home for home in self.homes(name) if home != section]
        if near is None and homes:
            hint = f"; it belongs in the section `{homes[0]}`"
        else:
            hint = f"; did you mean {near!r}?" if near else f"; the section has {', '.join(sorted(keys))}"
        driver = next((f" of {owner.name!r}" for owner in self.owners if owner.section == section == "env"), "")
        self._draft.problems.append(f"{node.where}: {key}: is no key{driver}{hint}")


def backend_of(name: str) -> str | None:
    """The backend whose prefix a key of `model` bears, with or without a role before it; installed ones first."""
    plain = split_role(name)[1]
    for prefix, backend in backend_fields():
        if plain.startswith(prefix):
            return backend
    return next((backend for prefix, backend in known.PREFIXES.items() if plain.startswith(prefix)), None)


def backend_keys(draft: Draft) -> set[str]:
    """The keys of the backends in use, as far as they have been resolved."""
    return {key.removeprefix("model.") for key in draft.origins if key.startswith("model.")}
