"""What a session used, from the file that Copilot writes at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skillopt_kernel.records import Usage
from skillopt_lib_agent.events import count_of, read_object

from skillopt_lib_copilot.session import part_of

UNKNOWN = Usage(calls=1, unknown_calls=1)


def read_usage(path: Path) -> Usage:
    """The usage of all models of a session; unknown where the file is missing or tells of no call.

    Copilot counts what was cached within the input, and reasoning within the output, whatever the endpoint does.
    """
    try:
        told = read_object(path) or {}
    except OSError:
        return UNKNOWN
    models = [part_of(each, "usage") for each in part_of(told, "modelMetrics").values()]
    prompt, completion = _sum(models, "inputTokens"), _sum(models, "outputTokens")
    return Usage(
        calls=1,
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=_sum(models, "cacheReadTokens"),
        reasoning_tokens=_sum(models, "reasoningTokens"),
        unknown_calls=int(prompt is None or completion is None),
    )


def _sum(models: Iterable[Mapping[str, Any]], name: str) -> int | None:
    counts = [count for model in models if (count := count_of(model.get(name))) is not None]
    return sum(counts) if counts else None
