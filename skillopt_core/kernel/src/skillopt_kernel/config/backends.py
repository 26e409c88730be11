"""The backend of each role with its settings: the same resolution for every backend.

For each field, the first that is set: the role's key in the configuration, the shared key, the role's
environment variable, the shared variable, the default. Unset, null and an empty text mean "ask further down".
The judge asks after its own key also the optimizer's, while both have the same backend.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from skillopt_kernel.config import known
from skillopt_kernel.config.draft import Draft, Owner
from skillopt_kernel.config.fields import variable_of
from skillopt_kernel.config.reading import read_value
from skillopt_kernel.config.resolved import BackendChoice
from skillopt_kernel.config.schema import ModelSettings
from skillopt_kernel.config.structure import fields_of
from skillopt_kernel.config.tree import DEFAULT, Node, Place
from skillopt_kernel.models.roles import ROLES, plan_roles


def resolve_backends(draft: Draft, model: ModelSettings) -> dict[str, BackendChoice]:
    """The choices of the three roles. A backend that cannot be loaded is a problem and leaves its role out."""
    written = {name: node for name, node in draft.section("model").items() if not node.empty}
    label = written.get("backend")
    # A label that stands nearer to the user than a role's key overrules it, unless the user's own file has the key:
    # what a base says of the roles is a default, what the user says of them is meant.
    depth = max(label.place.depth if label is not None else DEFAULT.depth, 0)
    pins = {role: node for role in ROLES if (node := written.get(f"{role}_backend")) is not None}
    explicit = {role for role, node in pins.items() if node.place.depth <= depth or role == "judge"}
    plan = plan_roles(model.backend, model.optimizer_backend, model.target_backend, model.judge_backend, explicit)
    choices = {}
    for role, name in plan.backends.items():
        says = plan.said_by[role]
        node = label if says == "label" else pins[says]
        draft.origins[f"model.{role}_backend"] = str(DEFAULT if node is None else node.place)
        where = draft.where("model.backend" if says == "label" else f"model.{says}_backend")
        owner = draft.load("backend", name, where)
        if owner is not None:
            asked = [role, "optimizer"] if role == "judge" and name == plan.backends["optimizer"] else [role]
            choices[role] = _Role(draft, asked).choose(owner, where)
        _doubt_model(draft, role, name)
    # A label that is only inherited was not meant by the user, who is not to be bothered with it.
    unheard = {"optimizer", "target"} <= explicit and known.backend_name(model.backend) not in plan.backends.values()
    if unheard and label is not None and label.place.depth <= 0:
        draft.warnings.append(
            f"{label.where}: model.backend: has no effect, since model.optimizer_backend and model.target_backend "
            f"name others"
        )
    return choices


def _doubt_model(draft: Draft, role: str, backend: str) -> None:
    """Warn of a model that the earlier system's files named for every backend. It is kept: a user may mean it."""
    node = draft.section("model").get(role)
    if node is None or not node.place.line or backend not in known.OTHER_MODELS:
        return
    if str(node.value) in known.EARLIER_MODELS:
        draft.warnings.append(
            f"{node.where}: {node.alias or f'model.{role}'}: {node.value!r} is kept, but {backend} hardly serves it; "
            f"earlier versions had this default and replaced it. Delete the line for the default of {backend}"
        )


class _Role:
    """Finds what is set for one role. `asked`: the roles whose keys and variables hold for it, its own first."""

    def __init__(self, draft: Draft, asked: Sequence[str]) -> None:
        self.draft, self.role, self.asked = draft, asked[0], asked

    def choose(self, owner: Owner, where: str) -> BackendChoice:
        manifest, settings = owner
        values = {}
        for name, field in fields_of(settings).items():
            key, variable = manifest.prefix + name, variable_of(field, manifest.prefix)
            found = self.written([f"{each}_{key}" for each in self.asked] + [key])
            if found is None:
                forms = ("{}_" + variable, *field.metadata.get("role_env", ()))
                names = [form.format(each.upper()) for each in self.asked for form in forms]
                found = self.variable([*names, variable, *field.metadata.get("more_env", ())])
            full = f"model.{self.role}_{key}"
            self.draft.origins[full] = str(DEFAULT if found is None else found.place)
            if found is not None:
                own = f"{self.role}_{key}" in self.draft.section("model")
                values[name] = self.draft.setting(found, field, full if own else f"model.{key}")
        model = self.model(values.get("model"))
        if model is not None and "model" in fields_of(settings):
            values["model"] = model
        made = None if settings is None else self.draft.build(settings, values, where)
        model = model or getattr(made, "model", None) or None
        return BackendChoice(self.role, manifest.name, model, made, where, manifest.prefix)

    def model(self, setting: object) -> str | None:
        """The model's name: the role's key, the backend's own setting, the variable `<ROLE>_DEPLOYMENT`."""
        node = self.written(self.asked)
        if node is None and isinstance(setting, str) and setting:
            return setting
        node = node or self.variable([f"{each.upper()}_DEPLOYMENT" for each in self.asked])
        if node is None:
            return None
        self.draft.origins[f"model.{self.role}"] = str(node.place)
        return str(node.written)

    def written(self, names: Sequence[str]) -> Node | None:
        """The first of these keys of `model` that is set; each that is there is marked as used."""
        nodes = {name: node for name in names if (node := self.draft.section("model").get(name)) is not None}
        for name, node in nodes.items():
            self.draft.origins.setdefault(f"model.{name}", str(node.place))
        return next((node for node in nodes.values() if not node.empty), None)

    def variable(self, names: Sequence[str]) -> Node | None:
        """The first environment variable that is set and not empty."""
        name = next((name for name in names if self.draft.environ.get(name, "").strip()), None)
        if name is None:
            return None
        text = self.draft.environ[name]
        return evolve(read_value(text, Place(f"environment variable {name}")), text=text)
