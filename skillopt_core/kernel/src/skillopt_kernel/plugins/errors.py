"""What can be wrong with a plugin, each as a sentence: what happened, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from skillopt_kernel.errors import Cancelled, ModelError, SkillOptError
from skillopt_kernel.plugins.known import distribution_of, known_names
from skillopt_kernel.plugins.manifest import ACCEPTED_APIS, PLUGIN_API

KIND_WORDS = {"env": "environment", "update": "update mode", "source": "transcript source", "hook": "hook plugin"}
"""Kinds whose full name is another word; the others are called as they are spelt."""

PASSED_ON = (SkillOptError, ModelError, Cancelled)
"""What a plugin may raise on purpose: sentences, a backend's errors, and the run's own stop."""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` was most likely meant to be, or `None`."""
    import difflib

    by_lower = {candidate.lower().replace("-", "_"): candidate for candidate in candidates}
    found = difflib.get_close_matches(name.lower().replace("-", "_"), by_lower, n=1, cutoff=0.65)
    return by_lower[found[0]] if found else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """The question after the nearest candidate with a space before it, or an empty text."""
    guess = nearest(name, candidates)
    return f" Did you mean {guess!r}?" if guess else ""


def kind_word(kind: str) -> str:
    """The kind as a sentence says it: "environment" for `env`."""
    return KIND_WORDS.get(kind, kind)


class PluginError(SkillOptError):
    """The base of everything that can be wrong with a plugin; `where` (file, line, key) begins the sentence."""

    def __init__(self, sentence: str, where: str = "") -> None:
        super().__init__(f"{where}: {sentence}" if where else sentence)


class PluginNotFound(PluginError):
    """Nothing installed provides the name."""

    def __init__(self, kind: str, name: str, installed: Iterable[str], where: str = "") -> None:
        names, distribution = sorted(set(installed)), distribution_of(kind, name)
        guess = nearest(name, [*names, *known_names(kind)])
        cure = did_you_mean(name, names)
        if distribution:
            cure = f" Install it with: pip install {distribution}."
        elif guess and guess not in names:
            cure = f" Did you mean {guess!r} (pip install {distribution_of(kind, guess)})?"
        there = f"Installed: {', '.join(names)}." if names else f"No {kind_word(kind)} is installed."
        super().__init__(f"there is no {kind_word(kind)} named {name!r}.{cure} {there}", where)


class PluginBroken(PluginError):
    """A plugin is installed but cannot be used: its import raises, or it is not what it says it is."""

    def __init__(self, kind: str, name: str, owner: str, cause: BaseException | str, where: str = "") -> None:
        reason = cause if isinstance(cause, str) else f"{type(cause).__name__}: {cause}"
        missing = cause.name if isinstance(cause, ModuleNotFoundError) else None
        cure = f"install what provides {missing.partition('.')[0]!r}" if missing else f"correct {owner}"
        sentence = f"the {kind_word(kind)} {name!r} of {owner} is installed but cannot be used: {reason}. "
        super().__init__(f"{sentence}To go on, {cure}, or name another {kind_word(kind)}.", where)


class PluginConflict(PluginError):
    """Two distributions claim one name. Each owner is "distribution version"."""

    def __init__(self, kind: str, name: str, owners: Sequence[str], where: str = "") -> None:
        sentence = f"the {kind_word(kind)} {name!r} is provided by {' and by '.join(owners)}. "
        cure = f"Uninstall all but one of them: pip uninstall {owners[-1].partition(' ')[0]}."
        super().__init__(sentence + cure, where)


class PluginApiMismatch(PluginError):
    """The plugin was written against a plugin interface that this kernel does not speak."""

    def __init__(self, kind: str, name: str, owner: str, api: object, where: str = "") -> None:
        older = owner.partition(" ")[0] if isinstance(api, int) and api < PLUGIN_API else "skillopt-kernel"
        accepted = ", ".join(map(str, sorted(ACCEPTED_APIS)))
        sentence = f"the {kind_word(kind)} {name!r} of {owner} was written for plugin interface {api!r}, but this "
        cure = f"skillopt-kernel speaks {accepted}. Upgrade the older one: pip install --upgrade {older}."
        super().__init__(sentence + cure, where)


class DriverFailed(PluginError):
    """A driver that a default stage asks raised something that is no sentence."""

    def __init__(self, kind: str, name: str, owner: str, method: str, cause: BaseException) -> None:
        sentence = f"the {kind_word(kind)} {name!r} of {owner} failed in {method}: {type(cause).__name__}: {cause}. "
        cure = "The state of the run is saved; correct it or name another, and run the same command again."
        super().__init__(sentence + cure)


class ObjectNotFound(SkillOptError):
    """An object path `package.module:attribute` leads to nothing, or its module cannot be imported."""
