"""The executor `processes` of SkillOpt: attempts run in worker processes, their model calls in the run's own."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-executor-processes")

plugin = Manifest(
    kind="executor",
    name="processes",
    api=PLUGIN_API,
    summary="attempts run in worker processes, their model calls in the run's own",
    factory="skillopt_executor_processes.executor:make_executor",
    settings="skillopt_executor_processes.settings:ProcessesSettings",
    section="execution",
)
