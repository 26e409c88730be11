"""The page on configurations of the earlier system names every name that the kernel knows of it."""

from __future__ import annotations

import re

import pytest
from skillopt_kernel.config import known, load_config


@pytest.fixture
def named(root):
    text = (root / "docs/earlier-configurations.md").read_text("utf-8")
    return set(re.findall(r"`([a-z_.0-9-]+)`", text))


def test_every_flat_name_other_name_and_retired_key_is_on_the_page(named):
    leaves = {name.rpartition(".")[2] for name in named}
    for key in (*known.FLAT, *known.RENAMED, *known.RETIRED):
        assert key.rpartition(".")[2] in leaves, key
    assert named >= known.EARLIER_MODELS


def test_the_features_example_loads(root):
    text = (root / "docs/earlier-configurations.md").read_text("utf-8")
    bases = re.search(r"_base_: \[(.*)\]", text)[1].split(", ")
    simulated = ["model.backend=simulated", "model.simulated_world=package:skillopt_env_searchqa/demo/world.yaml"]
    config = load_config({"_base_": bases}, simulated, environ={})
    assert config.optimizer.slow_update_gate_with_selection is False
