"""Training, evaluation and `config show` play the roles with the same backends, because one function resolves them.

Each case is one that the earlier system resolved differently in one of its entry points. Who really answered is read
from what the backends were asked. The backends named here have no distributions of their own yet: stand-ins under
their names answer as the simulated one does.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from attrs import field, frozen
from click.testing import CliRunner
from skillopt_backend_simulated.settings import SimulatedSettings
from skillopt_commands.config import config as command
from skillopt_commands.evaluation import evaluate
from skillopt_kernel import PLUGIN_API, DriverContext, Manifest, train
from skillopt_kernel.plugins.discovery import installed
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

ROLES = ("optimizer", "target", "judge")
PREFIXES = {"openai_chat": "azure_openai_", "claude_chat": "claude_chat_", "qwen_chat": "qwen_chat_"}


@frozen
class StandInSettings:
    """What the stand-ins may be told.

    timeout_seconds  a number that a role may have of its own
    """

    timeout_seconds: float = field(default=300.0, metadata={"free": True})


def _manifest(name: str) -> Manifest:
    return Manifest(
        kind="backend", name=name, api=PLUGIN_API, summary="the simulated backend under another name", section="model",
        factory=f"test_roles_agree:make_{name}", settings="test_roles_agree:StandInSettings", prefix=PREFIXES[name],
    )  # fmt: skip


class StandIn:
    """The simulated backend; which role it was opened for, with which timeout, stands in `asked.txt`."""

    def __init__(self, name: str, settings: StandInSettings, context: DriverContext) -> None:
        assert context.driver is not None
        self.backend = context.driver("backend", "simulated", SimulatedSettings(world=Path("world.yaml")))
        self.capabilities, self.name, self.seconds = self.backend.capabilities, name, settings.timeout_seconds

    def open_chat(self, role: str) -> Any:
        return Noting(self.backend.open_chat(role), f"{role} {self.name} {self.seconds:g}\n")

    def open_agent(self, role: str) -> Any:
        return self.backend.open_agent(role)

    def endpoint(self, role: str) -> str:
        return self.name

    def check(self, role: str) -> list[Any]:
        return []


@frozen
class Noting:
    chat: Any
    line: str
    model = "simulated"

    def complete(self, request: Any) -> Any:
        with Path("asked.txt").open("a", encoding="utf-8") as file:
            file.write(self.line)
        return self.chat.complete(request)


openai_chat, claude_chat, qwen_chat = (_manifest(name) for name in PREFIXES)


def make_openai_chat(settings: StandInSettings, context: DriverContext) -> StandIn:
    return StandIn("openai_chat", settings, context)


def make_claude_chat(settings: StandInSettings, context: DriverContext) -> StandIn:
    return StandIn("claude_chat", settings, context)


def make_qwen_chat(settings: StandInSettings, context: DriverContext) -> StandIn:
    return StandIn("qwen_chat", settings, context)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A small project in the working directory; its file pins no backend. The stand-ins are installed."""
    if {plugin.name for plugin in installed("backend")} & set(PREFIXES):
        pytest.skip("a distribution of one of these names is installed here, beside which no stand-in can be")
    project = Project.make(tmp_path / "project", train=6, selection=4, test=2)
    entries = "".join(f"{name} = test_roles_agree:{name}\n" for name in PREFIXES)
    project.write("site/stand_ins-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: stand-ins\nVersion: 1.0\n")
    project.write("site/stand_ins-1.0.dist-info/entry_points.txt", f"[skillopt.backends]\n{entries}")
    monkeypatch.syspath_prepend(project.folder / "site")
    monkeypatch.chdir(project.folder)
    sections = yaml.safe_load((project.folder / "config.yaml").read_text("utf-8"))
    sections["train"]["num_epochs"], sections["evaluation"] = 1, {"eval_test": False}
    del sections["model"]
    project.write("base.yaml", json.dumps(sections))
    return project


