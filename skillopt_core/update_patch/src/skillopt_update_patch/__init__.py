"""The update mode `patch` of SkillOpt: small edits, safely applied."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-update-patch")

plugin = Manifest(
    kind="update",
    name="patch",
    api=PLUGIN_API,
    summary="small edits (append, insert_after, replace, delete), each applied safely or refused with the reason",
    factory="skillopt_update_patch.mode:make_update_mode",
)
