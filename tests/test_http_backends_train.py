"""Every HTTP backend trains: `skillopt train ... -o model.backend=LABEL` on a simulated world behind a loopback server.

What proves it is what the server received: who asked, at which path, in which protocol, with which key.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from served_world import Served
from skillopt_testkit.project import KINDS, Project, world
from skillopt_testkit.servers import ChatServer, Received

SURE = "{insight: 1.0, harmful: 0.0, distractors: 0.0, duplicates: 0.0, bad_anchors: 0.0, merging: 1.0, ranking: 1.0}"
OPENAI, QWEN, MINIMAX, COMPATIBLE, AZURE = (
    f"{name}-key-0123456789abcdef" for name in ("openai", "qwen", "minimax", "compatible", "azure")
)
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
DEPLOYED = "/openai/deployments/{}/chat/completions?api-version=2024-12-01-preview"


def variables(server: ChatServer) -> dict[str, str]:
    """What an operator's environment says of every backend at once."""
    return {
        "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": OPENAI,
        "OPENAI_COMPATIBLE_BASE_URL": server.url, "OPENAI_COMPATIBLE_API_KEY": COMPATIBLE,
        "QWEN_CHAT_BASE_URL": server.url, "QWEN_CHAT_API_KEY": QWEN, "QWEN_CHAT_THINKING_MODE": "disabled",
        "MINIMAX_BASE_URL": server.url, "MINIMAX_API_KEY": MINIMAX,
        "AZURE_OPENAI_ENDPOINT": "", "AZURE_OPENAI_API_KEY": "",
    }  # fmt: skip


def seen(server: ChatServer) -> dict[str, set[tuple[str, str]]]:
    """Model -> the path and the key of its requests."""

    def key(received: Received) -> str:
        return received.headers.get("api-key") or received.headers["authorization"].removeprefix("Bearer ")

    return {
        model: {(each.path, key(each)) for each in server.requests if each.body["model"] == model}
        for model in ("optimizer", "target")
    }


@pytest.mark.parametrize(
    ("label", "model", "environ", "optimizer", "target"),
    [
        ("openai", {}, {}, (CHAT, OPENAI), (CHAT, OPENAI)),
        ("openai_chat", {"openai_chat_base_model": "gpt-5.5"}, {}, (RESPONSES, OPENAI), (RESPONSES, OPENAI)),
        ("azure_openai", {}, {"AZURE_OPENAI_ENDPOINT": "{root}", "AZURE_OPENAI_API_KEY": AZURE},
         (DEPLOYED.format("optimizer"), AZURE), (DEPLOYED.format("target"), AZURE)),
        ("compat", {}, {}, (CHAT, COMPATIBLE), (CHAT, COMPATIBLE)),
        ("qwen", {}, {}, (CHAT, OPENAI), (CHAT, QWEN)),
        ("minimax_chat", {"optimizer_backend": "qwen"}, {}, (CHAT, QWEN), (CHAT, MINIMAX)),
        ("minimax", {"optimizer_backend": "minimax"}, {}, (CHAT, MINIMAX), (CHAT, MINIMAX)),
    ],
)  # fmt: skip
def test_two_steps(
    tmp_path: Path, label: str, model: dict[str, Any], environ: dict[str, str], optimizer: Any, target: Any
) -> None:
    project = Project.make(tmp_path, train=8, selection=8, test=4)
    project.write("world.yaml", world(SURE))
    settings = {
        "_base_": "package:skillopt_kernel/default.yaml",
        "train": {"num_epochs": 2, "batch_size": 8},
        "optimizer": {"lr_scheduler": "constant", "use_slow_update": False, "use_meta_skill": False},
        "env": {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data", "skill_init": "skill.md"},
        "model": {"optimizer": "optimizer", "target": "target", **model},
    }
    project.write("mine.yaml", json.dumps(settings))
    served = Served.of(project)
    with ChatServer(served) as server:
        given = variables(server) | {name: text.format(root=server.root) for name, text in environ.items()}
        project.run("train", "mine.yaml", "--out", "run", "-o", f"model.backend={label}", env=given).ok()
        assert seen(server) == {"optimizer": {optimizer}, "target": {target}}
        calls = len(server.requests)
    history, summary = project.json("run/history.json"), project.json("run/summary.json")
    assert len(history) == 2
    assert history[0]["action"] == "accept_new_best"
    assert summary["test_hard"] > summary["baseline_test_hard"]
    assert summary["token_summary"]["_total"]["prompt_tokens"] == 10 * calls
    assert any(rule in (tmp_path / "run" / "best_skill.md").read_text("utf-8") for rule in KINDS.values())
    kept = b"".join(path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file())
    for key in (OPENAI, QWEN, MINIMAX, COMPATIBLE, AZURE):
        assert key.encode() not in kept
