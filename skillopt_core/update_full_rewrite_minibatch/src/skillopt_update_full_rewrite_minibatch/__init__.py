"""The update mode `full_rewrite_minibatch` of SkillOpt: every analyst writes a whole skill, and these are merged."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-update-full-rewrite-minibatch")

plugin = Manifest(
    kind="update",
    name="full_rewrite_minibatch",
    api=PLUGIN_API,
    summary="each minibatch gives one whole skill, the merge makes one of all; no edit budget",
    factory="skillopt_update_full_rewrite_minibatch.mode:make_update_mode",
)
