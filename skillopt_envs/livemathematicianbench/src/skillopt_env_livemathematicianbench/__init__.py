"""The LiveMathematicianBench benchmark for SkillOpt."""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

plugin = Manifest(
    kind="env",
    name="livemathematicianbench",
    api=PLUGIN_API,
    summary="multiple choice about theorems of recent papers, scored by the label",
    factory="skillopt_env_livemathematicianbench.environment:LiveMathematicianBenchEnvironment",
    settings="skillopt_env_livemathematicianbench.settings:LiveMathematicianBenchSettings",
    section="env",
    data="skillopt_env_livemathematicianbench.data:data",
)

__getattr__ = lazy_version("skillopt-env-livemathematicianbench")
