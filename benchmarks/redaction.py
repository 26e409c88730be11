"""What replacing secrets costs: CPU time for texts of 6 kB, beside `detect-secrets` as it is shipped.

Each text is cut from real files of its kind. `detect-secrets` is used where it is installed (`pip install
detect-secrets`): all of its default detectors and filters, line by line. What counts is the ratio in one run.

python benchmarks/redaction.py            prints a table
python benchmarks/redaction.py --write    also writes benchmarks/results/redaction.md
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from reporting import tell
from skillopt_kernel.store.patterns import replace_secrets
from skillopt_kernel.store.redaction import Redactor

ROOT = Path(__file__).resolve().parent.parent
SIZE, ROUNDS = 6_000, 15
EVENT = '{"v": 1, "seq": 41, "time": "2026-11-30T01:02:03.456Z", "event": "attempt_finished", "run": "run", "stage": '
EVENT += (
    '"rollout", "task": "what-is-the-name-of-000123", "skill_hash": "0123456789abcdef", "hard": 1.0, "seconds": 3.1}\n'
)
LEAK = "401 Unauthorized: Authorization: Bearer abc123def456ghi789, api_key=sk-proj-a1b2c3d4e5f6\n"


def texts() -> dict[str, str]:
    """Kind of text -> 6 kB of it."""
    return {
        "prose": (ROOT / "README.md").read_text("utf-8") + (ROOT / "docs" / "hooks.md").read_text("utf-8"),
        "source code": (ROOT / "skillopt_core/kernel/src/skillopt_kernel/config/draft.py").read_text("utf-8"),
        "events": EVENT * 30,
        "errors full of secrets": LEAK * 60,
        "one word": "a1B2c3" * 1_000,
    }


def cpu(work: Callable[[], object]) -> float:
    """Milliseconds of CPU time of this thread, the median of some rounds."""
    work()
    measured = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        work()
        measured.append(1_000 * (time.thread_time() - began))
    return statistics.median(measured)


def as_shipped(text: str) -> Callable[[], object] | None:
    """Scanning the text with `detect-secrets`, or `None` where it is not installed."""
    if importlib.util.find_spec("detect_secrets") is None:
        return None
    from detect_secrets.core.scan import scan_line
    from detect_secrets.settings import default_settings

    def scan() -> int:
        with default_settings():
            return sum(1 for line in text.splitlines() for _ in scan_line(line))

    return scan


def table() -> str:
    redactor = Redactor(["sk-0123456789-of-the-benchmark", "another-key-0123456789"])
    lines = [
        "| 6 kB of | configured credentials, ms | patterns, ms | found | `detect-secrets`, ms | times as long |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kind, whole in texts().items():
        text = whole[:SIZE]
        exact, ours = cpu(lambda text=text: redactor.redact(text)), cpu(lambda text=text: replace_secrets(text))
        scan = as_shipped(text)
        theirs = cpu(scan) if scan is not None else None
        compared = ("-", "-") if theirs is None else (f"{theirs:.1f}", f"{theirs / ours:.0f}")
        found = len(replace_secrets(text)[1])
        lines.append(f"| {kind} | {exact:.3f} | {ours:.2f} | {found} | {compared[0]} | {compared[1]} |")
    began = time.thread_time()
    for _ in range(1_000):
        redactor.diagnostics("what-is-the-name-of-000123")
    short = 1_000 * (time.thread_time() - began)
    versions = {name: importlib.metadata.version(name) for name in ("secretscreen",)}
    if importlib.util.find_spec("detect_secrets") is not None:
        versions["detect-secrets"] = importlib.metadata.version("detect-secrets")
    lines += [
        "",
        f"A task's id of 26 characters takes {short:.1f} us. Medians of {ROUNDS} rounds of CPU time of one thread. "
        f"Python {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores that other work shared; "
        + ", ".join(f"{name} {version}" for name, version in versions.items())
        + ".",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/redaction.md")
    arguments = parser.parse_args()
    told = table()
    tell("What replacing secrets costs", "redaction", told, write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
