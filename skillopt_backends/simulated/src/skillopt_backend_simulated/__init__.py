"""A simulated model for SkillOpt: both roles, deterministic, without a network."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-simulated")

plugin = Manifest(
    kind="backend",
    name="simulated",
    api=PLUGIN_API,
    summary="Plays optimizer, target and judge from a world file, deterministic and without a network",
    factory="skillopt_backend_simulated.backend:make_backend",
    settings="skillopt_backend_simulated.settings:SimulatedSettings",
    section="model",
    prefix="simulated_",
)
