"""Which backend plays which role: one pure function of the label and of what the roles say themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import frozen

from skillopt_kernel.config.known import TARGET_ONLY, backend_name

ROLES = ("optimizer", "target", "judge")


@frozen
class RolePlan:
    """Role -> the name of its backend, for each of `ROLES`, and role -> what says so: "label" or a role's own name."""

    backends: Mapping[str, str]
    said_by: Mapping[str, str]


def plan_roles(
    label: str,
    optimizer: str | None = None,
    target: str | None = None,
    judge: str | None = None,
    explicit: Collection[str] = ROLES,
) -> RolePlan:
    """Which backend plays which role: the one resolution of every entry point.

    label     `model.backend`: a backend's name or an alias. `TARGET_ONLY` ones set the target alone, beside an
              optimizer on `openai_chat`; every other one sets both
    roles     what `model.<role>_backend` say; `None` and blank: nothing
    explicit  the roles whose own word counts, whatever it is. The word of another role, such as what a base says
              where the user gives a label, counts for nothing

    The judge is played by the optimizer's backend unless it names its own.
    """
    own = {"optimizer": optimizer, "target": target, "judge": judge}
    named = {role: backend_name(text) for role, text in own.items() if text and text.strip() and role in explicit}
    of_label = backend_name(label)
    optimizer_of_label = "openai_chat" if of_label in TARGET_ONLY else of_label
    backends = {"optimizer": named.get("optimizer", optimizer_of_label), "target": named.get("target", of_label)}
    said_by = {role: role if role in named else "label" for role in ROLES}
    if "judge" not in named:
        said_by["judge"] = said_by["optimizer"]
    return RolePlan(backends | {"judge": named.get("judge", backends["optimizer"])}, said_by)
