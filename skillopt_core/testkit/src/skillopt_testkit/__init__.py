"""Conformance suites and fixtures for authors of SkillOpt plugins.

A suite is a pytest class: subclass it in a test module, name the plugin, and give what the suite asks for. The
names here are handed on lazily, so that the pytest plugin of this distribution costs a test run nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from skillopt_kernel.version import lazy_version

_HOMES = {
    "EnvironmentConformance": "conformance.environment",
    "BackendConformance": "conformance.backend",
    "HttpChatConformance": "conformance.http_chat",
    "ChatCompletionsConformance": "conformance.chat_completions",
    "ResponsesConformance": "conformance.chat_completions",
    "AgentConformance": "conformance.agent",
    "GateConformance": "conformance.gate",
    "SchedulerConformance": "conformance.scheduler",
    "UpdateModeConformance": "conformance.update_mode",
    "ScorerConformance": "conformance.scorer",
    "HooksConformance": "conformance.hooks",
    "ExecutorConformance": "conformance.executor",
    "RedactorConformance": "conformance.redactor",
    "ChatServer": "servers",
    "Reply": "protocols",
    "ScriptedTarget": "scripted",
    "ScriptedJudge": "scripted",
    "ScriptedOptimizer": "scripted",
    "StoredTrial": "scripted",
    "Project": "project",
}

__all__ = sorted(_HOMES)
_version = lazy_version("skillopt-testkit")


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    return getattr(import_module(f"skillopt_testkit.{home}"), name) if home else _version(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
