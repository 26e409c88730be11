"""SkillOpt's microkernel: the loop, its records, its hooks, and how plugins are found.

Public names are handed on lazily, so that `import skillopt_kernel` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES: dict[str, tuple[str, ...]] = {
    "skillopt_kernel.loop.api": ("train",),
    "skillopt_kernel.loop.evaluation": ("evaluate",),
    "skillopt_kernel.stages.comparison": ("Pair",),
    "skillopt_kernel.config": ("load_config", "Config"),
    "skillopt_kernel.gating": ("compute_score", "evaluate_gate", "ScoreGate"),
    "skillopt_kernel.stages.aggregate": ("merge_patches",),
    "skillopt_kernel.stages.select": ("rank_and_select",),
    "skillopt_kernel.hookspecs": ("hookimpl",),
    "skillopt_kernel.plugins.manifest": ("Manifest", "PLUGIN_API"),
    "skillopt_kernel.history": ("StepRecord", "EpochRecord", "RunSummary"),
    "skillopt_kernel.store.events": ("Event",),
    "skillopt_kernel.skill": ("shown", "skill_hash", "with_region"),
    "skillopt_kernel.interfaces": (
        "Backend", "ChatModel", "AgentHarness", "Environment", "Target", "Judge", "Gate", "Trial", "Scheduler",
        "Moment", "UpdateMode", "Optimizer", "UpdateOptimizer", "Scorer", "Executor", "Run", "Step", "Epoch",
        "DriverContext",
    ),
    "skillopt_kernel.models.requests": (
        "ChatRequest", "ChatReply", "Message", "TextPart", "ImagePart", "Tool", "AgentJob", "AgentResult",
    ),
    "skillopt_kernel.records": (
        "Task", "Splits", "Turn", "ToolCall", "Usage", "Attempt", "Score", "Missing", "Ask", "Outcome", "Edit",
        "FailurePattern", "Proposal", "Update", "EditBudget", "ItemReport", "Applied", "Scored", "GateDecision",
        "SlowUpdate",
    ),
    "skillopt_kernel.errors": (
        "SkillOptError", "ConfigError", "DataError", "RunDirectoryError", "RefuseRun", "HookError", "StoppedEarly",
        "ModelError", "PassingError", "CallTimeout", "PermanentError", "RejectedRequest", "ContextTooLong",
        "RefusedError", "Pending", "Cancelled", "EnvironmentFailure", "UnusableReply",
    ),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is not None:
        return getattr(import_module(home), name)
    if name == "__version__":
        from skillopt_kernel.version import version_of

        return version_of("skillopt-kernel")
    raise AttributeError(f"module 'skillopt_kernel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
