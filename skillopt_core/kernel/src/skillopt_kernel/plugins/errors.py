"""What can be wrong with a plugin, each as a sentence: what happened, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable

from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.plugins.known import distribution_of, known_names
from skillopt_kernel.plugins.manifest import ACCEPTED_APIS, PLUGIN_API

KIND_WORDS: dict[str, str] = {
    "env": "environment",
    "update": "update mode",
    "source": "transcript source",
    "hook": "hook plugin",
}
"""Kinds whose full name is another word; the others are called as they are spelt."""


def kind_word(kind: str) -> str:
    """The kind as a sentence says it: "environment" for `env`."""
    return KIND_WORDS.get(kind, kind)


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` was most likely meant to be, or `None`."""
    import difflib

    by_lower = {candidate.lower().replace("-", "_"): candidate for candidate in candidates}
    found = difflib.get_close_matches(name.lower().replace("-", "_"), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


class PluginError(SkillOptError):
    """The base of everything that can be wrong with a plugin. `kind` and `name` say which one."""

    def __init__(self, kind: str, name: str, sentence: str, where: str = "") -> None:
        self.kind, self.name = kind, name
        super().__init__(f"{where}: {sentence}" if where else sentence)


class PluginNotFound(PluginError):
    """Nothing installed provides the name."""

    def __init__(self, kind: str, name: str, installed: Iterable[str], where: str = "") -> None:
        names = sorted(set(installed))
        parts = [f"there is no {kind_word(kind)} named {name!r}."]
        distribution = distribution_of(kind, name)
        if distribution is not None:
            parts.append(f"Install it with: pip install {distribution}.")
        else:
            guess = nearest(name, [*names, *known_names(kind)])
            if guess is not None:
                cure = "" if guess in names else f" (pip install {distribution_of(kind, guess)})"
                parts.append(f"Did you mean {guess!r}{cure}?")
        parts.append(f"Installed: {', '.join(names)}." if names else f"No {kind_word(kind)} is installed.")
        super().__init__(kind, name, " ".join(parts), where)


class PluginBroken(PluginError):
    """A plugin is installed but cannot be used: its import raises, or it is not what it says it is."""

    def __init__(self, kind: str, name: str, owner: str, cause: BaseException | str, where: str = "") -> None:
        self.owner, self.cause = owner, cause
        reason = cause if isinstance(cause, str) else f"{type(cause).__name__}: {cause}"
        cure = f"correct {owner or 'the plugin'}"
        if isinstance(cause, ModuleNotFoundError) and cause.name:
            missing, distribution = cause.name.partition(".")[0], owner.partition(" ")[0]
            own = missing == distribution.replace("-", "_")
            cure = f"reinstall {distribution or 'the plugin'}" if own else f"install what provides {missing!r}"
        sentence = (
            f"the {kind_word(kind)} {name!r}{' of ' + owner if owner else ''} is installed but cannot be used: "
            f"{reason}. To go on, {cure}, or name another {kind_word(kind)}."
        )
        super().__init__(kind, name, sentence, where)


class PluginConflict(PluginError):
    """Two distributions claim one name. Each owner is "distribution version"."""

    def __init__(self, kind: str, name: str, owners: Iterable[str], where: str = "") -> None:
        claimants = list(owners)
        sentence = (
            f"the {kind_word(kind)} {name!r} is provided by {' and by '.join(claimants)}. "
            f"Uninstall all but one of them: pip uninstall {claimants[-1].partition(' ')[0]}."
        )
        super().__init__(kind, name, sentence, where)


class PluginApiMismatch(PluginError):
    """The plugin was written against a plugin interface that this kernel does not speak."""

    def __init__(self, kind: str, name: str, owner: str, api: object, kernel_version: str, where: str = "") -> None:
        older = owner.partition(" ")[0] if isinstance(api, int) and api < PLUGIN_API else "skillopt-kernel"
        accepted = ", ".join(str(number) for number in sorted(ACCEPTED_APIS))
        sentence = (
            f"the {kind_word(kind)} {name!r} of {owner} was written for plugin interface {api!r}, but "
            f"skillopt-kernel {kernel_version} speaks {accepted}. Upgrade the older one: pip install --upgrade {older}."
        )
        super().__init__(kind, name, sentence, where)


class ObjectNotFound(SkillOptError):
    """An object path `package.module:attribute` leads to nothing, or its module cannot be imported."""
