"""A configuration in the making: the merged tree, and what is learnt of its keys on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any

import attrs
from attrs import evolve

from skillopt_kernel.config import known
from skillopt_kernel.config.fields import is_secret, variable_of
from skillopt_kernel.config.layers import ALLOWED, HOMES, home, without_role
from skillopt_kernel.config.schema import SECTIONS
from skillopt_kernel.config.structure import Structurer, fields_of, guess
from skillopt_kernel.config.tree import DEFAULT, Node
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.plugins.manifest import Manifest

Owner = tuple[Manifest, type | None]
"""A driver's or plugin's manifest and the class of its settings."""

# By the name of the field that they are for: values, and the dotted keys under which those were written.
Nodes = Mapping[str, Node]
Keys = Mapping[str, str]


def load_owner(kind: str, name: str, where: str = "") -> Owner:
    """The plugin's manifest and settings class, whose types can be resolved. Raises `PluginError`."""
    from skillopt_kernel.plugins.discovery import load_manifest, owner_of, settings_class
    from skillopt_kernel.plugins.errors import PluginBroken

    manifest = load_manifest(kind, name, where)
    settings = settings_class(manifest, where)
    try:
        fields_of(settings)
    except (NameError, TypeError) as error:  # an annotation that names something not imported at run time
        raise PluginBroken(kind, name, owner_of(kind, name), error, where) from error
    return manifest, settings


class Draft(Structurer):
    """Structures the keys of one merged tree.

    origins    dotted key -> where its value came from, for every key that has been taken
    unused     dotted key -> why nothing reads it
    ownerless  sections whose driver cannot be loaded, so that nobody can judge their further keys
    secrets    the credentials that have been taken
    """

    def __init__(self, root: Node, environ: Mapping[str, str]) -> None:
        super().__init__()
        self.root, self.environ = root, environ
        self.origins: dict[str, str] = {}
        self.ownerless: set[str] = set()
        self.unused: dict[str, str] = {}
        self.secrets: set[Node] = set()

    def section(self, name: str) -> dict[str, Node]:
        """The keys of a section that are set; a section that is null or missing has none."""
        node = self.root.value.get(name)
        return node.value if node is not None and isinstance(node.value, dict) else {}

    def untaken(self) -> Iterator[tuple[str, Node]]:
        """The keys in sections that nobody has taken yet."""
        for section in SECTIONS:
            for name, node in self.section(section).items():
                if f"{section}.{name}" not in self.origins:
                    yield f"{section}.{name}", node

    def where(self, key: str) -> str:
        """The place of a dotted key and its name, to begin a message with."""
        section, _, name = key.partition(".")
        node = self.section(section).get(name)
        return f"{DEFAULT}: {key}" if node is None or node.empty else f"{node.where}: {node.alias or key}"

    def load(self, kind: str, name: str, where: str) -> Owner | None:
        """As `load_owner`; one that cannot be loaded is a problem."""
        try:
            return load_owner(kind, name, where)
        except SkillOptError as error:
            self.problems.append(str(error))
            return None

    def take(self, settings: type | None, nodes: Nodes, prefix: str, where: str = "", keys: Keys | None = None) -> Any:
        """An instance of a settings class from the nodes by field name; fields without a node keep their default.

        Null says "not set", unless the field may be null. `keys`: the dotted key of a field that was written under
        another one than `prefix` and its name.
        """
        if settings is None:
            return None
        values: dict[str, Any] = {}
        for name, each in fields_of(settings).items():
            node = nodes.get(name)
            self.origins.setdefault(prefix + name, str(DEFAULT))
            if node is None or (node.value is None and type(None) not in getattr(each.type, "__args__", ())):
                continue
            self.origins[prefix + name] = str(node.place)
            key = (keys or {}).get(name, prefix + name)
            values[name] = self.setting(_named(node, key), each, key)
        return self.build(settings, values, where or prefix.rstrip("."))

    def setting(self, node: Node, field: attrs.Attribute[Any], key: str) -> Any:
        """As `value`; a credential is remembered."""
        value = self.value(node, field, key)
        if is_secret(field) and isinstance(value, str) and value:
            self.secrets.add(node)
        return value

    def unknown(self, key: str, node: Node, names: Iterable[str]) -> None:
        """Collect an unknown key with the nearest of `names`, or the section that has it, or `names`."""
        section, _, name = key.rpartition(".")
        found = home(name) or next((each for each in self.origins if each.endswith(f".{name}")), None)
        named = self.section("env").get("name")
        environment = None if named is None or named.empty else named.written
        whose = f" of the environment {environment}" if environment and section == "env" else ""
        otherwise = f"; the section has {', '.join(sorted(names))}"
        if found:
            otherwise = f"; it belongs in the section `{found.partition('.')[0]}`"
        elif section == "env" and not environment:
            otherwise = "; if it is an environment's, name that first (env.name)"
        elif node.alias is not None:
            otherwise = "; a driver's key is written section.key"
        if node.alias is not None:
            self.problem(node, key, f"is no section and no key{guess(name, {*names, *HOMES, *ALLOWED}, otherwise)}")
        else:
            self.problem(node, key, f"is no key{whose}{guess(name, names, otherwise)}")

    @cached_property
    def hook_owners(self) -> dict[str, Owner]:
        """The installed hook plugins by the keys of sections that they own: their switches, and settings beside."""
        from skillopt_kernel.plugins.discovery import installed

        found: dict[str, Owner] = {}
        for plugin in installed("hook"):
            with suppress(SkillOptError):  # a broken plugin breaks nothing that does not use it
                owner = load_owner("hook", plugin.name)
                for switch in owner[0].keys:
                    section = switch.partition(".")[0]
                    found |= {switch: owner} | {f"{section}.{name}": owner for name in fields_of(owner[1])}
        return found

    @cached_property
    def _prefixes(self) -> dict[str, str]:
        return known.backend_prefixes()

    def backend_of(self, name: str) -> str | None:
        """The backend whose prefix a key of `model` bears, with or without a role before it."""
        plain = without_role(name)
        return next((backend for prefix, backend in self._prefixes.items() if plain.startswith(prefix)), None)

    def variable(self, key: str) -> str | None:
        """The environment variable that a backend asks when this key of `model` is not set; `None` for other keys."""
        section, _, name = key.partition(".")
        backend = self.backend_of(name) if section == "model" else None
        if backend is None:
            return None
        plain = without_role(name)
        with suppress(SkillOptError):
            manifest, settings = load_owner("backend", backend)
            field = fields_of(settings).get(plain.removeprefix(manifest.prefix))
            if field is not None:
                return name.removesuffix(plain).upper() + variable_of(field, manifest.prefix)
        return name.upper()


def _named(node: Node, key: str) -> Node:
    """The node with an alias replaced by the name that it stands for."""
    if not isinstance(node.written, str):
        return node
    name = known.canonical(key, node.written)
    return node if name == node.written else evolve(node, value=name, text=None)
