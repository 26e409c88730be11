"""What runs may use. A request is reserved at its most before it is sent and settled by what it used, so that no limit
is passed: one that does not fit waits for those in flight, and is refused once it would not fit without them either.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import Factory, define, evolve, field, frozen

from skillopt_kernel.config.schema import BudgetSettings, Price, RoleLimits
from skillopt_kernel.errors import BudgetSpent, CallTimeout, ConfigError, ModelError, StoppedEarly
from skillopt_kernel.models.ledger import CALLS, TOLD, Ledger
from skillopt_kernel.models.pricing import NO_PRICES, Expense, usd_of
from skillopt_kernel.models.roles import ROLES
from skillopt_kernel.records import Usage

LEVELS = (0.5, 0.8)
"""Shares of a limit at which it is warned, once each."""

LONGEST_REPLY = 16_384
"""Tokens reserved for a reply that nothing limits, until one of its role and stage has come. From then on a request is
reserved at twice the most that one has used.
"""

Amounts = defaultdict[tuple[str, str], float]
"""By role and quantity ("usd", "tokens", "calls", "seconds"), what was used or may be."""


@frozen
class Limit:
    """One limit: its key, the roles whose use counts, the quantity ("minutes": of wall time), and the most of it."""

    key: str
    roles: tuple[str, ...]
    quantity: str
    most: float

    def told(self, value: float) -> str:
        decimals = 1 if self.quantity == "minutes" else 0
        return f"${value:,.4f}" if self.quantity == "usd" else f"{value:,.{decimals}f} {self.quantity}"


def limits_of(settings: BudgetSettings) -> tuple[Limit, ...]:
    """The limits that are set, in the order in which they are looked at."""
    found = [Limit("budget.wall_minutes", ROLES, "minutes", settings.wall_minutes or 0.0)]
    sections: list[tuple[str, tuple[str, ...], RoleLimits]] = [("budget.", ROLES, settings)]
    sections += [(f"budget.roles.{role}.", (role,), getattr(settings.roles, role)) for role in ROLES]
    for prefix, roles, limits in sections:
        found += [
            Limit(prefix + name, roles, name, getattr(limits, name) or 0.0) for name in ("usd", "tokens", "calls")
        ]
    return tuple(limit for limit in found if limit.most)


@define(eq=False)
class Budget:
    """The limits of one run, or of several in one process that share them: `train(config, budget=shared)`.

    settings  the section `budget`; where: a key with its place in the file, as `Config.place_of`
    prices    `model.prices`, for calls of earlier processes that had no price then

    A shared budget takes the place of the configurations' own. `count` takes in what a run has used that is not open,
    such as a finished one. Wall time is that since the first run was opened here, and what each run took before.
    """

    settings: BudgetSettings
    where: Callable[[str], str] = str
    prices: Mapping[str, Price] = NO_PRICES
    limits: tuple[Limit, ...] = field(init=False, default=Factory(lambda it: limits_of(it.settings), takes_self=True))
    changed: threading.Condition = field(init=False, factory=threading.Condition)
    _accounts: dict[Path, Account] = field(init=False, factory=dict)
    _warned: dict[str, float] = field(init=False, factory=dict)
    _began: float = field(init=False, default=0.0)
    _unknown: str = field(init=False, default="")
    untold: set[tuple[str, str]] = field(init=False, factory=set)

    def check(self, samples: Mapping[str, Usage]) -> None:
        """Raise `ConfigError` for a limit in tokens or dollars where a role's calls (as `Models.sample`) tell none."""
        for role, sample in samples.items():
            self.known(role, sample)
        self._refuse_unknown()

    def open(self, ledger: Ledger, folder: Path, *about: Any) -> Account:
        """The account of the run in `folder`, in place of an earlier one of it; `about`: further fields of `Account`.

        Raises `ConfigError` when earlier calls used what nobody knows and a limit hangs on it.
        """
        account = Account(self, ledger, *about)
        with self.changed:
            self._began = self._began or time.monotonic()
            self._accounts[folder] = account
            self._warned |= {limit.key: self._level(limit) for limit in self.limits}  # what was told is not told again
        self._refuse_unknown()
        return account

    def count(self, folder: Path) -> None:
        """Count what the run in `folder` has used, unless it is open."""
        if folder not in self._accounts and (folder / CALLS).exists():
            ledger = Ledger(folder / CALLS, read_only=True)
            self.open(ledger, folder)
            ledger.close()

    def used(self, limit: Limit) -> float:
        """How much of a limit is used, requests in flight left out."""
        accounts = self._accounts.values()
        if limit.quantity == "minutes":
            return (time.monotonic() - self._began + sum(account.earlier for account in accounts)) / 60
        return sum(account.used[role, limit.quantity] for account in accounts for role in limit.roles)

    def standing(self) -> dict[str, list[float]]:
        """Key of each limit -> how much of it is used, and the limit."""
        with self.changed:
            return {limit.key: [round(self.used(limit), 6), limit.most] for limit in self.limits}

    # With the lock held --------------------------------------------------------------------------------------

    def has_room(self, request: Expense, most: Mapping[str, float]) -> bool:
        """Whether a request fits beside those in flight. Raises `BudgetSpent` when it would not fit without them."""
        if self._unknown:
            raise BudgetSpent(self._unknown)
        fits, accounts = True, self._accounts.values()
        for limit in (limit for limit in self.limits if request.role in limit.roles):
            used, kept, more = self.used(limit), self._kept(limit), most.get(limit.quantity, 0.0)
            if round(used + kept + more, 9) > limit.most:
                also = f", {limit.told(kept)} are kept for the final evaluation" if kept else ""
                if limit.quantity in ("usd", "tokens"):
                    also += f", and the next request ({request.role}, {request.stage}) may use {limit.told(more)}"
                raise BudgetSpent(
                    f"the budget is spent: {limit.key} allows {limit.told(limit.most)}, {limit.told(used)} are "
                    f"used{also}. What is finished is kept: raise {limit.key} and run the same command again."
                )
            used += sum(account.in_flight[role, limit.quantity] for account in accounts for role in limit.roles)
            fits = fits and round(used + kept + more, 9) <= limit.most
        return fits

    def _kept(self, limit: Limit) -> float:
        """What is kept for final evaluations that are to come: the share given, or half of the limit at most."""
        to_come = [account for account in self._accounts.values() if not account.finishing and account.outlook()[0]]
        if not to_come or limit.roles == ("optimizer",):
            return 0.0
        if self.settings.reserve_final is not None:
            return self.settings.reserve_final * limit.most
        return min(limit.most / 2, sum(account.final_cost(limit) for account in to_come))

    def _level(self, limit: Limit) -> float:
        return max((level for level in LEVELS if self.used(limit) >= level * limit.most), default=0.0)

    def warnings(self) -> Iterator[str]:
        """A sentence for each limit of which a level was reached just now."""
        for limit in self.limits:
            if (level := self._level(limit)) > self._warned[limit.key]:
                self._warned[limit.key] = level
                yield f"{level:.0%} of {limit.key} is used: {limit.told(self.used(limit))} of {limit.told(limit.most)}"

    def known(self, role: str, usage: Usage, untold: tuple[int, int] = (1, 1)) -> dict[str, float]:
        """Tokens and dollars of calls; of those that did not tell (how many of each) as it is assumed.

        Where a limit needs what is neither told nor assumed, that is noted: no further request is let pass.
        """
        told = None not in (usage.prompt_tokens, usage.completion_tokens)
        tokens = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0) if told else None
        found: dict[str, float] = {}
        for quantity, value, count in (("tokens", tokens, untold[0]), ("usd", usage.usd, untold[1])):
            assumed = getattr(self.settings.assume_per_call, quantity)
            if value is None:
                self.untold.add((role, quantity))
            found[quantity] = count * (assumed or 0.0) if value is None else value
            for limit in self.limits if value is None and assumed is None and count else ():
                if limit.quantity == quantity and role in limit.roles:
                    what, also = ("price", ", or the price in model.prices") if quantity == "usd" else ("tokens", "")
                    self._unknown = self._unknown or (
                        f"{self.where(limit.key)}: is a limit, but the {role}'s model tells no {what}. Say what a "
                        f"call is taken to use in budget.assume_per_call.{quantity}{also}, or take the limit away."
                    )
        return found

    def _refuse_unknown(self) -> None:
        if self._unknown:
            raise ConfigError(self._unknown)


