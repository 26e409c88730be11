"""How every benchmark reports: a table that is printed, and kept in `results/` if asked for."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def machine() -> str:
    """What it ran on, for a table: no name of a machine, no path."""
    load = f"load {os.getloadavg()[0]:.1f} at the end" if hasattr(os, "getloadavg") else "load unknown"
    return (
        f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}; shared with others: {load}."
    )


def tell(title: str, name: str, text: str, *, write: bool) -> None:
    """Print a table, and write it to `results/<name>.md` if asked to."""
    print(text)
    if write:
        target = Path(__file__).parent / "results" / f"{name}.md"
        target.write_text(f"# {title}\n\n{text}\n", encoding="utf-8")
