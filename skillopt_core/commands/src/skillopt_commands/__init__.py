"""The commands of SkillOpt, and `skillopt-train` and `skillopt-eval` with a flag for each key.

`skillopt_commands.series` has the Python function `train_seeds`.
"""

from skillopt_kernel.plugins.manifest import PLUGIN_API, Manifest
from skillopt_kernel.version import lazy_version

__getattr__ = lazy_version("skillopt-commands")


def _command(name: str, factory: str, summary: str) -> Manifest:
    return Manifest(kind="command", name=name, api=PLUGIN_API, summary=summary, factory=factory)


train_command = _command("train", "skillopt_commands.train:train", "Train a skill, or go on with an unfinished run")
eval_command = _command("eval", "skillopt_commands.evaluate:evaluate", "Score a skill on one split of the data")
config_command = _command(
    "config", "skillopt_commands.config:config", "Show a configuration and where each value came from"
)
status_command = _command(
    "status", "skillopt_commands.status:status", "What a run has reached, also while it is running"
)
report_command = _command("report", "skillopt_commands.report:report", "Write the report of a training anew")
runs_command = _command("runs", "skillopt_commands.runs:runs", "List the runs in a folder")
plugins_command = _command(
    "plugins", "skillopt_commands.plugins:plugins", "List what is installed, show one plugin, check all"
)
hooks_command = _command("hooks", "skillopt_commands.hooks:hooks", "List the hooks, explain who is asked")
doctor_command = _command(
    "doctor", "skillopt_commands.doctor:doctor", "Check what is installed, and all that a training needs"
)
data_command = _command("data", "skillopt_commands.data:data", "Fetch the data of a benchmark into a folder")
