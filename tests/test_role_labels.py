"""The label `model.backend` sets the same roles wherever it is given, for each backend that is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from skillopt_commands.config import config as command
from skillopt_kernel.config import load_config
from skillopt_kernel.models.roles import ROLES
from skillopt_kernel.plugins.discovery import installed

LABELS = {
    "openai_chat": ("openai_chat", "openai_chat"),
    "openai": ("openai_chat", "openai_chat"),  # the earlier system meant Codex by it
    "openai_compatible": ("openai_compatible", "openai_compatible"),
    "claude_chat": ("claude_chat", "claude_chat"),
    "copilot_chat": ("copilot_chat", "copilot_chat"),
    "qwen_chat": ("openai_chat", "qwen_chat"),
    "minimax_chat": ("openai_chat", "minimax_chat"),
    "codex_exec": ("openai_chat", "codex_exec"),  # Codex as optimizer is asked for by name
    "claude_code_exec": ("openai_chat", "claude_code_exec"),
    "cursor_exec": ("openai_chat", "cursor_exec"),
    "copilot_exec": ("openai_chat", "copilot_exec"),
    "handoff": ("handoff", "handoff"),
}
"""Label -> the backends of optimizer and target; the judge has the optimizer's."""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skill.md").write_text("# Answering\n", encoding="utf-8")
    path = tmp_path / "base.yaml"
    sections = {"_base_": "package:skillopt_kernel/default.yaml", "env": {"name": "searchqa", "skill_init": "skill.md"}}
    path.write_text(json.dumps(sections), encoding="utf-8")
    return path


@pytest.mark.parametrize("label", LABELS)
def test_a_label_sets_the_same_roles_in_a_file_and_on_the_command_line(base: Path, label: str) -> None:
    optimizer, target = LABELS[label]
    missing = {optimizer, target} - {plugin.name for plugin in installed("backend")}
    if missing:
        pytest.skip(f"not installed here: {', '.join(sorted(missing))}")
    expected = dict(zip(ROLES, (optimizer, target, optimizer), strict=True))
    file = base.with_name("run.yaml")
    file.write_text(json.dumps({"_base_": "base.yaml", "model": {"backend": label}}), encoding="utf-8")
    for source, overrides in ((file, []), (base, [f"model.backend={label}"])):
        config = load_config(source, overrides, environ={})
        assert {role: choice.name for role, choice in config.backends.items()} == expected
        shown = CliRunner().invoke(command, ["show", source.name, *(f"-o{text}" for text in overrides)])
        assert shown.exit_code == 0, shown.output
        model = yaml.safe_load(shown.stdout)["model"]
        assert {role: model[f"{role}_backend"] for role in ROLES} == expected
