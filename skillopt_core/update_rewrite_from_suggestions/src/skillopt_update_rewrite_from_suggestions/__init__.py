"""The update mode `rewrite_from_suggestions` of SkillOpt: suggestions are gathered and the skill rewritten by them."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-update-rewrite-from-suggestions")

plugin = Manifest(
    kind="update",
    name="rewrite_from_suggestions",
    api=PLUGIN_API,
    summary="suggestions in words, and one call that rewrites the whole skill by the chosen ones",
    factory="skillopt_update_rewrite_from_suggestions.mode:make_update_mode",
)
