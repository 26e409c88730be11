"""Which scorer an environment uses, as its configuration writes it: a name, or a name with settings.

    scorer: exact
    scorer: {name: numeric, relative_tolerance: 0.01}

An environment whose scorer can be chosen has a field of this type in its settings class, and makes the scorer in its
factory::

    scorer: ScorerChoice = option(ScorerChoice("exact"), "how an answer is compared with the reference")

    self._scorer = settings.scorer.make(context)

Such an environment tells before the run where scores would say nothing of the outcome: `only_shape(scorer, tasks)`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from attrs import evolve, frozen
from skillopt_kernel.errors import ConfigError, SkillOptError
from skillopt_kernel.plugins.discovery import load_manifest, owner_of, settings_class

if TYPE_CHECKING:
    from skillopt_kernel.config.tree import Node
    from skillopt_kernel.interfaces import DriverContext, Scorer
    from skillopt_kernel.records import Task

RESERVED = ("name", "settings", "provider", "files", "where")
"""What a stored choice holds beside a scorer's own settings, none of which may be called so."""


@frozen
class ScorerChoice:
    """A scorer by name with its settings (`None`: their defaults), and what else can change its scores.

    provider   the distribution that provides it, with its version
    files      setting -> hash over the files that it names: those of each path, or what the settings' own `files()`
               gives, a mapping of setting to paths. A run with other contents is another run
    where      the place in the configuration, for messages; no part of the choice
    """

    name: str
    settings: Any = None
    provider: str = attrs.field()
    files: Mapping[str, str] = attrs.field()
    where: str = attrs.field(default="", eq=False)

    @provider.default
    def _installed(self) -> str:
        return owner_of("scorer", self.name)

    @files.default
    def _contents(self) -> dict[str, str]:
        given = {each.name: getattr(self.settings, each.name) for each in getattr(self.settings, "__attrs_attrs__", ())}
        paths = {name: (value,) for name, value in given.items() if isinstance(value, Path) and value.is_file()}
        return {name: content_hash(found) for name, found in getattr(self.settings, "files", lambda: paths)().items()}

    @classmethod
    def from_node(
        cls, given: Any, nested: Callable[[Any, type], Any], problem: Callable[[Any, str], ValueError]
    ) -> ScorerChoice:
        """The choice that a configuration writes; see `skillopt_kernel.config.structure` for what it is given.

        Besides a name, and a mapping of `name` and the scorer's settings, the form that a run directory holds is
        taken: `{name, settings, provider, files}`. What is wrong is raised as a `problem`.
        """
        node: Node = given.node
        written: Mapping[str, Node] = node.value if isinstance(node.value, dict) else {"name": node}
        name = written["name"].written if "name" in written else None
        if not isinstance(name, str) or not name:
            raise problem(given, "expected a scorer by name, or {name: NAME, ...} with settings of that scorer")
        keys = {key: each for key, each in written.items() if key not in RESERVED}
        stored = written.get("settings")
        if stored is not None and isinstance(stored.value, dict):
            keys = {**stored.value, **keys}
        try:
            settings = settings_class(load_manifest("scorer", name))
        except SkillOptError as error:
            raise problem(given, str(error)) from error
        if settings is None and keys:
            raise ValueError(
                f"the scorer {name!r} has no settings, but {', '.join(keys)} is given; write {name!r} alone"
            )
        made = nested(evolve(given, node=evolve(node, value=keys)), settings) if settings is not None else None
        return cls(name, made, where=f"{node.where}: {node.alias or given.key}")

    def make(self, context: DriverContext) -> Scorer:
        """The scorer. Raises `ConfigError` for what it needs and lacks, with the place of the choice."""
        if context.driver is None:
            raise ValueError("an environment needs a context that makes its scorer (context.driver)")
        try:
            scorer: Scorer = context.driver("scorer", self.name, self.settings)
        except _PlacedError:  # of a scorer within this one
            raise
        except ConfigError as error:
            placed = [f"{self.where}: {problem}" if self.where else problem for problem in error.problems]
            raise _PlacedError(*placed) from error
        return scorer


class _PlacedError(ConfigError):
    """A problem of a scorer that begins with its place."""


def only_shape(scorer: Scorer, tasks: Sequence[Task]) -> str:
    """A sentence where scores of these (training) tasks would say nothing of the outcome, else ""."""
    seen = looked_at(scorer, tasks)
    if not seen:
        return ""
    return (
        f"in all {len(tasks)} training tasks the scorer looks {seen}, so that a skill can score well by a template, "
        f"without doing the task. Score the outcome: give each task a reference of its own, or judge by a rubric that "
        f"says what a good outcome is (the scorer llm_judge)."
    )


def looked_at(scorer: Scorer, tasks: Sequence[Task]) -> str:
    """What a scorer looks at, as the end of a sentence, where that is the same whatever the outcome; else "".

    A scorer may know by itself: its optional method `shape_only(tasks)` says so. Of another one it is told when every
    task has the same reference. A single task shows nothing.
    """
    if len(tasks) < 2:
        return ""
    look = getattr(scorer, "shape_only", None)
    if look is not None:
        return str(look(tasks))
    first = tasks[0].reference
    alike = first is not None and all(task.reference == first for task in tasks)
    return "for the same answer, since they have one reference" if alike else ""


def content_hash(paths: Iterable[Path]) -> str:
    """16 hex digits over the contents of files, in their order. Raises `ConfigError` for one that cannot be read."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    return digest.hexdigest()[:16]
