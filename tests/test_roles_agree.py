"""Training, evaluation and `config show` play the roles with the same backends, because one function resolves them.

Each case is one that the earlier system resolved differently in one of its entry points. Who really answered is read
from the keys with which a loopback server was asked. `claude_chat` has no distribution of its own yet: a stand-in under
its name answers as the simulated backend does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from attrs import frozen
from click.testing import CliRunner
from served_world import Served
from skillopt_backend_simulated.settings import SimulatedSettings
from skillopt_commands.config import config as command
from skillopt_commands.evaluation import evaluate
from skillopt_kernel import PLUGIN_API, DriverContext, Manifest, train
from skillopt_kernel.plugins.discovery import installed
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

ROLES = ("optimizer", "target", "judge")
KEYS = {"openai_chat": "openai-key-0123456789", "qwen_chat": "qwen-key-0123456789"}

claude_chat = Manifest(
    kind="backend", name="claude_chat", api=PLUGIN_API, summary="the simulated backend under another name",
    factory="test_roles_agree:make_claude_chat", section="model", prefix="claude_chat_",
)  # fmt: skip


class StandIn:
    """The simulated backend; which role it was opened for stands in `asked.txt`."""

    def __init__(self, context: DriverContext) -> None:
        assert context.driver is not None
        self.backend = context.driver("backend", "simulated", SimulatedSettings(world=Path("world.yaml")))
        self.capabilities = self.backend.capabilities

    def open_chat(self, role: str) -> Any:
        return Noting(self.backend.open_chat(role), f"{role} claude_chat\n")

    def open_agent(self, role: str) -> Any:
        return self.backend.open_agent(role)

    def endpoint(self, role: str) -> str:
        return "claude_chat"

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


def make_claude_chat(settings: None, context: DriverContext) -> StandIn:
    return StandIn(context)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A small project in the working directory; its file pins no backend. The stand-in is installed."""
    if "claude_chat" in {plugin.name for plugin in installed("backend")}:
        pytest.skip("a distribution of the stand-in's name is installed here, beside which it cannot be")
    project = Project.make(tmp_path / "project", train=6, selection=4, test=2)
    project.write("site/stand_in-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: stand-in\nVersion: 1.0\n")
    entries = "[skillopt.backends]\nclaude_chat = test_roles_agree:claude_chat\n"
    project.write("site/stand_in-1.0.dist-info/entry_points.txt", entries)
    monkeypatch.syspath_prepend(project.folder / "site")
    monkeypatch.chdir(project.folder)
    sections = yaml.safe_load((project.folder / "config.yaml").read_text("utf-8"))
    sections["train"]["num_epochs"], sections["evaluation"] = 1, {"eval_test": False}
    sections["model"] = {"optimizer": "optimizer", "target": "target"}
    project.write("base.yaml", json.dumps(sections))
    return project


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """The project's world behind HTTP, where the environment sends each backend with a key of its own."""
    with ChatServer(Served.of(project)) as server:
        for name, value in {
            "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEYS["openai_chat"], "AZURE_OPENAI_ENDPOINT": "",
            "QWEN_CHAT_BASE_URL": server.url, "QWEN_CHAT_API_KEY": KEYS["qwen_chat"],
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        yield server


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


def asked(project: Project, server: ChatServer) -> set[str]:
    """What really answered, as "role backend": the model tells the role, the key the backend."""
    names = {f"Bearer {key}": name for name, key in KEYS.items()}
    found = {f"{each.body['model']} {names[each.headers['authorization']]}" for each in server.requests}
    noted = project.folder / "asked.txt"
    return found | set(noted.read_text("utf-8").splitlines() if noted.exists() else ())


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
    project: Project, server: ChatServer, model: dict[str, Any], overrides: Sequence[str], optimizer: str, target: str
) -> None:
    expected = {"optimizer": optimizer, "target": target, "judge": optimizer}
    assert resolved(project, model, overrides) == dict.fromkeys(("train", "eval", "show"), expected)
    assert asked(project, server) == {f"optimizer {optimizer}", f"target {target}"}


def test_a_roles_own_settings_reach_it_in_training_and_evaluation(project: Project, server: ChatServer) -> None:
    """The evaluation ignored the optimizer's own Qwen keys."""
    model = {"optimizer_backend": "qwen", "target_backend": "qwen", "qwen_chat_temperature": 0.9,
             "optimizer_qwen_chat_temperature": 0.4}  # fmt: skip
    resolved(project, model, [])
    sent = {(each.body["model"], each.body["temperature"]) for each in server.requests}
    assert sent == {("optimizer", 0.4), ("target", 0.9)}
    kept = [project.json(f"{folder}/config.json")["model"] for folder in ("trained", "evaluated")]
    assert [each["optimizer_qwen_chat_temperature"] for each in kept] == [0.4, 0.4]


@pytest.mark.parametrize("label", ["openai_compatible", "compat", "openai-compatible", "openai_compatible_chat"])
def test_the_label_openai_compatible_is_known_everywhere(project: Project, label: str) -> None:
    """Neither of the earlier scripts took it on the command line."""
    with ChatServer(lambda body: Reply(f"<answer>{body['model']}</answer>")) as server:
        model = {"openai_compatible_base_url": server.url, "optimizer": "wise", "target": "quick"}
        found = resolved(project, model, [f"model.backend={label}"])
        names = {received.body["model"] for received in server.requests}
    assert found == dict.fromkeys(("train", "eval", "show"), dict.fromkeys(ROLES, "openai_compatible"))
    assert names == {"wise", "quick"}
