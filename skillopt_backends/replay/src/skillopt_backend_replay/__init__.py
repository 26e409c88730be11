"""The model calls of a recorded run for SkillOpt: a training again, without a network."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-backend-replay")

plugin = Manifest(
    kind="backend",
    name="replay",
    api=PLUGIN_API,
    summary="Answers from the ledger of another run, for `skillopt train --replay RUN`",
    factory="skillopt_backend_replay.backend:make_backend",
)
