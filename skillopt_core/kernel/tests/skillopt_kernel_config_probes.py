"""An installed distribution of drivers with settings of every type, for the tests of the configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from skillopt_kernel.config import load_config
from skillopt_kernel.config.resolved import Config
from skillopt_kernel.errors import ConfigError

_PLUGINS = {
    "env": ("probe_env", "EnvSettings", ""),
    "gate": ("probe_gate", "GateSettings", ""),
    "scheduler": ("probe_scheduler", "RateSettings", ""),
    "update": ("probe_update", "", ""),
    "backend": ("probe_chat", "ChatSettings", "probe_chat_"),
}
_SETTINGS = '''
from pathlib import Path
from typing import Any, Literal, Mapping
from attrs import field, frozen
from skillopt_kernel.config import at_least, between, option

@frozen
class EnvSettings:
    max_turns: int = option(1, "turns", at_least(1))
    share: float = option(0.5, "a share", between(0, 1))
    folders: tuple[Path, ...] = option((), "folders")
    tags: list[str] = option(list, "tags")
    detail: Literal["auto", "low", 3] = option("auto", "detail")
    words: str | tuple[str, ...] | None = option(None, "words")
    table: Mapping[str, int] = option(dict, "a table")
    switch: bool | None = option(None, "a switch")

@frozen
class GateSettings:
    gate_weight: float = option(0.5, "weight", between(0, 1))

@frozen
class RateSettings:
    learning_rate: int = option(4, "edits", at_least(0))
    floor: int = option(2, "the least")
    def __attrs_post_init__(self):
        if self.floor > self.learning_rate:
            raise ValueError("floor must not be above learning_rate")

@frozen
class ChatSettings:
    """How to reach it.

    base_url   address of the endpoint
    api_key    key
    """
    base_url: str = "http://localhost"
    api_key: str = ""
    model: str = "probe-model"
    timeout_seconds: float = 300.0
    temperature: float | None = None
    verbose: bool = False
    region: str = option("", "region", env="PROBE_PLACE")
    licence: str = option("", "licence", env="PROBE_LICENCE", secret=True)

@frozen
class ToolSettings:
    path: str = ""
    sandbox: str = ""

@frozen
class HookSettings:
    density: float = option(0.05, "density", between(0, 1))
    hook_token: str = ""
'''

DRIVERS = """
env: {name: probe_env}
evaluation: {gate_metric: probe_gate}
optimizer: {lr_scheduler: probe_scheduler, skill_update_mode: probe_update}
model: {backend: probe_chat}
"""
"""The drivers of the probe distribution, as a base that every test file inherits."""


def install_probes(install: Callable[..., Path], manifest: Callable[..., str]) -> Path:
    entries = {f"skillopt.{kind}s {name}": f"acme_probes.{name}:plugin" for kind, (name, _, _) in _PLUGINS.items()}
    entries |= {
        "skillopt.backends probe_tool": "acme_probes.probe_tool:plugin",
        "skillopt.hooks probe_hook": "acme_probes.probe_hook:plugin",
    }
    files = {"acme_probes/__init__.py": "", "acme_probes/settings.py": _SETTINGS}
    files["acme_probes/configs/probes.yaml"] = DRIVERS
    files["acme_probes/data/start.md"] = "Answer briefly.\n"
    for kind, (name, settings, prefix) in _PLUGINS.items():
        path = f"acme_probes.settings:{settings}" if settings else ""
        files[f"acme_probes/{name}.py"] = manifest(kind, name, settings=path, prefix=prefix)
    files["acme_probes/probe_tool.py"] = manifest(
        "backend", "probe_tool", settings="acme_probes.settings:ToolSettings", prefix="probe_tool_"
    )
    files["acme_probes/probe_hook.py"] = manifest(
        "hook", "probe_hook", settings="acme_probes.settings:HookSettings", keys=("evaluation.use_probe",)
    )
    return install("acme-probes 1.0", entries, files)


class Folder:
    """A folder of configuration files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
        return path

    def load(self, text: str, *overrides: str, environ: Mapping[str, str] | None = None) -> Config:
        """Load `run.yaml` of this text, over the probes' base."""
        self.write("run.yaml", "_base_: probes\n" + text)
        return load_config("run.yaml", overrides, environ=environ or {})

    def problems(self, text: str, *overrides: str, **more: Any) -> tuple[str, ...]:
        try:
            self.load(text, *overrides, **more)
        except ConfigError as error:
            return error.problems
        raise AssertionError("the configuration was accepted")
