"""Every configuration that our distributions carry loads, and its readable copy says the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from skillopt_kernel.config import load_config, packaged_names
from skillopt_kernel.config.packaged import package_path

CONFIGS = Path(__file__).parent.parent / "configs"
SIMULATED = ["model.backend=simulated", "model.simulated_world=package:skillopt_env_searchqa/demo/world.yaml"]


def _copy_of(name: str) -> Path:
    """`configs/<name>.yaml`, `configs/_base_/default.yaml`, or `configs/<environment>/default.yaml`."""
    places = [CONFIGS / f"{name}.yaml", CONFIGS / name / "default.yaml", CONFIGS / "_base_" / f"{name}.yaml"]
    return next(place for place in places if place.is_file())


def _ours() -> dict[str, str]:
    return {name: places[0] for name, places in packaged_names().items() if places[0].startswith("package:skillopt_")}


def test_there_are_configurations() -> None:
    assert {"default", "searchqa", "demo", "features/soft_gate", "features/semantic_density"} <= set(_ours())


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
