"""A process that compares mathematical expressions, one JSON line in and one out, each bounded in computing time.

Symbolic comparison may run for ever, also within code that no signal handler interrupts, so that the system itself
ends the process: the parent sees its end and starts another.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from typing import Any

_MOST_MEMORY = 4 << 30
_DELIMITED = re.compile(r"\$|\\\(|\\\[|\\boxed|\\begin\{")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_FUNCTIONS = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "log",
        "exp",
        "sqrt",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
    ]
)
"""Names that stand in an expression without being prose."""


def main() -> None:
    """Answer the lines of standard input until it ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no reply
    warm = {"answer": "x^2+2x+1", "accepted": ["(x+1)^2"], "digits": 6, "strict": True}
    _compared(warm)  # what the libraries load on their way is loaded before the first limit counts
    _bound("RLIMIT_CORE", 0)
    _bound("RLIMIT_AS", _MOST_MEMORY)
    for line in sys.stdin:
        job = json.loads(line)
        _bound("RLIMIT_CPU", math.ceil(_computed()) + math.ceil(job["seconds"]))
        out.write(json.dumps(_compared(job)) + "\n")
        out.flush()


def _compared(job: dict[str, Any]) -> dict[str, Any]:
    """{"equal"} and {"read"}: whether the answer holds an expression; or {"unread"}: a reference that holds none."""
    from math_verify import verify

    try:
        golds = [parsed(text) for text in job["accepted"]]
        unread = [text for text, gold in zip(job["accepted"], golds, strict=True) if not gold]
        if unread:
            return {"unread": unread[0]}
        answer = parsed(job["answer"]) if job["answer"] else []
        equal = any(
            verify(gold, answer, float_rounding=job["digits"], strict=job["strict"], timeout_seconds=None)
            for gold in golds
            if answer
        )
    except (MemoryError, RecursionError) as error:
        return {"equal": False, "read": True, "problem": type(error).__name__}
    return {"equal": equal, "read": bool(answer)}


def parsed(text: str) -> list[Any]:
    """The expression in a text; LaTeX is read also where nothing delimits it, as long as there is no prose."""
    from math_verify import parse

    words = {word.lower() for word in _WORD.findall(text)}
    tries = [text] if _DELIMITED.search(text) or words - _FUNCTIONS else [f"${text}$", text]
    for one in tries:
        found = parse(one, parsing_timeout=None)
        if any(not isinstance(each, str) for each in found):
            return found  # type: ignore[no-any-return]
    return []


def _computed() -> float:
    used = os.times()
    return used.user + used.system


def _bound(name: str, most: int) -> None:
    """Set a soft limit, where the system has such."""
    try:
        import resource
    except ImportError:  # Windows: the parent's own time limit remains
        return
    limit = getattr(resource, name)
    hard = resource.getrlimit(limit)[1]
    resource.setrlimit(limit, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main()
