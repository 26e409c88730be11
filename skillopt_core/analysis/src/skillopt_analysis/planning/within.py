"""What a budget admits of a plan: for each limit, whether it will do, and for how many steps."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen
from skillopt_kernel.config.schema import BudgetSettings
from skillopt_kernel.loop.budget import Limit, limits_of

from skillopt_analysis.planning.amounts import Amount, Part, Range


@frozen
class Within:
    """One limit of the budget beside the plan.

    key    of the configuration; most: the limit, in `unit` ("usd", "tokens", "calls" or "minutes")
    needs  what the whole run needs of it, final test included; `None`: unknown, as a price is
    steps  how many of the steps the limit admits by what is expected, what is kept for the final test left aside
    """

    key: str
    unit: str
    most: float
    needs: Range | None
    steps: int | None


def compared(parts: Sequence[tuple[Part, Amount]], budget: BudgetSettings) -> tuple[Within, ...]:
    """Each limit that the section `budget` sets beside the parts of a plan, in the order of the loop."""
    return tuple(_compared(parts, limit, budget.reserve_final) for limit in limits_of(budget))


def _compared(parts: Sequence[tuple[Part, Amount]], limit: Limit, reserve: float | None) -> Within:
    used = [(part, _use(amount, limit.quantity)) for part, amount in parts if part.role in limit.roles]
    known = [(part, use) for part, use in used if use is not None]
    if len(known) < len(used):
        return Within(limit.key, limit.quantity, limit.most, None, None)
    needs = Range.sum(use for _, use in known)
    final = sum(use.expected for part, use in known if part.final)
    # What the run itself keeps: the share that is given, else what the final test will use, at most half.
    left = limit.most - (reserve * limit.most if reserve is not None else min(limit.most / 2, final))
    last = max((part.step or 0 for part, _ in parts), default=0)
    steps = last
    for part, use in known:
        if not part.final:
            left -= use.expected
            if left < 0:
                # The step under way is not counted; the end of an epoch belongs to no step, and follows one.
                steps = part.step - 1 if part.step is not None else _steps_before(known, part)
                break
    return Within(limit.key, limit.quantity, limit.most, needs, steps)


def _steps_before(parts: Sequence[tuple[Part, Range]], until: Part) -> int:
    done = 0
    for part, _ in parts:
        if part is until:
            break
        done = part.step or done
    return done


def _use(amount: Amount, quantity: str) -> Range | None:
    if quantity == "minutes":
        return amount.seconds * (1 / 60)
    found: Range | None = getattr(amount, quantity)
    return found if amount.calls.most else Range.exactly(0)
