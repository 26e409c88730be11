"""Flat names, other names of keys, retired keys: what the files of the earlier system hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from skillopt_kernel.config import load_config
from skillopt_kernel.config.known import RENAMED, RETIRED
from skillopt_kernel.plugins.discovery import installed
from skillopt_kernel_config_probes import Folder

FLAT = """\
env: probe_env
model_backend: probe_chat
lr_scheduler: probe_scheduler
skill_update_mode: probe_update
gate_metric: probe_gate
num_epochs: 2
batch_size: 8
edit_budget: 6
minibatch_size: 3
target_model: small
probe_chat_timeout_seconds: 7
split_ratio: 2:1:7
workers: 5
max_turns: 4
tags: [a, b]
"""


def test_a_flat_file_loads_whole(folder: Folder) -> None:
    folder.write("flat.yaml", FLAT)
    config = load_config("flat.yaml", environ={})
    assert (config.train.num_epochs, config.train.batch_size, config.gradient.minibatch_size) == (2, 8, 3)
    assert {kind: choice.name for kind, choice in config.drivers.items() if kind != "executor"} == {
        "env": "probe_env", "gate": "probe_gate", "scheduler": "probe_scheduler", "update": "probe_update",
    }  # fmt: skip
    assert config.driver("scheduler").settings.learning_rate == 6
    assert config.driver("env").settings.max_turns == 4 and config.driver("env").settings.tags == ["a", "b"]
    assert (config.env.split_ratio, config.env.workers) == ("2:1:7", 5)
    target = config.backends["target"]
    assert (target.name, target.model, target.settings.timeout_seconds) == ("probe_chat", "small", 7.0)
    assert config.origins["optimizer.learning_rate"] == "flat.yaml:8:14"
    assert not config.warnings and not config.unused


def test_a_flat_mapping_and_a_mixed_file_load(folder: Folder) -> None:
    config = load_config({"_base_": "probes", "batch_size": 3, "max_turns": 2}, environ={})
    assert config.train.batch_size == 3 and config.driver("env").settings.max_turns == 2
    mixed = folder.load("train: {seed: 1}\nbatch_size: 8\nenv: {max_turns: 2}\nshare: 0.25\n")
    assert (mixed.train.seed, mixed.train.batch_size) == (1, 8)
    assert (mixed.driver("env").settings.max_turns, mixed.driver("env").settings.share) == (2, 0.25)
    named = folder.load("train: {seed: 1}\nenv: probe_env\nsplit_dir: .\n")
    assert named.driver("env").name == "probe_env" and named.env.split_dir == folder.root


@pytest.mark.parametrize(
    ("base", "child", "edits"),
    [
        ("edit_budget: 3", "optimizer: {learning_rate: 7}", 7),
        ("optimizer: {learning_rate: 3}", "edit_budget: 7", 7),
        ("edit_budget: 3", "edit_budget: 7", 7),
        ("edit_budget: 3", "train: {seed: 1}", 3),
        ("optimizer: {learning_rate: 3}", "seed: 1", 3),
    ],
)
def test_the_child_wins_in_either_form(folder: Folder, base: str, child: str, edits: int) -> None:
    folder.write("base.yaml", f"_base_: probes\n{base}\n")
    folder.write("run.yaml", f"_base_: base.yaml\n{child}\n")
    config = load_config("run.yaml", environ={})
    assert config.driver("scheduler").settings.learning_rate == edits and not config.warnings


def test_the_environments_section_survives_its_flat_name(folder: Folder) -> None:
    """The name `env` is both the section and the flat name of `env.name`."""
    folder.write("base.yaml", "_base_: probes\nenv: {name: probe_env, max_turns: 5, split_dir: ., skill_init: ''}\n")
    for child in ("env: {name: probe_env}", "env: probe_env", "train: {seed: 1}", "env: {share: 0.5}"):
        folder.write("run.yaml", f"_base_: base.yaml\n{child}\n")
        config = load_config("run.yaml", environ={})
        assert config.driver("env").settings.max_turns == 5 and config.env.split_dir == folder.root, child


def test_in_one_file_the_key_in_its_section_beats_the_flat_one(folder: Folder) -> None:
    config = folder.load("edit_budget: 3\noptimizer: {learning_rate: 7}\n")
    assert config.driver("scheduler").settings.learning_rate == 7
    assert config.warnings == (
        "run.yaml:2:1: edit_budget: is not used, since optimizer.learning_rate says otherwise (run.yaml:3:13); delete "
        "one of the two",
    )
    assert not folder.load("edit_budget: 7\noptimizer: {learning_rate: 7}\n").warnings
    assert folder.load("reasoning_effort: high\nmodel: {reasoning_effort: ''}\n").model.reasoning_effort == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("model: 3\nsandbox: x\n", "run.yaml:2:1: model: is a section, a mapping of keys"),
        ("model: [a]\nminimax_temperature: '1'\n", "run.yaml:2:1: model: is a section, a mapping of keys"),
        ("env: [probe_env]\n", "run.yaml:2:1: env: is a section, a mapping of keys"),
        ("target: {a: 1}\n", "run.yaml:2:1: target: expected text, got a mapping"),
        ("sandbox: {a: 1}\nmodel: {codex_sandbox: []}\nbatch_size: {a: 1}\n", "run.yaml:4:1: batch_size: expected a"),
        ("env: probe_en\n", "run.yaml:2:1: env: there is no environment named 'probe_en'"),
    ],
)
def test_wrong_shapes_are_told_with_their_place(folder: Folder, text: str, problem: str) -> None:
    # Where the backend is installed whose keys stand there too, it has something to say of them as well.
    assert any(found.startswith(problem) for found in folder.problems(text))


# Other names of a key --------------------------------------------------------------------------------------

TOOL = "model: {target_backend: codex_exec, optimizer_backend: probe_chat}\n"


StandIn = Callable[..., None]


@pytest.fixture
def stand_in(install: Callable[..., Path], manifest_of: Callable[..., str]) -> StandIn:
    """Installs a backend of a known name; skips where the real one is installed, beside which it cannot be."""

    def do(name: str, prefix: str, settings: str, text: str = "") -> None:
        if any(plugin.name == name for plugin in installed("backend")):
            pytest.skip(f"the distribution of {name} is installed here")
        module = manifest_of("backend", name, settings=settings, prefix=prefix)
        files = {f"acme_{name}.py": module, f"acme_{name}_settings.py": text}
        install(f"acme-{name} 1.0", {f"skillopt.backends {name}": f"acme_{name}:plugin"}, files)

    return do


@pytest.fixture
def codex(folder: Folder, stand_in: StandIn) -> Folder:
    """A folder of configuration files beside a driver of that name, whose settings are `path` and `sandbox`."""
    stand_in("codex_exec", "codex_exec_", "acme_probes.settings:ToolSettings")
    return folder


@pytest.mark.parametrize("name", ["codex_exec_path", "codex_path", "codex_cli_bin", "codex_bin"])
def test_names_of_the_codex_program(codex: Folder, name: str) -> None:
    for text in (f"{name}: mine\n{TOOL}", TOOL.replace("}", f", {name}: mine}}")):
        config = codex.load(text)
        assert config.backends["target"].settings.path == "mine"
        assert not config.warnings and not config.unused


@pytest.mark.parametrize("name", ["codex_exec_sandbox", "sandbox", "codex_sandbox"])
def test_names_of_the_codex_sandbox(codex: Folder, name: str) -> None:
    for text in (f"{name}: mine\n{TOOL}", TOOL.replace("}", f", {name}: mine}}")):
        assert codex.load(text).backends["target"].settings.sandbox == "mine"
    for override in (f"{name}=mine", f"model.{name}=mine"):
        config = codex.load(TOOL.replace("}", ", sandbox: theirs}"), override)
        assert config.backends["target"].settings.sandbox == "mine" and not config.warnings
        assert config.origins["model.target_codex_exec_sandbox"] == "-o"


def test_the_first_of_several_names_counts_and_the_others_are_told(codex: Folder) -> None:
    text = "codex_bin: third\ncodex_cli_bin: second\ncodex_path: first\n" + TOOL
    config = codex.load(text)
    assert config.backends["target"].settings.path == "first"
    assert [warning.partition(", since ")[0] for warning in config.warnings] == [
        "run.yaml:3:1: codex_cli_bin: is not used", "run.yaml:2:1: codex_bin: is not used",
    ]  # fmt: skip
    assert codex.load(text + "codex_exec_path: own\n").backends["target"].settings.path == "own"
    assert codex.load(text + "codex_exec_path: ''\n").backends["target"].settings.path == "first"


def test_other_names_are_put_right_in_each_file_before_it_is_inherited(codex: Folder) -> None:
    for base, child in (("codex_exec_path: b", "codex_bin: c"), ("codex_bin: b", "codex_exec_path: c")):
        codex.write("base.yaml", f"_base_: probes\n{base}\n{TOOL}")
        codex.write("run.yaml", f"_base_: base.yaml\n{child}\n")
        assert load_config("run.yaml", environ={}).backends["target"].settings.path == "c"


def test_a_wrong_value_is_told_under_the_name_that_was_written(codex: Folder) -> None:
    assert codex.problems(f"codex_bin: [a]\n{TOOL}") == ("run.yaml:2:1: codex_bin: expected text, got a list",)
    assert codex.problems(TOOL.replace("}", ", sandbox: [a]}")) == (
        "run.yaml:2:68: model.sandbox: expected text, got a list",
    )
    (problem,) = codex.problems("edit_budget: many\n")
    assert problem == "run.yaml:2:1: edit_budget: expected a whole number, got the text 'many'"


@pytest.mark.parametrize("name", ["endpoint", "api_version", "api_key"])
def test_the_older_azure_names_stand_for_the_present_ones(folder: Folder, name: str) -> None:
    for text in (f"azure_{name}: http://a\n", f"model: {{azure_{name}: 'http://a'}}\n"):
        config = folder.load(text)
        assert set(config.unused) == {f"model.azure_openai_{name}"}
        (warning,) = config.warnings
        assert f"azure_{name}: is the older name of model.azure_openai_{name}; write that" in warning
        assert "http://a" not in warning
    assert folder.load("azure_api_key: sk-azure-1\n").credentials == {"sk-azure-1"}
    blank = folder.load(f"azure_{name}: http://a\nmodel: {{azure_openai_{name}: ''}}\n")
    assert len(blank.warnings) == 1  # an empty present name lets the older one stand
    assert not folder.load(f"azure_{name}: ''\n").warnings


def test_every_other_name_leads_to_a_key_and_not_to_another_name() -> None:
    assert not set(RENAMED) & set(RENAMED.values()) and not set(RENAMED) & set(RETIRED)


def test_numbers_that_the_earlier_files_hold_in_quotes(folder: Folder, stand_in: StandIn) -> None:
    settings = "from attrs import frozen\n@frozen\nclass Settings:\n    temperature: float | None = None\n"
    settings += "    max_tokens: int | None = None\n    enable_thinking: bool = True\n    model: str = 'm'\n"
    stand_in("minimax_chat", "minimax_", "acme_minimax_chat_settings:Settings", settings)
    keys = "minimax_temperature: '0.7', minimax_max_tokens: \"8000\", minimax_enable_thinking: 'false'"
    assert set(folder.load(f"model: {{{keys}}}\n").unused) == {  # checked although the backend is not in use
        "model.minimax_temperature", "model.minimax_max_tokens", "model.minimax_enable_thinking",
    }  # fmt: skip
    config = folder.load(f"model: {{target_backend: minimax_chat, {keys}}}\n")
    made = config.backends["target"].settings
    assert (made.temperature, made.max_tokens, made.enable_thinking) == (0.7, 8000, False)
    (problem,) = folder.problems("minimax_temperature: 'warm'\nmodel: {target_backend: minimax_chat}\n")
    assert problem == "run.yaml:2:1: minimax_temperature: expected a number, got the text 'warm'"


# Bare overrides --------------------------------------------------------------------------------------------


def test_a_bare_override_wins_over_the_file_in_either_form(folder: Folder) -> None:
    folder.write("elsewhere/train/items.json", "[]")
    for text in ("env: {split_dir: ., max_turns: 1}\n", "split_dir: .\nmax_turns: 1\n"):
        config = folder.load(text, "split_dir=elsewhere", "max_turns=9")
        assert config.env.split_dir == folder.root / "elsewhere" and config.driver("env").settings.max_turns == 9
    assert folder.load("", "env=probe_env", "env.max_turns=3").driver("env").settings.max_turns == 3
    later = folder.load("", "optimizer.learning_rate=5", "edit_budget=6", "edit_budget=7")
    assert later.driver("scheduler").settings.learning_rate == 7 and not later.warnings


# Retired keys ----------------------------------------------------------------------------------------------

SPELLINGS = {
    "gradient.max_analyst_rounds": ("max_analyst_rounds: 3", "gradient: {max_analyst_rounds: 3}"),
    "train.steps_per_epoch": ("steps_per_epoch: 3", "train: {steps_per_epoch: 3}"),
    "optimizer.meta_learning_rate": (
        "meta_edit_budget: 3", "meta_learning_rate: 3", "optimizer: {meta_learning_rate: 3}",
    ),
    "model.codex_trace_to_optimizer": ("codex_trace_to_optimizer: true", "model: {codex_trace_to_optimizer: false}"),
    "model.codex_exec_full_auto": ("codex_exec_full_auto: true", "model: {codex_exec_full_auto: true}"),
}  # fmt: skip


def test_every_retired_key_is_tested() -> None:
    assert set(SPELLINGS) == set(RETIRED)


@pytest.mark.parametrize("key", sorted(SPELLINGS))
def test_a_retired_key_warns_once_with_its_place_and_changes_nothing(folder: Folder, key: str) -> None:
    plain = folder.load("").as_dict()
    for spelling in SPELLINGS[key]:
        config = folder.load(spelling + "\n")
        (warning,) = config.warnings
        assert warning.startswith("run.yaml:2:") and warning.endswith(f": {RETIRED[key]}"), spelling
        assert config.as_dict() == plain and config.unused == {key: RETIRED[key]}
        again = folder.load(spelling + "\n", f"{key}=5")  # told once, for the one that is nearest
        assert again.warnings == (f"-o: {key}: {RETIRED[key]}",)
        bare = folder.load("", f"{spelling.partition(':')[0]}=4") if "{" not in spelling else again
        assert len(bare.warnings) == 1 and bare.as_dict() == plain


def test_a_retired_override_leaves_a_flat_file_as_it_is(folder: Folder) -> None:
    folder.write("flat.yaml", FLAT)
    config = load_config("flat.yaml", ["gradient.max_analyst_rounds=3"], environ={})
    assert config.as_dict() == load_config("flat.yaml", environ={}).as_dict()
    assert len(config.warnings) == 1


def test_a_retired_key_of_a_backend_in_use_is_no_error(codex: Folder) -> None:
    for name in ("codex_exec_full_auto", "target_codex_exec_full_auto"):
        (warning,) = codex.load(TOOL.replace("}", f", {name}: true}}")).warnings
        assert f": model.{name}: {RETIRED['model.codex_exec_full_auto']}" in warning
