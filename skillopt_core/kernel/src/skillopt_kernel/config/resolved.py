"""The resolved configuration: typed sections, the drivers chosen, and where every value came from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import attrs
from attrs import field, fields, frozen

from skillopt_kernel.config import schema
from skillopt_kernel.config.fields import is_secret, is_secret_name
from skillopt_kernel.config.tree import REDACTED
from skillopt_kernel.errors import ConfigError

_FREE_ENDINGS = ("base_url", "endpoint", "timeout", "timeout_seconds", "workers", "concurrency", "retries")


@frozen
class DriverChoice:
    """A driver that the configuration names, with its settings (`None` when it has none) and where it is named.

    The executor's name may be "auto".
    """

    kind: str
    name: str
    settings: Any = field(repr=False)
    where: str


@frozen
class BackendChoice:
    """The backend of one role. `model` is `None` where only the backend knows."""

    role: str
    name: str
    model: str | None
    settings: Any = field(repr=False)
    where: str
    prefix: str = ""


@frozen
class Config:
    """A configuration as a run uses it.

    name         the file's stem or the packaged name; `path` the file, `None` for a mapping
    prompts      prompt -> its file
    drivers      kind ("env", "gate", "scheduler", "update", "executor") -> choice; no "env" while none is named
    backends     role ("optimizer", "target", "judge") -> choice
    plugins      hook plugin -> choice, for those named by an installed name
    credentials  every secret value, to be replaced wherever it would be shown or stored
    origins      dotted key -> where its value came from
    unused       dotted key -> why nothing in use reads it
    """

    name: str
    path: Path | None
    train: schema.TrainSettings
    gradient: schema.GradientSettings
    optimizer: schema.OptimizerSettings
    evaluation: schema.EvaluationSettings
    env: schema.EnvSettings
    model: schema.ModelSettings
    budget: schema.BudgetSettings
    hooks: schema.HooksSettings = field(repr=False)
    execution: schema.ExecutionSettings
    prompts: Mapping[str, Path]
    drivers: Mapping[str, DriverChoice]
    backends: Mapping[str, BackendChoice]
    plugins: Mapping[str, DriverChoice]
    credentials: frozenset[str] = field(repr=False)
    origins: Mapping[str, str] = field(repr=False)
    unused: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...]
    _written: Mapping[str, str] = field(repr=False)
    _rebuilt: Callable[[Mapping[str, Any], str], Config] = field(repr=False, eq=False)

    def driver(self, kind: str) -> DriverChoice:
        """The driver of a kind. Raises `ConfigError` when the configuration names no environment."""
        if kind not in self.drivers:
            raise ConfigError(
                "env.name is not set: name the environment to train on, in the file or with -o env.name=NAME "
                "(`skillopt plugins` lists what is installed)"
            )
        return self.drivers[kind]

    def place_of(self, key: str) -> str:
        """A key with its file and line, or those of the nearest key above it, as messages begin."""
        above = key
        while above and above not in self.origins:
            above = above.rpartition(".")[0]
        return f"{self.origins[above]}: {key}" if above else key

    def written(self, path: Path) -> str:
        """A path as it was written, which says the same on another machine."""
        return self._written.get(str(path), str(path))

    def with_overrides(self, overrides: Mapping[str, Any], *, origin: str) -> Config:
        """This configuration with further values, `{"train.batch_size": 20}`. Raises `ConfigError`.

        `origin` says who gives them, such as "plugin critic"; it stands in `origins` and in messages.
        """
        return self._rebuilt(overrides, origin)

    def as_dict(self) -> dict[str, Any]:
        """All values by section, as JSON; credentials stand as "[redacted]". Can be loaded again."""
        return self._sections(lambda _: True, {})

    def fingerprint(self) -> dict[str, Any]:
        """What can change a result, as JSON.

        Left out is what is free on a resume: workers, timeouts, endpoints, credentials, output folders, and the
        paths of data and start skill, whose contents the run directory compares itself. `train.num_epochs` is in
        it; who compares may allow more where the schedule does not depend on it. Prompts are named by content.
        """
        sections = self._sections(_decisive, self._written)
        sections["prompts"] = {
            name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for name, path in self.prompts.items()
        }
        return {name: section for name, section in sections.items() if section}

    def _sections(self, wanted: Callable[[attrs.Attribute[Any]], bool], written: Mapping[str, str]) -> dict[str, Any]:
        """The `wanted` fields by section; paths as they were `written`, where that is known."""

        def values(settings: Any, prefix: str = "") -> dict[str, Any]:
            known = fields(type(settings)) if settings is not None else ()
            kept = [field for field in known if field.init and wanted(field)]
            return {prefix + field.name: _jsonable(getattr(settings, field.name), field, written) for field in kept}

        sections = {name: values(getattr(self, name)) for name in schema.SECTIONS}
        del sections["model"]["backend"]
        for kind, choice in self.drivers.items():
            sections[DRIVER_SECTIONS[kind]] |= values(choice.settings)
        for role, backend in self.backends.items():
            sections["model"] |= {f"{role}_backend": backend.name, role: backend.model}
            sections["model"] |= values(backend.settings, f"{role}_{backend.prefix}")
        return sections | {"prompts": {name: str(path) for name, path in self.prompts.items()}}


DRIVER_KEYS = {
    "env": "env.name",
    "gate": "evaluation.gate_metric",
    "scheduler": "optimizer.lr_scheduler",
    "update": "optimizer.skill_update_mode",
    "executor": "execution.executor",
}
"""Kind of driver -> the key that names it. The key's section holds the driver's settings."""

DRIVER_SECTIONS = {kind: key.partition(".")[0] for kind, key in DRIVER_KEYS.items()}


def _decisive(field: attrs.Attribute[Any]) -> bool:
    return not (is_secret(field) or field.metadata.get("free") or field.name.endswith(_FREE_ENDINGS))


def _jsonable(value: Any, field: attrs.Attribute[Any] | str, written: Mapping[str, str]) -> Any:
    """A settings value as JSON: paths as text, tuples as lists, credentials redacted. `field`: the field or key.

    A field that does not count when two values are compared (`eq=False`) is no part of the value.
    """
    if value and (is_secret_name(field) if isinstance(field, str) else is_secret(field)):
        return REDACTED
    if attrs.has(type(value)):
        return {one.name: _jsonable(getattr(value, one.name), one, written) for one in fields(type(value)) if one.eq}
    if isinstance(value, Mapping):
        return {str(name): _jsonable(item, str(name), written) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_jsonable(item, "", written) for item in value]
    return written.get(str(value), str(value)) if isinstance(value, Path) else value
