"""Choices as the target is shown them: with the labels that the scorer `choice` takes for an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from skillopt_lib_env.labels import LETTERS
from skillopt_lib_env.scoring import ScorerChoice


def labels_shown(scorer: ScorerChoice) -> Mapping[str, str]:
    """Input -> labels of its choices, where an answer is to be a label; with another scorer nothing."""
    if scorer.name != "choice":
        return {}
    named = getattr(scorer.settings, "choices", "choices")
    return dict.fromkeys((named, "options"), getattr(scorer.settings, "labels", LETTERS))


def labelled(value: Any, labels: str) -> Any:
    """Choices as lines "A. text": a list by order, a mapping by its keys; choices that bear their labels as they are.

    Any other value is given back, and every value where there are no labels.
    """
    if labels and isinstance(value, dict) and value and all(len(str(key)) == 1 for key in value):
        pairs = [(str(key), str(text)) for key, text in value.items()]
    elif isinstance(value, list) and 0 < len(value) <= len(labels):
        pairs = [(label, str(text)) for label, text in zip(labels, value, strict=False)]
    else:
        return value
    borne = all(re.match(rf"[(\[]?{re.escape(label)}[).:\]]", text.strip()) for label, text in pairs)
    return "\n".join(text if borne else f"{label}. {text}" for label, text in pairs)
