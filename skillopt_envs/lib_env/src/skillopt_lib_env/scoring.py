"""Which scorer an environment uses, as its configuration writes it: a name, or a name with settings.

    scorer: exact
    scorer: {name: numeric, relative_tolerance: 0.01}

An environment whose scorer can be chosen has a field of this type in its settings class, and makes the scorer in its
factory::

    scorer: ScorerChoice = option(ScorerChoice("exact"), "how an answer is compared with the reference")

    self._scorer = settings.scorer.make(context)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs
from attrs import evolve, frozen
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.plugins.discovery import load_manifest, owner_of, settings_class

if TYPE_CHECKING:
    from skillopt_kernel.config.tree import Node
    from skillopt_kernel.interfaces import DriverContext, Scorer


@frozen
class ScorerChoice:
    """A scorer by name with its settings (`None`: their defaults), and the distribution that provides it.

    The provider is told where the configuration is written and is part of a run's fingerprint: another version may
    score otherwise.
    """

    name: str
    settings: Any = None
    provider: str = attrs.field()

    @provider.default
    def _installed(self) -> str:
        return owner_of("scorer", self.name)

    @classmethod
    def from_node(
        cls, given: Any, nested: Callable[[Any, type], Any], problem: Callable[[Any, str], ValueError]
    ) -> ScorerChoice:
        """The choice that a configuration writes; see `skillopt_kernel.config.structure` for what it is given.

        Besides a name, and a mapping of `name` and the scorer's settings, the form that a run directory holds is
        taken: `{name, settings, provider}`. What is wrong is raised as a `problem`.
        """
        node: Node = given.node
        written: Mapping[str, Node] = node.value if isinstance(node.value, dict) else {"name": node}
        name = written["name"].written if "name" in written else None
        if not isinstance(name, str) or not name:
            raise problem(given, "expected a scorer by name, or {name: NAME, ...} with settings of that scorer")
        keys = {key: each for key, each in written.items() if key not in ("name", "settings", "provider")}
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
        return cls(
            name, nested(evolve(given, node=evolve(node, value=keys)), settings) if settings is not None else None
        )

    def make(self, context: DriverContext) -> Scorer:
        """The scorer. Raises `ConfigError` for what it needs and lacks."""
        if context.driver is None:
            raise ValueError("an environment needs a context that makes its scorer (context.driver)")
        scorer: Scorer = context.driver("scorer", self.name, self.settings)
        return scorer
