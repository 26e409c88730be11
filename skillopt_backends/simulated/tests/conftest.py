"""The small world as fixtures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from skillopt_backend_simulated.loading import load_world
from skillopt_backend_simulated.world import World
from skillopt_backend_simulated_small_world import QUESTIONS, WORLD, MakeWorld


@pytest.fixture
def world_path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "items.json").write_text(json.dumps(QUESTIONS), encoding="utf-8")
    path = tmp_path / "world.yaml"
    path.write_text(WORLD, encoding="utf-8")
    return path


@pytest.fixture
def make_world(world_path: Path) -> MakeWorld:
    """A world with some of its lines changed: `make_world(("insight: 1.0", "insight: 0.5"))`."""

    def make(*changes: tuple[str, str]) -> World:
        text = WORLD
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        world_path.write_text(text, encoding="utf-8")
        return load_world(world_path)

    return make


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world()
