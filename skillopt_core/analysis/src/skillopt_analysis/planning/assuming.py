"""What a plan assumes, because nothing but a run could tell: the shares of what goes well, sizes and seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import field, frozen
from skillopt_kernel.errors import SkillOptError
from skillopt_kernel.store.reading import read_run

from skillopt_analysis.calls import ledger_of

REPLY_TOKENS = {"target": 200, "optimizer": 1000, "judge": 100}
SECONDS = {"target": 5.0, "optimizer": 30.0, "judge": 5.0}


@frozen(kw_only=True)
class Assumed:
    """What is expected where the configuration does not say. Shares are 0..1.

    failures       of the attempts of a rollout that fail
    proposing      of the analysts whose reply holds an item
    tried          of the steps that come to a candidate which the gate judges
    accepted       of the judged candidates that are taken
    asked          of the selection tasks that a rejected candidate is asked; `None`: see `rejected_asks`
    seconds        of one call, by role
    replies        tokens of one reply, by role
    measured       (role, stage) -> prompt tokens, reply tokens and seconds of a call of an earlier run; `None` unknown
    turns          model calls of one attempt in an earlier run; `None`: as the rehearsal found
    like           the folder of that run, "" for none
    """

    failures: float = 0.5
    proposing: float = 0.75
    tried: float = 0.9
    accepted: float = 0.3
    asked: float | None = None
    seconds: Mapping[str, float] = field(factory=lambda: dict(SECONDS))
    replies: Mapping[str, float] = field(factory=lambda: dict(REPLY_TOKENS))
    measured: Mapping[tuple[str, str], Mapping[str, float | None]] = field(factory=dict)
    turns: float | None = None
    like: str = ""

    @property
    def rejected_asks(self) -> float:
        """The share of the selection tasks that a rejected candidate is asked before that is certain.

        The hardest are asked first. A candidate like the current skill fails what that fails, and is rejected with
        its first loss among the others, wherever that falls: in the mean in their middle.
        """
        return 1.0 - (1.0 - self.failures) / 2 if self.asked is None else self.asked


def like_run(folder: Path, seconds: Mapping[str, float]) -> Assumed:
    """What an earlier run came to. `seconds`, by role, take the place of what its calls took.

    Raises `SkillOptError` when the folder is no training run with a ledger and a step.
    """
    view = read_run(folder)
    if view.status in ("foreign", "broken"):
        raise SkillOptError(f"--like: {view.problem}")
    if view.evaluates or not view.history:
        what = "is an evaluation" if view.evaluates else "has no step yet"
        raise SkillOptError(f"--like: the run in {folder} {what}; name a training run with at least one step.")
    with ledger_of(folder) as ledger:
        sums = ledger.sums("role", "stage")
        by_role = ledger.sums("role")
        made = [row for row in ledger.calls() if row["role"] == "target"]
    # The baseline, which belongs to no step, is asked of every selection task.
    baseline = (row["scope"] for row in made if row["stage"] == "selection" and row["step"] is row["epoch"] is None)
    attempts, selection = {row["scope"] for row in made}, len(set(baseline))
    return Assumed(
        **_shares(view.history, selection),
        seconds=SECONDS | {row["role"]: row["seconds"] / row["calls"] for row in by_role} | dict(seconds),
        replies=REPLY_TOKENS | {row["role"]: mean for row in by_role if (mean := _mean(row, "completion_tokens"))},
        measured={(row["role"], row["stage"]): _measured(row, seconds) for row in sums},
        turns=len(made) / len(attempts) if attempts else None,
        like=str(folder),
    )


def _measured(row: Mapping[str, Any], seconds: Mapping[str, float]) -> dict[str, float | None]:
    means = {name: _mean(row, name) for name in ("prompt_tokens", "completion_tokens")}
    return means | {"seconds": seconds.get(row["role"], row["seconds"] / row["calls"])}


def _mean(row: Mapping[str, Any], name: str) -> float | None:
    told = row["calls"] - row["failed_calls"] - row["unknown_calls"]
    return row[name] / told if told > 0 and row[name] is not None else None


def _shares(history: Sequence[Mapping[str, Any]], selection: int) -> dict[str, float]:
    """The shares of a run's steps; what nothing tells stays as it is assumed."""
    shares: dict[str, float] = {}
    hard = [(one["rollout_hard"], one["rollout_n"]) for one in history if one.get("rollout_hard") is not None]
    if attempts := sum(count for _, count in hard):
        shares["failures"] = 1.0 - sum(mean * count for mean, count in hard) / attempts
    analysts = sum(one.get("tokens", {}).get("analyst", {}).get("calls", 0) for one in history)
    if analysts:
        shares["proposing"] = min(1.0, sum(one.get("n_patches", 0) for one in history) / analysts)
    judged = [one for one in history if one.get("selection_asked")]
    shares["tried"] = len(judged) / len(history)
    if judged:
        taken = [one for one in judged if "accept" in one["action"]]
        shares["accepted"] = len(taken) / len(judged)
        rejected = [one["selection_asked"] for one in judged if one not in taken]
        if rejected and selection:
            shares["asked"] = min(1.0, sum(rejected) / len(rejected) / selection)
    return shares


def with_seconds(assumed: Assumed, seconds: Mapping[str, float]) -> Assumed:
    return attrs.evolve(assumed, seconds={**assumed.seconds, **seconds})
