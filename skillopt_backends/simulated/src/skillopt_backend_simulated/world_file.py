"""The form of a world file: one frozen class for each of its mappings. The README shows one whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen
from skillopt_kernel.config.fields import at_least, between, option

_share = between(0.0, 1.0)


def _not_blank(_: object, __: object, value: str) -> None:
    if not value.strip():
        raise ValueError("must not be blank")


def _chance(default: float, description: str) -> Any:
    return option(default, description, _share)


def _amount(default: float, description: str) -> Any:
    return option(default, description, at_least(0))


@frozen
class Rule:
    """A sentence that a skill may hold.

    harms  kind of task (or `all`) -> how much the rule takes from the chance of a right answer, 0..1

    A rule that no kind needs is a distractor, and with `harms` a harmful rule.
    """

    sentence: str = field(validator=_not_blank)
    harms: Mapping[str, float] = option(dict, "kind, or all -> what it takes from the chance")


@frozen
class Kind:
    """A kind of task: how it is known by its question, what it needs, how often the target is right.

    marker, pattern  text that stands in each question of the kind, or a regular expression; one of the two
    needs            ids of rules; with a part of them the chance lies in proportion between the two below
    """

    needs: tuple[str, ...]
    right_without: float = field(validator=_share)
    right_with: float = field(validator=_share)
    marker: str = ""
    pattern: str = ""


@frozen
class TargetQuality:
    """How the target answers."""

    partial: float = _chance(0.3, "chance that a wrong answer shares words with the right one")
    noise: float = _chance(0.0, "chance that one sample turns out the other way")
    lapses: float = _chance(0.0, "chance that a question is answered without regard to a rule that no note recalls")
    latency: float = _amount(0.0, "mean seconds of a reply")
    latency_sigma: float = _amount(0.5, "deviation of the logarithm of the seconds")


@frozen
class OptimizerQuality:
    """How the optimizer works. What is a chance is one for each thing that it may happen to."""

    insight: float = _chance(0.7, "one failing trajectory shows it a rule that its kind lacks; more do so surely")
    harmful: float = _chance(0.2, "an analyst's reply proposes a harmful rule")
    distractors: float = _chance(0.2, "an analyst's reply proposes a rule that helps nothing")
    duplicates: float = _chance(0.1, "an analyst's reply proposes one rule twice, or one that the skill has")
    bad_anchors: float = _chance(0.1, "an edit is anchored to text that the skill does not hold")
    over_budget: float = _chance(0.1, "a list is longer than it was told to be")
    memory: float = _chance(0.7, "it leaves out a harmful or useless rule that it is told was tried before")
    merging: float = _chance(0.9, "a merge takes out an edit that stands there twice")
    ranking: float = _chance(0.8, "a ranking sees what an edit is worth, where it otherwise guesses")
    latency: float = _amount(0.0, "mean seconds of a reply")
    latency_sigma: float = _amount(0.5, "deviation of the logarithm of the seconds")


@frozen
class Faults:
    """How often a call fails or a reply is of no use."""

    rate_limits: float = _chance(0.0, "one try is turned away with a time to wait")
    server_errors: float = _chance(0.0, "one try ends in a server error")
    refusals: float = _chance(0.0, "a request is refused, whenever it is asked")
    malformed_replies: float = _chance(0.0, "a reply is not in the form asked for")
    empty_replies: float = _chance(0.0, "a reply holds nothing")
    retry_after: float = _amount(0.01, "seconds to wait that a rate limit names")
    context_tokens: int = option(0, "longest prompt in tokens; 0: no limit", at_least(0))


@frozen
class WorldFile:
    """A world as it is written."""

    kinds: Mapping[str, Kind]
    rules: Mapping[str, Rule]
    data: tuple[str, ...]
    seed: int = option(0, "seed of every draw")
    target: TargetQuality = field(factory=TargetQuality)
    optimizer: OptimizerQuality = field(factory=OptimizerQuality)
    faults: Faults = field(factory=Faults)
