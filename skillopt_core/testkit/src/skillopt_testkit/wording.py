"""For worlds of your own behind a `ChatServer`: what a request says, and what an optimizer may reply."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message of Chat Completions, whatever parts it has."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)


def proposal(*rules: str) -> str:
    """An analyst's reply, and a merge's: an edit for each rule, which appends it as an entry of a list."""
    edits = [{"op": "append", "content": f"- {rule}", "support_count": 2, "source_type": "failure"} for rule in rules]
    patch = {"reasoning": "", "edits": edits}
    return json.dumps({"batch_size": 4, "failure_summary": [], "success_patterns": [], **patch, "patch": patch})