def resolved(project: Project, model: dict[str, Any], overrides: Sequence[str]) -> dict[str, dict[str, str]]:
    """Entry point -> role -> backend, of a training run, an evaluation and `config show`."""
    project.write("run.yaml", json.dumps({"_base_": "base.yaml", "model": model}))
    trained = train("run.yaml", overrides, out="trained", fresh=True)
    evaluated = evaluate("run.yaml", "skill.md", "train", overrides, out="evaluated")
    shown = CliRunner().invoke(command, ["show", "run.yaml", *(f"-o{text}" for text in overrides)])
    assert shown.exit_code == 0, shown.output
    kept = {
        "train": project.json(Path(trained.folder) / "config.json"),
        "eval": project.json(Path(evaluated.folder) / "config.json"),
        "show": yaml.safe_load(shown.output),
    }
    assert kept["train"]["model"] == kept["eval"]["model"]
    return {entry: {role: each["model"][f"{role}_backend"] for role in ROLES} for entry, each in kept.items()}


def asked(project: Project) -> set[str]:
    """What really answered, as "role backend timeout"."""
    return set((project.folder / "asked.txt").read_text("utf-8").splitlines())


@pytest.mark.parametrize(
    ("model", "overrides", "optimizer", "target"),
    [
        # The trainer resolved a second time, without the role that the command line names.
        ({}, ["model.backend=claude", "model.optimizer_backend=openai_chat"], "openai_chat", "claude_chat"),
        ({"optimizer_backend": "openai_chat"}, ["model.backend=claude"], "openai_chat", "claude_chat"),
        # The evaluation knew nothing of qwen_chat, neither in the file nor as a label on the command line.
        ({"backend": "qwen_chat"}, [], "openai_chat", "qwen_chat"),
        ({}, ["model.backend=qwen"], "openai_chat", "qwen_chat"),
        ({"backend": "claude_chat", "target_backend": "qwen"}, [], "claude_chat", "qwen_chat"),
        # The legacy setter raised for the labels that name no role's backend.
        ({"backend": "azure"}, [], "openai_chat", "openai_chat"),
        ({"backend": "openai"}, [], "openai_chat", "openai_chat"),
    ],
)
def test_every_entry_point_resolves_alike(
    project: Project, model: dict[str, Any], overrides: Sequence[str], optimizer: str, target: str
) -> None:
    expected = {"optimizer": optimizer, "target": target, "judge": optimizer}
    assert resolved(project, model, overrides) == dict.fromkeys(("train", "eval", "show"), expected)
    assert asked(project) == {f"optimizer {optimizer} 300", f"target {target} 300"}


def test_a_roles_own_settings_reach_it_in_training_and_evaluation(project: Project) -> None:
    """The evaluation ignored the optimizer's own Qwen keys."""
    model = {"optimizer_backend": "qwen", "target_backend": "qwen", "qwen_chat_timeout_seconds": 9,
             "optimizer_qwen_chat_timeout_seconds": 7}  # fmt: skip
    resolved(project, model, [])
    assert asked(project) == {"optimizer qwen_chat 7", "target qwen_chat 9"}
    kept = [project.json(f"{folder}/config.json")["model"] for folder in ("trained", "evaluated")]
    assert [each["optimizer_qwen_chat_timeout_seconds"] for each in kept] == [7, 7]


@pytest.mark.parametrize("label", ["openai_compatible", "compat", "openai-compatible", "openai_compatible_chat"])
def test_the_label_openai_compatible_is_known_everywhere(project: Project, label: str) -> None:
    """Neither of the earlier scripts took it on the command line."""
    with ChatServer(lambda body: Reply(f"<answer>{body['model']}</answer>")) as server:
        model = {"openai_compatible_base_url": server.url, "optimizer": "wise", "target": "quick"}
        found = resolved(project, model, [f"model.backend={label}"])
        names = {received.body["model"] for received in server.requests}
    assert found == dict.fromkeys(("train", "eval", "show"), dict.fromkeys(ROLES, "openai_compatible"))
    assert names == {"wise", "quick"}
