"""From a merged node tree and overrides to the resolved configuration, collecting every problem on the way."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from skillopt_kernel.config.backends import resolve_backends
from skillopt_kernel.config.draft import Draft
from skillopt_kernel.config.fields import is_secret_name
from skillopt_kernel.config.load import Loaded, Override
from skillopt_kernel.config.owners import check_other_keys, take_drivers, take_hooks
from skillopt_kernel.config.resolved import Config
from skillopt_kernel.config.schema import SECTIONS, PromptFile
from skillopt_kernel.config.structure import fields_of, guess
from skillopt_kernel.config.tree import Node, merge
from skillopt_kernel.errors import ConfigError

_ALLOWED = (*SECTIONS, "prompts")


@frozen
class Request:
    """What a configuration is made of, kept so that overrides can be added later."""

    loaded: Loaded
    overrides: list[Override]
    environ: Mapping[str, str]


def build(request: Request) -> Config:
    """Resolve a configuration. Raises `ConfigError` with every problem that was found."""
    draft = Draft(request.loaded.root, request.environ)
    _check_sections(draft)
    _apply(draft, request.overrides)
    _stop(draft)  # the sections must stand before what is in them can be judged
    kernel = {name: draft.take(cls, draft.section(name), f"{name}.") for name, cls in SECTIONS.items()}
    drivers = take_drivers(draft, kernel)
    backends = resolve_backends(draft, kernel["model"])
    hooks, plugins = take_hooks(draft, kernel["hooks"])
    prompts = _take_prompts(draft)
    check_other_keys(draft)
    _stop(draft)
    return Config(
        name=request.loaded.name,
        path=request.loaded.path,
        **(kernel | {"hooks": hooks}),
        prompts=prompts,
        drivers=drivers,
        backends=backends,
        plugins=plugins,
        credentials=frozenset(draft.credentials | _secrets_in(draft.root)),
        origins=dict(sorted(draft.origins.items())),
        unused=dict(sorted(draft.unused.items())),
        warnings=tuple(dict.fromkeys(draft.warnings)),
        written=draft.written,
        request=request,
    )


def _stop(draft: Draft) -> None:
    """Raise `ConfigError` if there are problems, in the order of files and lines."""

    def line_of(problem: str) -> tuple[str, int, int]:
        found = re.match(r"(.*?):(\d+):(\d+): ", problem)
        return (found[1], int(found[2]), int(found[3])) if found else ("", 0, 0)

    if draft.problems:
        raise ConfigError(*sorted(draft.problems, key=line_of))


def _check_sections(draft: Draft) -> None:
    """Every key outside a section is a problem; one that has a section is told which."""
    for key, node in draft.root.value.items():
        homes = draft.homes(key) if key not in _ALLOWED else []
        if homes:
            section, _, name = homes[0].partition(".")
            draft.problem(node, key, f"belongs in the section `{section}`: write `{section}: {{{name}: ...}}`")
        elif key not in _ALLOWED:
            draft.problem(node, key, f"is no section{guess(key, _ALLOWED, f'; there are {_LISTED}')}")
        elif not (node.value is None or isinstance(node.value, dict)):
            draft.problem(node, key, "is a section, a mapping of keys")


_LISTED = ", ".join(_ALLOWED)


def _apply(draft: Draft, overrides: Sequence[Override]) -> None:
    """Put overrides into the tree, bare ones into the one section that owns the key."""
    for key, node in overrides:
        section = key.partition(".")[0]
        whole = "." in key or (key in _ALLOWED and isinstance(node.value, dict))
        homes = [key] if whole else draft.homes(key)
        if whole and section not in _ALLOWED:
            hint = guess(section, _ALLOWED, f"; there are {_LISTED}")
            draft.problems.append(f"{node.place}: {section!r} is no section{hint}")
        elif homes:
            for name in reversed(homes[0].split(".")):
                node = Node({name: node}, node.place)
            draft.root = merge(draft.root, node)
        else:
            hint = guess(key, set().union(*draft.keys.values()), "; a driver's key is written section.key=value")
            draft.problems.append(f"{node.place}: no section has the key {key!r}{hint}")


def _take_prompts(draft: Draft) -> dict[str, Path]:
    prompts = {}
    for name, node in draft.section("prompts").items():
        if not node.empty:
            draft.origins[f"prompts.{name}"] = str(node.place)
            prompts[name] = draft.value(node, fields_of(PromptFile)["path"], f"prompts.{name}")
    return prompts


def _secrets_in(node: Node, key: str = "") -> set[str]:
    """Every text under a key whose name says that it holds a credential, used or not."""
    if isinstance(node.value, dict):
        return set().union(*(_secrets_in(item, name) for name, item in node.value.items()))
    return {node.written} if is_secret_name(key) and isinstance(node.value, str) and not node.empty else set()
