"""Training, evaluation and `config show` play the roles with the same backends, because one function resolves them.

Each case is one that the earlier system resolved differently in one of its entry points. Who really answered is read
from the keys with which a loopback server was asked: Claude asks it through a stand-in for its program.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from served_world import Served
from skillopt_commands.config import config as command
from skillopt_commands.evaluation import evaluate
from skillopt_kernel import train
from skillopt_testkit.programs import stand_in
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

ROLES = ("optimizer", "target", "judge")
KEYS = {
    "openai_chat": "openai-key-0123456789",
    "qwen_chat": "qwen-key-0123456789",
    "claude_chat": "claude-key-0123456789",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A small project in the working directory; its file pins no backend."""
    project = Project.make(tmp_path / "project", train=6, selection=4, test=2)
    monkeypatch.chdir(project.folder)
    sections = yaml.safe_load((project.folder / "config.yaml").read_text("utf-8"))
    sections["train"]["num_epochs"], sections["evaluation"] = 1, {"eval_test": False}
    sections["model"] = {"optimizer": "optimizer", "target": "target"}
    project.write("base.yaml", json.dumps(sections))
    return project


@pytest.fixture
def server(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    """The project's world behind HTTP, where the environment sends each backend with a key of its own."""
    program = stand_in(project.folder / "programs", "claude")
    with ChatServer(Served.of(project)) as server:
        for name, value in {
            "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEYS["openai_chat"], "AZURE_OPENAI_ENDPOINT": "",
            "QWEN_CHAT_BASE_URL": server.url, "QWEN_CHAT_API_KEY": KEYS["qwen_chat"],
            "ANTHROPIC_BASE_URL": server.root, "ANTHROPIC_API_KEY": KEYS["claude_chat"],
            "CLAUDE_CLI_BIN": str(program),
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


def asked(server: ChatServer) -> set[str]:
    """What really answered, as "role backend": the model tells the role, the key the backend."""
    names = {key: name for name, key in KEYS.items()}

    def key(headers: Mapping[str, str]) -> str:
        return headers.get("x-api-key") or headers["authorization"].removeprefix("Bearer ")

    return {f"{each.body['model']} {names[key(each.headers)]}" for each in server.requests}


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
    assert asked(server) == {f"optimizer {optimizer}", f"target {target}"}


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
