"""A small benchmark in the real format, and an environment that reads it."""

import logging
from pathlib import Path

import pytest
from skillopt_env_livemathematicianbench.settings import LiveMathematicianBenchSettings
from skillopt_kernel.config.schema import EnvSettings
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import make_driver

RAW = Path(__file__).parent / "data"


@pytest.fixture
def raw():
    """The folder of the raw files: 16 items of two months, three of them with the stock option."""
    return RAW


@pytest.fixture
def environment():
    """Makes the environment with these settings, by default splitting the raw files 2:1:1."""

    def make(common=None, seed=42, **settings):
        common = {"split_mode": "ratio", "split_ratio": "2:1:1", "data_path": RAW, **(common or {})}
        context = DriverContext(
            logging.getLogger("skillopt"), seed=seed, common=EnvSettings(name="livemathematicianbench", **common)
        )
        return make_driver("env", "livemathematicianbench", LiveMathematicianBenchSettings(**settings), context)

    return make
