"""Which of our distributions provides which name, also of those that are not installed; from `known.json`.

A configuration that names a plugin which nothing installed provides is answered with the `pip install` line. The file
has for each distribution, for each kind, the names of its plugins.
"""

from __future__ import annotations

import json
from pathlib import Path

_KNOWN = json.loads((Path(__file__).parent / "known.json").read_text(encoding="utf-8"))

DISTRIBUTIONS: dict[tuple[str, str], str] = {
    (kind, name): owner for owner, kinds in _KNOWN.items() for kind, names in kinds.items() for name in names.split()
}
"""(kind, name) -> distribution, of every plugin of ours."""


def distribution_of(kind: str, name: str) -> str | None:
    """The distribution of ours that provides the plugin, or `None` for a name that is not ours."""
    return DISTRIBUTIONS.get((kind, name))


def known_names(kind: str) -> tuple[str, ...]:
    """The names of all our plugins of a kind, sorted."""
    return tuple(sorted(name for of, name in DISTRIBUTIONS if of == kind))
