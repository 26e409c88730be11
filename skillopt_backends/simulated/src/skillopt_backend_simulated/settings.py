"""What a configuration may say of the simulated backend; what it leaves out, the world file says."""
# ruff: noqa: RUF009 - `option` is attrs' `field`, called once for each field

from __future__ import annotations

from pathlib import Path

from attrs import frozen
from skillopt_kernel.config.fields import at_least, between, option

_share = between(0.0, 1.0)


@frozen
class SimulatedSettings:
    """Settings of the simulated backend; `null` means what the world file says.

    Each key of a configuration bears the prefix `simulated_`, and `optimizer_`, `target_` or `judge_` before it
    when it is meant for one role.
    """

    world: Path | None = option(None, "world file: a path, or package:import_name/sub/path.yaml")
    seed: int | None = option(None, "seed of every draw")
    latency: float | None = option(None, "mean seconds of a reply", at_least(0), free=True)
    noise: float | None = option(None, "chance that one sample of the target turns out the other way", _share)
    lapses: float | None = option(None, "chance that the target forgets a rule that no note recalls", _share)
    rate_limits: float | None = option(None, "chance that a try is turned away with a time to wait", _share)
    server_errors: float | None = option(None, "chance that a try ends in a server error", _share)
    refusals: float | None = option(None, "chance that a request is refused", _share)
    malformed_replies: float | None = option(None, "chance that a reply is not in the form asked for", _share)
    empty_replies: float | None = option(None, "chance that a reply holds nothing", _share)
