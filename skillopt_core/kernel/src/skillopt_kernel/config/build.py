"""From a merged node tree and overrides to the resolved configuration, collecting every problem on the way."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen

from skillopt_kernel.config import known
from skillopt_kernel.config.backends import resolve_backends
from skillopt_kernel.config.fields import is_secret, is_secret_name
from skillopt_kernel.config.load import Loaded
from skillopt_kernel.config.overrides import Override, put
from skillopt_kernel.config.owners import Owner, OwnerTable, choose_drivers
from skillopt_kernel.config.paths import resolve_paths
from skillopt_kernel.config.resolved import REDACTED, Config, DriverChoice
from skillopt_kernel.config.schema import SECTIONS
from skillopt_kernel.config.structure import Structurer, fields_of
from skillopt_kernel.config.tree import DEFAULT, Node, leaves
from skillopt_kernel.errors import ConfigError
from skillopt_kernel.plugins.errors import nearest

_ALLOWED = (*SECTIONS, "prompts")


@frozen
class Request:
    """What a configuration is made of, kept so that overrides can be added later."""

    loaded: Loaded
    overrides: list[Override]
    environ: Mapping[str, str]


@define
class Draft:
    """A configuration in the making: what the phases below hand to each other."""

    root: Node
    environ: Mapping[str, str]
    structurer: Structurer = field(factory=Structurer)
    origins: dict[str, str] = field(factory=dict)
    unused: dict[str, str] = field(factory=dict)
    warnings: list[str] = field(factory=list)
    credentials: set[str] = field(factory=set)
    written: dict[str, str] = field(factory=dict)

    @property
    def problems(self) -> list[str]:
        return self.structurer.problems

    def stop(self) -> None:
        """Raise `ConfigError` if there are problems, in the order of files and lines."""
        if self.problems:
            raise ConfigError(*sorted(self.problems, key=_line_of))

    def section(self, name: str) -> dict[str, Node]:
        """The keys of a section that are set; a section that is null or missing has none."""
        node = self.root.value.get(name)
        return node.value if node is not None and isinstance(node.value, dict) else {}

    def take(self, owner: type, nodes: Mapping[str, Node], prefix: str, where: str = "") -> Any:
        """An instance of a settings class from the nodes by field name; fields without a node keep their default.

        Null says "not set", unless the field may be null.
        """
        values: dict[str, Any] = {}
        for name, each in fields_of(owner).items():
            key, node = prefix + name, nodes.get(name)
            self.origins.setdefault(key, str(DEFAULT))
            if node is None or (node.value is None and type(None) not in getattr(each.type, "__args__", ())):
                continue
            self.origins[key] = str(node.place)
            value = self.structurer.value(named(node, key), each, key)
            values[name] = resolve_paths(self, value, node, each, key)
            if is_secret(each) and isinstance(value, str) and value:
                self.note_secret(key, node, value)
        return self.structurer.build(owner, values, where or prefix.rstrip("."))

    def note_secret(self, key: str, node: Node, value: str) -> None:
        """Remember a credential, and warn when it was written where other people may read it."""
        self.credentials.add(value)
        if node.place.kind == "override":
            variable = key.rpartition(".")[2].upper()
            self.warnings.append(
                f"{node.place}: a credential on the command line can be read by everyone on this machine and stays in "
                f"the shell's history; set the environment variable {variable} instead"
            )


def _line_of(problem: str) -> tuple[str, int, int]:
    found = re.match(r"(.*?):(\d+):(\d+): ", problem)
    return (found[1], int(found[2]), int(found[3])) if found else ("", 0, 0)


def named(node: Node, key: str) -> Node:
    """The node with an alias replaced by the name that it stands for."""
    text = node.text if node.text is not None else node.value
    if isinstance(text, str) and node.value is not None:
        name = known.canonical(key, text)
        if name != text:
            return evolve(node, value=name, text=None)
    return node


def build(request: Request) -> Config:
    """Resolve a configuration. Raises `ConfigError` with every problem that was found."""
    draft = Draft(request.loaded.root, request.environ)
    check_sections(draft)
    bare = apply_overrides(draft, request.overrides)
    draft.stop()  # the sections must stand before what is in them can be judged
    kernel = {name: take_kernel_keys(draft, name) for name in SECTIONS}
    table = OwnerTable(choose_drivers(draft, kernel), draft)
    place_bare_keys(draft, bare, table, kernel)
    drivers = {owner.kind: take_driver(draft, owner) for owner in table.owners}
    hooks, plugins = table.take_hooks(kernel["hooks"])
    backends = resolve_backends(draft, kernel["model"])
    for section in SECTIONS:
        table.check_other_keys(section)
    prompts = take_prompts(draft)
    draft.stop()
    return Config(
        name=request.loaded.name,
        path=request.loaded.path,
        **(kernel | {"hooks": hooks}),
        prompts=prompts,
        drivers=drivers,
        backends=backends,
        plugins=plugins,
        credentials=frozenset(draft.credentials | secrets_in(draft.root)),
        origins=dict(sorted(draft.origins.items())),
        unused=dict(sorted(draft.unused.items())),
        warnings=tuple(dict.fromkeys(draft.warnings)),
        written=draft.written,
        request=request,
    )


def check_sections(draft: Draft) -> None:
    """Every key outside a section is a problem; one that has a section is told which."""
    for key, node in draft.root.value.items():
        if key not in _ALLOWED:
            draft.problems.append(f"{node.where}: {key}: {_outside(key)}")
        elif not (node.value is None or isinstance(node.value, dict)):
            draft.problems.append(f"{node.where}: {key}: is a section, a mapping of keys")


def _outside(key: str) -> str:
    home = known.FLAT.get(key) or next((f"{section}.{key}" for section in _kernel_homes(key)), "")
    home = home or next((owned for owned in known.OWNED if owned.endswith(f".{key}")), "")
    if home:
        section, _, name = home.partition(".")
        return f"belongs in the section `{section}`: write `{section}: {{{name}: ...}}`"
    near = nearest(key, _ALLOWED)
    return "is no section" + (f"; did you mean {near!r}?" if near else f"; there are {', '.join(_ALLOWED)}")


def _kernel_homes(key: str) -> list[str]:
    return [section for section, settings in SECTIONS.items() if key in fields_of(settings)]


def apply_overrides(draft: Draft, overrides: Sequence[Override]) -> list[Override]:
    """Put overrides into the tree. Returns the bare ones whose owner is a driver, still to be found."""
    later = []
    for override in overrides:
        path = override.key.split(".")
        if len(path) == 1:
            flat = known.FLAT.get(path[0], "").split(".") if path[0] in known.FLAT else None
            homes = _kernel_homes(path[0])
            if path[0] in _ALLOWED and isinstance(override.node.value, dict):
                flat = path
            if flat is None and len(homes) != 1:
                later.append(override)
                continue
            path = flat or [homes[0], path[0]]
        if path[0] not in _ALLOWED:
            near = nearest(path[0], _ALLOWED)
            hint = f"; did you mean {near!r}?" if near else f"; there are {', '.join(_ALLOWED)}"
            draft.problems.append(f"{override.node.place}: {path[0]!r} is no section{hint}")
            continue
        try:
            draft.root = put(draft.root, override, path)
        except ConfigError as error:
            draft.problems.extend(error.problems)
    return later


def place_bare_keys(draft: Draft, bare: Sequence[Override], table: OwnerTable, kernel: dict[str, Any]) -> None:
    """Put bare overrides whose key a driver owns into the one section that owns it."""
    for override in bare:
        homes = table.homes(override.key)
        if len(homes) == 1:
            draft.root = put(draft.root, override, [homes[0], override.key])
            continue
        if homes:
            choices = " or ".join(f"{section}.{override.key}" for section in homes)
            draft.problems.append(f"{override.node.place}: more than one section has this key; write {choices}")
            continue
        near = nearest(override.key, table.all_keys())
        hint = f"; did you mean {near!r}?" if near else "; write section.key=value"
        draft.problems.append(f"{override.node.place}: no section has the key {override.key!r}{hint}")


def take_kernel_keys(draft: Draft, section: str) -> Any:
    """The kernel's own keys of a section; a key with a problem has its default, so that the rest is checked too."""
    settings = SECTIONS[section]
    return draft.take(settings, draft.section(section), f"{section}.")


def take_driver(draft: Draft, owner: Owner) -> DriverChoice:
    settings = None
    if owner.settings is not None:
        settings = draft.take(owner.settings, draft.section(owner.section), f"{owner.section}.", owner.where)
    return DriverChoice(owner.kind, owner.name, settings, owner.where)


def take_prompts(draft: Draft) -> dict[str, Any]:
    prompts = {}
    from skillopt_kernel.config.paths import input_path

    for name, node in draft.section("prompts").items():
        key = f"prompts.{name}"
        if node.empty:
            continue
        if not isinstance(node.value, str):
            draft.problems.append(f"{node.where}: {key}: expected the path of a Markdown file")
            continue
        prompts[name] = input_path(draft, node, key)
        draft.origins[key] = str(node.place)
    return prompts


def secrets_in(root: Node) -> set[str]:
    """Every text under a key whose name says that it holds a credential, used or not."""
    found = set()
    for path, node in leaves(root):
        if is_secret_name(path) and isinstance(node.value, str) and node.value not in ("", REDACTED):
            found.add(node.text if node.text is not None else node.value)
    return found


def default_environ() -> Mapping[str, str]:
    """The process's environment as it is now."""
    return dict(os.environ)
