"""Every configuration that our distributions carry loads, and its readable copy says the same."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from skillopt_kernel.cli.main import cli
from skillopt_kernel.config import load_config, packaged_names
from skillopt_kernel.config.load import load
from skillopt_kernel.config.packaged import package_path
from skillopt_kernel.config.tree import plain

CONFIGS = Path(__file__).parent.parent / "configs"
NOT_BUILT = ("spreadsheetbench", "alfworld")
"""Benchmarks whose configuration is here although there is no distribution of the environment yet."""

SIMULATED = ["model.backend=simulated", "model.simulated_world=package:skillopt_env_searchqa/demo/world.yaml"]


def _copy_of(name: str) -> Path:
    """`configs/<name>.yaml`, `configs/_base_/default.yaml`, or `configs/<environment>/default.yaml`."""
    places = [CONFIGS / f"{name}.yaml", CONFIGS / name / "default.yaml", CONFIGS / "_base_" / f"{name}.yaml"]
    return next(place for place in places if place.is_file())


def _name_of(copy: Path) -> str:
    """The packaged name of a readable copy: the reverse of `_copy_of`."""
    path = copy.relative_to(CONFIGS)
    plain = path.with_suffix("").as_posix().removeprefix("_base_/")
    return path.parent.as_posix() if path.name == "default.yaml" and plain != "default" else plain


def _ours() -> dict[str, str]:
    return {name: places[0] for name, places in packaged_names().items() if places[0].startswith("package:skillopt_")}


def test_there_are_configurations() -> None:
    features = {"features/soft_gate", "features/semantic_density", "features/earlier_defaults"}
    assert {"default", "searchqa", "demo"} | features <= set(_ours())


def test_every_readable_copy_is_one_of_a_packaged_configuration() -> None:
    names = {_name_of(path) for path in CONFIGS.rglob("*.yaml")}
    assert names == set(_ours()) | set(NOT_BUILT)
    for name in NOT_BUILT:  # once there is the distribution, it carries the file
        assert not (CONFIGS.parent / "skillopt_envs" / name / "pyproject.toml").exists(), name


@pytest.mark.parametrize("name", sorted(_ours()))
def test_a_packaged_configuration_loads_and_uses_every_key_that_it_has(name: str) -> None:
    config = load_config(name, SIMULATED, environ={})
    assert config.name == name and not config.unused


@pytest.mark.parametrize("name", sorted(_ours()))
def test_the_readable_copy_is_equal(name: str) -> None:
    assert _copy_of(name).read_bytes() == package_path(_ours()[name]).read_bytes()


def test_a_feature_changes_only_what_it_names() -> None:
    plain = load_config("searchqa", SIMULATED, environ={}).as_dict()
    soft = load_config({"_base_": ["searchqa", "features/soft_gate"]}, SIMULATED, environ={}).as_dict()
    assert soft["evaluation"].pop("gate_metric") == "soft" and plain["evaluation"].pop("gate_metric") == "hard"
    assert soft == plain
    dense = load_config({"_base_": ["searchqa", "features/semantic_density"]}, SIMULATED, environ={}).as_dict()
    assert dense["hooks"].pop("plugins") == ["semantic_density"] and plain["hooks"].pop("plugins") == []
    assert set(dense["hooks"].pop("settings")) == {"semantic_density"} and plain["hooks"].pop("settings") == {}
    assert dense == {**plain, "evaluation": {**plain["evaluation"], "gate_metric": "hard"}}
    aware = load_config({"_base_": ["searchqa", "features/skill_aware"]}, SIMULATED, environ={}).as_dict()
    assert aware["hooks"].pop("plugins") == ["skill_aware"]
    assert set(aware["hooks"].pop("settings")) == {"skill_aware"}
    assert aware == dense


def test_the_base_file_changes_nothing_but_shows_every_default() -> None:
    base = load_config("default", SIMULATED, environ={})
    assert base.as_dict() == load_config({}, SIMULATED, environ={}).as_dict()


def test_a_gate_weight_out_of_range_is_told_with_its_place(tmp_path: Path) -> None:
    from skillopt_kernel.errors import ConfigError

    path = tmp_path / "run.yaml"
    for gate in ("mixed", "hard"):  # the mixed gate's key is checked also while another gate is in use
        path.write_text(f"_base_: demo\nevaluation:\n  gate_metric: {gate}\n  gate_mixed_weight: 7\n", encoding="utf-8")
        with pytest.raises(ConfigError) as caught:
            load_config(path, environ={})
        assert len(caught.value.problems) == 1
        assert ":4:3: evaluation.gate_mixed_weight: " in caught.value.problems[0]


# The benchmarks' published settings ----------------------------------------------------------------------------

OF_ALL = {
    "train": {"num_epochs": 4, "batch_size": 40, "accumulation": 1, "seed": 42},
    "gradient": {"minibatch_size": 8, "merge_batch_size": 8},
    "optimizer": {"learning_rate": 4, "min_learning_rate": 2, "lr_scheduler": "cosine"},
    "evaluation": {"sel_env_num": 0, "test_env_num": 0},
    "model": {"reasoning_effort": "medium"},
    "env": {"split_mode": "split_dir"},
}
PUBLISHED: dict[str, dict[str, Any]] = {
    "searchqa": {"train_size": 400, "max_turns": 1, "max_completion_tokens": 16384, "workers": 24, "limit": 0},
    "spreadsheetbench": {
        "train_size": 80, "mode": "multi", "max_turns": 30, "exec_timeout": 600, "workers": 24,
        "max_completion_tokens": 16384, "data_root": "data/spreadsheetbench_verified_400",
    },
    "docvqa": {
        "train_size": 0, "max_turns": 1, "workers": 16, "image_detail": "auto", "max_completion_tokens": 16384,
    },
    "officeqa": {
        "train_size": 0, "workers": 4, "max_tool_turns": 24, "search_mode": "offline", "max_queries_per_turn": 4,
        "max_completion_tokens": 16384, "data_dirs": ["data/officeqa_docs_official"],
        "search_provider": "duckduckgo", "search_max_num_results": 4, "search_timeout_seconds": 20,
    },
    "livemathematicianbench": {
        "train_size": 0, "max_turns": 1, "exec_timeout": 300, "workers": 64, "shuffle_choices": True,
        "use_theorem": False, "use_sketch": False,
    },
    "alfworld": {
        "train_size": 0, "max_steps": 50, "workers": 8, "max_api_workers": 8, "max_completion_tokens": 16384,
    },
}  # fmt: skip
STEPS = {"searchqa": (400, 10), "spreadsheetbench": (80, 2), "docvqa": (107, 3), "officeqa": (50, 2),
         "livemathematicianbench": (35, 1), "alfworld": (39, 1)}  # fmt: skip
"""Benchmark -> training tasks, steps of an epoch."""


def merged(name: str) -> dict[str, Any]:
    """A configuration with what it inherits, as it is written: its environment need not be installed."""
    values: dict[str, Any] = plain(load(_copy_of(name)).root)
    return values


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_a_benchmark_has_its_published_settings(name: str) -> None:
    values = merged(name)
    for section, expected in OF_ALL.items():
        assert {key: values[section][key] for key in expected} == expected, section
    size = PUBLISHED[name]["train_size"]
    assert values["train"]["train_size"] == size
    expected = {key: value for key, value in PUBLISHED[name].items() if key != "train_size"} | {"name": name}
    assert {key: values["env"][key] for key in expected} == expected
    assert values["env"]["split_dir"].startswith("data/") and not values["env"]["skill_init"]
    tasks, steps = STEPS[name]
    assert size in (0, tasks) and math.ceil(tasks / values["train"]["batch_size"]) == steps
    assert f"{tasks:,} training" in _copy_of(name).read_text("utf-8")


def test_searchqa_resolves_to_its_published_settings() -> None:
    config = load_config("searchqa", SIMULATED, environ={}).as_dict()
    for name, value in PUBLISHED["searchqa"].items():
        assert config["train" if name == "train_size" else "env"][name] == value
    assert config["env"]["exec_timeout"] == 120


def test_the_soft_gate_of_the_earlier_feature() -> None:
    config = load_config({"_base_": ["searchqa", "features/soft_gate"]}, SIMULATED, environ={})
    assert config.driver("gate").name == "soft"


@pytest.mark.parametrize("name", NOT_BUILT)
def test_a_benchmark_that_is_not_installed_is_told_with_what_to_install(name: str) -> None:
    overrides = [word for text in SIMULATED for word in ("-o", text)]
    result = CliRunner().invoke(cli, ["config", "show", str(CONFIGS / name / "default.yaml"), *overrides])
    (problem,) = result.exception.problems  # its keys are not judged, since nobody can
    assert f": env.name: there is no environment named '{name}'. Install it with: pip install " in problem
    assert f"skillopt-env-{name}" in problem
