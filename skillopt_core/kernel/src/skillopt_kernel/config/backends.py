"""The backend of each role with its settings: the same resolution for every backend.

For each field, the first that is set: the role's key in the configuration, the shared key, the role's
environment variable, the shared variable, the default. Unset, null and an empty text mean "ask further down".
The judge asks after its own key also the optimizer's, while both have the same backend.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs

from skillopt_kernel.config.fields import is_secret
from skillopt_kernel.config.paths import resolve_paths
from skillopt_kernel.config.resolved import REDACTED, BackendChoice
from skillopt_kernel.config.schema import ModelSettings
from skillopt_kernel.config.structure import fields_of
from skillopt_kernel.config.tree import DEFAULT, Node, Place
from skillopt_kernel.errors import ConfigError, SkillOptError
from skillopt_kernel.models.roles import backend_name, plan_roles
from skillopt_kernel.plugins.manifest import Manifest

if TYPE_CHECKING:
    from skillopt_kernel.config.build import Draft

ROLES = ("optimizer", "target", "judge")


def split_role(name: str) -> tuple[str, str]:
    """A key of `model` as (role or empty, the rest): "target_qwen_chat_timeout" is "target" and the rest."""
    role, _, rest = name.partition("_")
    return (role, rest) if role in ROLES and rest else ("", name)


def backend_fields() -> Iterator[tuple[str, str]]:
    """(prefix, name) of every installed backend whose manifest can be read."""
    from skillopt_kernel.plugins.discovery import installed, read_manifest

    for plugin in installed("backend"):
        try:
            prefix = read_manifest(plugin).prefix
        except SkillOptError:
            continue
        if prefix:
            yield prefix, plugin.name


def resolve_backends(draft: Draft, model: ModelSettings) -> dict[str, BackendChoice]:
    """The choices of the three roles. A backend that cannot be loaded is a problem and leaves its role out."""
    nodes = draft.section("model")
    label = nodes.get("backend")
    depth = label.place.depth if label is not None and not label.empty else DEFAULT.depth
    own = {role: nodes.get(f"{role}_backend") for role in ROLES}
    # A role's key is overruled by a label that stands nearer to the user, unless the user's own file has the key:
    # what a base says of the roles is a default, what the user says of them is meant.
    overruled = {
        role for role, node in own.items() if node is not None and node.place.depth > max(depth, 0) and role != "judge"
    }
    plan = plan_roles(
        model.backend, model.optimizer_backend, model.target_backend, model.judge_backend, overruled=overruled
    )
    named = {role: node for role, node in own.items() if node is not None and not node.empty and role not in overruled}
    loaded: dict[str, Any] = {}
    choices = {}
    for role in ROLES:
        # The judge follows the optimizer, and both roles the label.
        sources = [role, "optimizer"] if role == "judge" else [role]
        key = next((f"{each}_backend" for each in sources if each in named), "backend")
        node = nodes.get(key)
        set_by = node if node is not None and not node.empty else None
        draft.origins[f"model.{role}_backend"] = str(set_by.place if set_by is not None else DEFAULT)
        where = f"{set_by.where if set_by is not None else DEFAULT}: model.{key}"
        name = getattr(plan, role)
        if name not in loaded:
            loaded[name] = _load(draft, name, where)
        if loaded[name] is not None:
            like_optimizer = plan.judge == plan.optimizer
            choices[role] = _Resolver(draft, role, name, where, like_optimizer).choose(*loaded[name])
    _warn(draft, model, plan, named, label)
    return choices


def _warn(draft: Draft, model: ModelSettings, plan: Any, named: dict[str, Node], label: Node | None) -> None:
    pinned = {"optimizer", "target"} <= set(named) and backend_name(model.backend) not in (plan.optimizer, plan.target)
    if pinned and label is not None and not label.empty and label.place.depth <= named["target"].place.depth:
        draft.warnings.append(
            f"{label.where}: model.backend: has no effect, since model.optimizer_backend and model.target_backend "
            f"name others"
        )
    nodes = draft.section("model")
    for role in ("optimizer", "target"):
        written, node = nodes.get(role), named.get(role) or label
        if written is None or written.empty or node is None or node.place.depth >= written.place.depth:
            continue
        draft.warnings.append(
            f"{written.where}: model.{role}: the model {written.value!r} is kept although {node.where} names the "
            f"backend {getattr(plan, role)}; set model.{role} too if that is not meant"
        )


def _load(draft: Draft, name: str, where: str) -> tuple[Manifest, type | None] | None:
    from skillopt_kernel.config.owners import load_settings

    try:
        return load_settings("backend", name, where)
    except SkillOptError as error:
        draft.problems.append(str(error))
        return None


class _Resolver:
    """Resolves one role's settings."""

    def __init__(self, draft: Draft, role: str, name: str, where: str, like_optimizer: bool) -> None:
        self.draft, self.role, self.name, self.where = draft, role, name, where
        self.roles = [role, "optimizer"] if role == "judge" and like_optimizer else [role]
        self.nodes = draft.section("model")
        self.variables: list[str] = []

    def choose(self, manifest: Manifest, owner: type | None) -> BackendChoice:
        values: dict[str, Any] = {}
        for name, field in fields_of(owner).items() if owner is not None else ():
            found = self.find(manifest.prefix + name, field)
            if found is not None:
                values[name] = self.take(found, field, manifest.prefix + name)
        model = self.model(values, owner)
        if owner is None:
            return BackendChoice(self.role, self.name, model, None, self.where, tuple(self.variables), manifest.prefix)
        if model is not None and "model" in fields_of(owner):
            values["model"] = model
        settings = self.draft.structurer.build(owner, values, self.where)
        if settings is not None and model is None:
            model = getattr(settings, "model", None) or None
        return BackendChoice(self.role, self.name, model, settings, self.where, tuple(self.variables), manifest.prefix)

    def find(self, key: str, field: attrs.Attribute[Any]) -> Node | None:
        """The node of one setting, the nearest that is set; each key on the way is marked as used."""
        found: Node | None = None
        for name in (*(f"{role}_{key}" for role in self.roles), key):
            node = self.nodes.get(name)
            if node is None:
                continue
            self.draft.origins.setdefault(f"model.{name}", str(node.place))
            if found is None and not node.empty and not (is_secret(field) and node.value == REDACTED):
                found = node
        if found is None:
            variable = field.metadata.get("env") or key.upper()
            found = self.from_environment([*(f"{role.upper()}_{variable}" for role in self.roles), variable])
        self.draft.origins[f"model.{self.role}_{key}"] = str(found.place if found is not None else DEFAULT)
        return found

    def from_environment(self, names: list[str]) -> Node | None:
        """The first environment variable that is set and not empty, as a node."""
        from skillopt_kernel.config.reading import read_text

        for name in names:
            text = self.draft.environ.get(name, "")
            if not text.strip():
                continue
            place = Place("environment", f"environment variable {name}")
            self.variables.append(name)
            try:
                value = read_text(text, place).value
            except ConfigError:
                value = text
            return Node(text if isinstance(value, dict | tuple) else value, place, text)
        return None

    def take(self, node: Node, field: attrs.Attribute[Any], key: str) -> Any:
        full = f"model.{self.role}_{key}" if f"{self.role}_{key}" in self.nodes else f"model.{key}"
        value = self.draft.structurer.value(node, field, full)
        if is_secret(field) and isinstance(value, str) and value:
            self.draft.note_secret(full, node, value)
        return resolve_paths(self.draft, value, node, field, f"model.{self.role}_{key}")

    def model(self, values: dict[str, Any], owner: type | None) -> str | None:
        """The model's name: the role's key, the backend's own setting, the variable `<ROLE>_DEPLOYMENT`."""
        for role in self.roles:
            node = self.nodes.get(role)
            if node is not None and not node.empty:
                self.draft.origins[f"model.{self.role}"] = str(node.place)
                return str(node.text if node.text is not None else node.value)
        own = values.get("model")
        if isinstance(own, str) and own:
            return own
        node = self.from_environment([f"{role.upper()}_DEPLOYMENT" for role in self.roles])
        if node is not None:
            self.draft.origins[f"model.{self.role}"] = str(node.place)
            return str(node.text)
        return None
