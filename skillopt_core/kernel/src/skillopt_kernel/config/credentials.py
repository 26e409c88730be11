"""Credentials in a configuration: collected, so that no file shows them, and warned of where others can read them."""

from __future__ import annotations

from collections.abc import Iterator

from skillopt_kernel.config.draft import Draft
from skillopt_kernel.config.fields import is_secret_name
from skillopt_kernel.config.tree import Node
from skillopt_kernel.store.redaction import MISTAKABLE, unmistakable


def take_credentials(draft: Draft) -> frozenset[str]:
    """Every credential, used or not: what a field takes as one, and each text whose key says so.

    One that was given on the command line is warned of, by the variable to set instead and never by its value.
    """
    found = set(draft.secrets)
    for key, node in _texts(draft.root):
        if node in draft.secrets or is_secret_name(key.rpartition(".")[2]):
            found.add(node)
            if node.place.label.startswith("-"):
                draft.warnings.append(_warning(draft, key, node.place.label))
    draft.warnings += sorted(f"{node.where}: {MISTAKABLE}" for node in found if not unmistakable(str(node.written)))
    return frozenset(str(node.written) for node in found)


def _texts(node: Node, key: str = "") -> Iterator[tuple[str, Node]]:
    """Each text, number included, in a tree of mappings, with its dotted key."""
    if isinstance(node.value, dict):
        for name, item in node.value.items():
            yield from _texts(item, f"{key}.{name}" if key else name)
    elif isinstance(node.written, str) and not node.empty and not isinstance(node.value, bool):
        yield key, node


def _warning(draft: Draft, key: str, given: str) -> str:
    variable = draft.variable(key)
    instead = f"set the environment variable {variable}" if variable else "write it into a file that only you can read"
    return (
        f"{given if given != '-o' else f'-o {key}'}: a credential on the command line can be read by everyone on this "
        f"machine and stays in the shell's history; {instead} instead"
    )