@define(eq=False)
class Account:
    """One run's part in a budget. Used from many threads at once.

    earlier    seconds that earlier processes took, at least
    outlook    attempts that the final evaluation is going to make, those made so far, and how many at the same time
    finishing  whether the run is at its end, so that nothing needs to be kept for it
    """

    budget: Budget
    _ledger: Ledger
    earlier: float = 0.0
    outlook: Callable[[], tuple[int, int, int]] = lambda: (0, 0, 1)
    finishing: bool = False
    used: Amounts = field(init=False, factory=lambda: defaultdict(float))
    in_flight: Amounts = field(init=False, factory=lambda: defaultdict(float))
    _largest: Amounts = field(init=False, factory=lambda: defaultdict(float))
    _stopped: bool = field(init=False, default=False)

    def __attrs_post_init__(self) -> None:
        self.earlier = max(self.earlier, self._ledger.wall_seconds())
        for row in self._ledger.sums("role", "model", "usd IS NULL", "prompt_tokens IS NULL", replayed=0):
            usage = Usage(**{name: row[name] for name in TOLD})
            usage = evolve(usage, usd=usd_of(row["model"], "", usage, self.budget.prices))
            known = self.budget.known(row["role"], usage, (row["unknown_calls"], row["unpriced_calls"]))
            self._add(self.used, row["role"], {**known, "calls": row["tries"], "seconds": row["seconds"]})
        for row in self._ledger.reserved():
            self._add(self.used, row.pop("role"), row)

    def spend(self, request: Expense, send: Callable[[], Any]) -> Any:
        """What `send` returns (it has a `usage`), as soon as the request fits into the budget at its most.

        Raises `BudgetSpent` when it does not fit, `StoppedEarly` when the run is stopped while it waits, `CallTimeout`.
        """
        if not self.budget.limits:
            return send()
        most = self._reserve(request)
        used, began = most, time.monotonic()
        try:
            request.reserved[number := self._ledger.reserve(request.role, most["tokens"], most["usd"])] = True
            reply = send()
            request.reserved[number], used = False, self._known(request, reply.usage)
            return reply
        except ModelError as error:
            if not error.charged:
                request.reserved[number], used = False, self._known(request, error.usage) if error.usage else {}
            raise
        finally:
            with self.budget.changed:
                self._add(self.in_flight, request.role, most, -1)
                self._add(self.used, request.role, {**used, "calls": 1, "seconds": time.monotonic() - began})
                request.warnings.extend(self.budget.warnings())
                self.budget.changed.notify_all()

    def _reserve(self, request: Expense) -> dict[str, float]:
        """Wait until the request fits at its most, which is returned."""
        assumed, largest = self.budget.settings.assume_per_call, int(self._largest[request.role, request.stage])
        reply = request.reply_tokens or max(1, 2 * largest - request.prompt_tokens if largest else LONGEST_REPLY)
        usd = request.price(Usage(1, request.prompt_tokens, reply))
        if usd is None:
            usd = self._largest[request.role, "usd"] if assumed.usd is None else assumed.usd
        most = {"calls": 1.0, "tokens": float(request.prompt_tokens + reply), "usd": usd}
        if (request.role, "tokens") in self.budget.untold:
            most["tokens"] = float(assumed.tokens or 0)
        with self.budget.changed:
            while not self.budget.has_room(request, most):
                left = None if request.deadline is None else request.deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise CallTimeout("the time of the call was over before the budget had room for it")
                if self._stopped:
                    raise StoppedEarly("the run was asked to stop; its state is saved.")
                self.budget.changed.wait(left)
            self._add(self.in_flight, request.role, most)
        return most

    def _known(self, request: Expense, usage: Any) -> dict[str, float]:
        usage = evolve(usage, usd=request.price(usage))
        with self.budget.changed:
            known = self.budget.known(request.role, usage)
            for name, value in ((request.stage, known["tokens"]), ("usd", known["usd"])):
                self._largest[request.role, name] = max(self._largest[request.role, name], value)
            return known

    @staticmethod
    def _add(into: Amounts, role: str, amounts: Mapping[str, float], sign: int = 1) -> None:
        for quantity, amount in amounts.items():
            into[role, quantity] += sign * amount

    def final_cost(self, limit: Limit) -> float:
        """What the final evaluation is going to use of a limit, by what attempts have used so far."""
        to_come, made, workers = self.outlook()
        if not made:
            return float(to_come) if limit.quantity == "calls" else 0.0
        quantity, over = ("seconds", 60 * workers) if limit.quantity == "minutes" else (limit.quantity, 1)
        return to_come * sum(self.used[role, quantity] for role in limit.roles if role != "optimizer") / made / over

    def stop(self) -> None:
        """Let nobody wait any more: the run is being stopped."""
        with self.budget.changed:
            self._stopped = True
            self.budget.changed.notify_all()
