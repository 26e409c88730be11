"""The account of what runs may use: reserved at the most, settled by what was used, over processes and runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from skillopt_kernel.config.schema import Assumed, BudgetSettings, LimitsByRole, Price, RoleLimits
from skillopt_kernel.errors import BudgetSpent, CallTimeout, ConfigError, PassingError, RejectedRequest, StoppedEarly
from skillopt_kernel.loop import budget as budgets
from skillopt_kernel.loop.budget import Account, Budget
from skillopt_kernel.models.call_text import CallKey
from skillopt_kernel.models.calling import ModelCaller
from skillopt_kernel.models.ledger import CALLS, Ledger
from skillopt_kernel.models.pricing import TOKENS_AROUND, Expense, most_prompt_tokens
from skillopt_kernel.models.requests import AgentJob, ChatReply, ChatRequest, ImagePart, Message, TextPart, Tool
from skillopt_kernel.models.retrying import RetryPolicy
from skillopt_kernel.records import ToolCall, Usage
from skillopt_kernel_models_probes import ScriptedModel, ask, in_threads, reply


def opened(settings: BudgetSettings, ledger: Ledger | None = None) -> Account:
    return Budget(settings).open(ledger or Ledger(), Path("run"))


def spend(
    account: Account,
    usd: float = 0.0,
    *,
    role: str = "target",
    tokens: tuple[int, int] = (10, 5),
    most: float | None = None,
    send: Callable[[], ChatReply] | None = None,
    deadline: float | None = None,
    told: list[str] | None = None,
) -> ChatReply:
    """One request that uses `usd` and tokens, and may use `most` dollars (as it uses)."""
    used, prices = Usage(1, *tokens), iter([usd if most is None else most, usd])  # before it is sent, and after
    expense = Expense(role, "rollout", *tokens, lambda _: next(prices), deadline, {}, [] if told is None else told)
    return account.spend(expense, send or (lambda: reply("yes", used)))


def note(sent: list[str]) -> ChatReply:
    sent.append("sent")
    return reply("yes")


def used(account: Account, quantity: str, role: str = "target") -> float:
    return round(account.used[role, quantity], 9)


# The cases ----------------------------------------------------------------------------------------------


def test_o_c1_both_roles_count_and_the_cap_is_never_passed() -> None:
    """The runner takes $0.10 a call, the optimizer $1, and the cap is $3."""
    told: list[str] = []
    account = opened(BudgetSettings(usd=3.0))
    for _ in range(2):
        for _ in range(4):
            spend(account, 0.10, told=told)
        spend(account, 1.0, role="optimizer", told=told)
    assert (used(account, "usd"), used(account, "usd", "optimizer")) == (0.8, 2.0)
    with pytest.raises(BudgetSpent, match=r"budget\.usd allows \$3\.0000, \$2\.8000 are used, and the next request"):
        spend(account, 1.0, role="optimizer")
    for _ in range(2):
        spend(account, 0.10, told=told)
    with pytest.raises(BudgetSpent, match=r"\(target, rollout\) may use \$0\.1000"):
        spend(account, 0.10)
    assert used(account, "usd") + used(account, "usd", "optimizer") == 3.0
    assert told == [
        "50% of budget.usd is used: $1.5000 of $3.0000",
        "80% of budget.usd is used: $2.8000 of $3.0000",
    ]


def test_o_c2_the_most_is_reserved_before_the_request_is_sent() -> None:
    """Of $1.00 $0.95 are spent, and the next call may take up to $0.40."""
    account, sent = opened(BudgetSettings(usd=1.0)), list[str]()
    spend(account, 0.95)
    with pytest.raises(BudgetSpent, match=r"raise budget\.usd and run the same command again") as refused:
        spend(account, 0.01, most=0.40, send=lambda: note(sent))
    assert sent == [], "it was not even sent"
    assert refused.value.exit_code == 4
    spend(account, 0.01, most=0.05)
    assert used(account, "usd") == 0.96, "what was not used is free again"


# Waiting ------------------------------------------------------------------------------------------------


def test_what_does_not_fit_waits_for_what_is_in_flight_and_then_fits() -> None:
    account, release, inside = opened(BudgetSettings(tokens=100)), threading.Event(), threading.Event()

    def slow() -> ChatReply:
        inside.set()
        assert release.wait(60)
        return reply("yes", Usage(1, 10, 10))

    first = threading.Thread(target=lambda: spend(account, tokens=(10, 70), send=slow))
    first.start()
    assert inside.wait(60)
    second = threading.Thread(target=lambda: spend(account, tokens=(10, 20)))
    second.start()
    second.join(0.2)
    assert second.is_alive(), "80 of 100 are reserved, and it may use 30"
    release.set()
    for thread in (first, second):
        thread.join(60)
    assert (used(account, "tokens"), used(account, "calls")) == (50, 2)


def test_it_is_refused_only_once_it_would_not_fit_without_the_others_either() -> None:
    account, release, inside = opened(BudgetSettings(tokens=100)), threading.Event(), threading.Event()

    def slow() -> ChatReply:
        inside.set()
        assert release.wait(60)
        return reply("yes", Usage(1, 10, 65))

    first = threading.Thread(target=lambda: spend(account, tokens=(10, 70), send=slow))
    first.start()
    assert inside.wait(60)
    with pytest.raises(BudgetSpent):
        spend(account, tokens=(10, 95))  # at once
    waiting: list[object] = []
    second = threading.Thread(target=lambda: waiting.extend(in_threads(1, lambda: spend(account, tokens=(10, 20)))))
    second.start()
    second.join(0.1)
    assert waiting == []
    release.set()
    second.join(60)
    first.join(60)
    assert isinstance(waiting[0], BudgetSpent), "75 were used in the end"


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_many_threads_never_make_one_request_more_than_the_limit(limit: int) -> None:
    account, model = opened(BudgetSettings(calls=limit)), ScriptedModel("yes", seconds=0.001)
    caller = ModelCaller(model, role="target", account=account)
    results = in_threads(24, lambda: [caller.complete(ask()) for _ in range(20)])
    assert len(model.requests) == limit
    assert all(isinstance(one, BudgetSpent) for one in results)


def test_a_stop_ends_the_wait() -> None:
    account, release, inside = opened(BudgetSettings(calls=1)), threading.Event(), threading.Event()

    def slow() -> ChatReply:
        inside.set()
        assert release.wait(60)
        raise RejectedRequest("no such thing")

    first = threading.Thread(target=lambda: in_threads(1, lambda: spend(account, send=slow)))
    first.start()
    assert inside.wait(60)
    results: list[object] = []
    second = threading.Thread(target=lambda: results.extend(in_threads(3, lambda: spend(account))))
    second.start()
    second.join(0.1)
    account.stop()
    second.join(60)
    release.set()
    first.join(60)
    assert len(results) == 3
    assert all(isinstance(one, StoppedEarly) and not isinstance(one, BudgetSpent) for one in results)


def test_a_wait_ends_with_the_time_of_the_call() -> None:
    account, release, inside = opened(BudgetSettings(calls=1)), threading.Event(), threading.Event()

    def slow() -> ChatReply:
        inside.set()
        assert release.wait(60)
        return reply("yes")

    first = threading.Thread(target=lambda: spend(account, send=slow))
    first.start()
    assert inside.wait(60)
    with pytest.raises(CallTimeout, match="before the budget had room"):
        spend(account, deadline=0.001)
    release.set()
    first.join(60)


# What counts --------------------------------------------------------------------------------------------


def test_limits_of_roles_hold_beside_the_others() -> None:
    roles = LimitsByRole(target=RoleLimits(calls=3), optimizer=RoleLimits(usd=1.0), judge=RoleLimits(tokens=20))
    account = opened(BudgetSettings(calls=9, roles=roles))
    for _ in range(3):
        spend(account)
    with pytest.raises(BudgetSpent, match=r"budget\.roles\.target\.calls allows 3 calls, 3 calls are used\."):
        spend(account)
    spend(account, 1.0, role="optimizer")
    with pytest.raises(BudgetSpent, match=r"budget\.roles\.optimizer\.usd"):
        spend(account, 0.1, role="optimizer")
    spend(account, role="judge")
    with pytest.raises(BudgetSpent, match=r"budget\.roles\.judge\.tokens allows 20 tokens, 15 tokens are used"):
        spend(account, role="judge")


def policy(tries: int) -> RetryPolicy:
    return RetryPolicy(tries=tries, first_tries=tries, first_wait=0.0)


def test_each_try_is_a_request_and_only_an_unanswered_one_may_have_used_what_was_reserved(tmp_path: Path) -> None:
    lost = CallTimeout("no reply in time")
    model = ScriptedModel(PassingError("busy", overloaded=True), lost, "yes")
    path = tmp_path / CALLS
    account = opened(BudgetSettings(tokens=1000, calls=9), ledger := Ledger(path))
    caller = ModelCaller(model, role="target", account=account, ledger=ledger, policy=policy(4))
    request = ChatRequest((Message("user", "hello"),), max_tokens=50)
    caller.complete(request, CallKey("a", 0))
    most = most_prompt_tokens(request) + 50
    assert most == len("hello") + 2 * TOKENS_AROUND + 50
    assert (used(account, "calls"), used(account, "tokens")) == (3, most + 15)
    ledger.close()
    again = opened(BudgetSettings(calls=9), Ledger(path))
    assert (used(again, "calls"), used(again, "tokens")) == (3, most + 15), "the next process knows as much"


def test_a_request_that_was_rejected_used_nothing_but_its_number(tmp_path: Path) -> None:
    account = opened(BudgetSettings(tokens=100_000, calls=9), ledger := Ledger(tmp_path / CALLS))
    caller = ModelCaller(ScriptedModel(RejectedRequest("no")), role="target", account=account, ledger=ledger)
    with pytest.raises(RejectedRequest):
        caller.complete(ask(), CallKey("a", 0))
    assert (used(account, "calls"), used(account, "tokens")) == (1, 0)
    again = opened(BudgetSettings(calls=9), ledger)
    assert (used(again, "calls"), used(again, "tokens")) == (1, 0)


def test_what_a_killed_process_had_in_flight_counts_at_its_most(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / CALLS)
    ledger.reserve("target", 120, 0.25)  # and nothing more: the process was killed
    ledger.close()
    account = opened(BudgetSettings(usd=1.0, calls=5), Ledger(tmp_path / CALLS))
    assert [used(account, quantity) for quantity in ("calls", "tokens", "usd")] == [1, 120, 0.25]


def test_a_served_call_costs_nothing_again(tmp_path: Path) -> None:
    path, key = tmp_path / CALLS, CallKey("scope", 0)
    for _ in range(2):
        account = opened(BudgetSettings(calls=1), ledger := Ledger(path))
        model = ScriptedModel("yes")
        assert ModelCaller(model, role="target", account=account, ledger=ledger).complete(ask(), key).text == "yes"
        assert used(account, "calls") == 1
        ledger.close()
    assert model.requests == [], "the second process was served, at the limit"


def test_the_models_own_limit_bounds_a_reply_and_without_any_what_was_seen_does() -> None:
    account = opened(BudgetSettings(tokens=1_000_000))
    model = ScriptedModel(reply("yes", Usage(1, 10, 300)))
    caller = ModelCaller(model, role="target", account=account)
    reserved: list[float] = []
    send, model.complete = model.complete, lambda request: looking(request)  # type: ignore[method-assign]

    def looking(request: ChatRequest) -> ChatReply:
        reserved.append(account.in_flight["target", "tokens"])
        return send(request)

    prompt = most_prompt_tokens(ask())
    caller.complete(ask())
    caller.complete(ask())
    model.max_tokens = 77  # type: ignore[attr-defined]
    caller.complete(ask())
    assert reserved == [prompt + budgets.LONGEST_REPLY, 2 * 310, prompt + 77]


def test_no_tokenizer_makes_more_of_a_prompt_than_its_bytes() -> None:
    request = ChatRequest(
        (
            Message("system", "Größe"),
            Message("user", (TextPart("look"), ImagePart(b"...", "image/png"))),
            Message("assistant", "", (ToolCall("1", "find", '{"a": 1}'),)),
        ),
        tools=(Tool("find", "finds", {"type": "object"}),),
        schema={"type": "object"},
    )
    texts = len("Größe".encode()) + 4 + len('find {"a": 1}') + len('["find", "finds", {"type": "object"}]')
    assert most_prompt_tokens(request) == texts + len('{"type": "object"}') + 5 * TOKENS_AROUND + 6_000
    assert most_prompt_tokens(AgentJob("do it", "# Skill")) == len("do it# Skill")


# What nobody tells --------------------------------------------------------------------------------------

UNTOLD = Usage(1)


def test_unknown_use_ends_the_run_where_a_limit_hangs_on_it_and_nothing_is_assumed() -> None:
    budget = Budget(BudgetSettings(tokens=1000), where=lambda key: f"mine.yaml:3:1: {key}")
    account = budget.open(Ledger(), Path("run"))
    assert spend(account, send=lambda: reply("yes", UNTOLD)).text == "yes", "it is paid for: its answer is used"
    with pytest.raises(
        BudgetSpent, match=r"^mine\.yaml:3:1: budget\.tokens: is a limit, but the target's model"
    ) as told:
        spend(account)
    assert "budget.assume_per_call.tokens" in str(told.value)


def test_it_is_no_matter_where_no_limit_hangs_on_it() -> None:
    account = opened(BudgetSettings(calls=3, roles=LimitsByRole(optimizer=RoleLimits(tokens=10_000))))
    spend(account, send=lambda: reply("yes", UNTOLD))
    spend(account)
    assert used(account, "calls") == 2


def test_what_is_assumed_counts_for_what_is_not_told(tmp_path: Path) -> None:
    settings = BudgetSettings(tokens=1000, usd=10.0, assume_per_call=Assumed(usd=2.0, tokens=300))
    account = opened(settings, ledger := Ledger(tmp_path / CALLS))
    account.budget.known("target", UNTOLD)  # what the backend says of itself at the start
    caller = ModelCaller(ScriptedModel(reply("yes", UNTOLD)), role="target", account=account, ledger=ledger)
    for number in range(2):
        caller.complete(ask(), CallKey("a", number))
    assert (used(account, "tokens"), used(account, "usd")) == (600, 4.0)
    again = opened(settings, ledger)
    assert (used(again, "tokens"), used(again, "usd")) == (600, 4.0)
    spend(again, tokens=(10, 350))
    with pytest.raises(BudgetSpent, match=r"960 tokens are used, and the next request .* may use 300 tokens"):
        spend(again)


def test_a_ledger_of_unknown_use_is_refused_at_the_start_until_a_price_is_given(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / CALLS)
    ModelCaller(ScriptedModel("yes"), role="target", ledger=ledger).complete(ask(), CallKey("a", 0))
    settings = BudgetSettings(usd=1.0)
    with pytest.raises(ConfigError, match="tells no price"):
        Budget(settings).open(ledger, Path("run"))
    account = Budget(settings, prices={"scripted": Price(input=1000.0, output=2000.0)}).open(ledger, Path("run"))
    assert used(account, "usd") == 0.02


# What is kept, and what is told -------------------------------------------------------------------------


def test_the_final_evaluation_is_kept_for_by_what_attempts_have_used() -> None:
    account = opened(BudgetSettings(calls=20))
    account.outlook = lambda: (4, 0, 2)
    spend(account)
    account.outlook = lambda: (4, 1, 2)  # one attempt was made, of two requests
    spend(account)
    for _ in range(10):
        spend(account, role="optimizer")
    with pytest.raises(BudgetSpent, match="12 calls are used, 8 calls are kept for the final evaluation"):
        spend(account, role="optimizer")
    account.finishing = True
    for _ in range(8):
        spend(account)
    with pytest.raises(BudgetSpent):
        spend(account)


def test_never_more_than_half_is_kept_and_a_share_is_kept_where_it_is_given() -> None:
    roles = LimitsByRole(optimizer=RoleLimits(calls=4))
    for settings, room in ((BudgetSettings(calls=10), 5), (BudgetSettings(calls=10, reserve_final=0.8), 2)):
        account = opened(settings)
        account.outlook = lambda: (100, 1, 1)
        for _ in range(room):
            spend(account)
        with pytest.raises(BudgetSpent, match="kept"):
            spend(account)
    account = opened(BudgetSettings(roles=roles, reserve_final=0.5))
    account.outlook = lambda: (100, 1, 1)
    for _ in range(4):
        spend(account, role="optimizer")  # the final evaluation needs no optimizer


def test_each_level_of_each_limit_is_told_once_over_all_processes(tmp_path: Path) -> None:
    ledger, told = Ledger(tmp_path / CALLS), list[list[str]]()
    settings = BudgetSettings(calls=10, roles=LimitsByRole(target=RoleLimits(calls=20)))
    for _ in range(3):
        events: list[dict[str, Any]] = []
        account = opened(settings, ledger)
        model = ScriptedModel("yes")
        caller = ModelCaller(model, role="target", account=account, ledger=ledger, emit=events.append)
        for _ in range(3):
            caller.complete(ask())
        told.append([event["warning"].partition(":")[0] for event in events if "warning" in event])
    assert told == [[], ["50% of budget.calls is used"], ["80% of budget.calls is used"]]


def test_wall_time_is_that_of_all_processes(tmp_path: Path) -> None:
    with pytest.raises(BudgetSpent, match=r"budget\.wall_minutes allows 2\.5 minutes, 3\.0 minutes are used\. What"):
        spend(Budget(BudgetSettings(wall_minutes=2.5)).open(Ledger(), Path("run"), 180.0))
    spend(Budget(BudgetSettings(wall_minutes=3.5)).open(Ledger(), Path("run"), 180.0))
    ledger = Ledger(tmp_path / CALLS)
    ModelCaller(ScriptedModel("yes", seconds=0.05), role="target", ledger=ledger).complete(ask(), CallKey("a", 0))
    ledger.close()
    killed = opened(BudgetSettings(wall_minutes=1.0), Ledger(tmp_path / CALLS))
    assert 0.04 < killed.earlier < 30, "of a process that was killed before any checkpoint, from its calls"


# Several runs -------------------------------------------------------------------------------------------


def test_runs_share_a_budget_and_finished_ones_are_counted_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        ledger = Ledger(tmp_path / name / CALLS)
        ModelCaller(ScriptedModel("yes"), role="target", ledger=ledger).complete(ask(), CallKey("s", 0))
        ledger.close()
    shared = Budget(BudgetSettings(calls=5))
    shared.count(tmp_path / "a")
    shared.count(tmp_path / "a")
    shared.count(tmp_path / "nothing there")
    second = shared.open(Ledger(tmp_path / "b" / CALLS), tmp_path / "b")
    third = shared.open(Ledger(), tmp_path / "c")
    shared.count(tmp_path / "b")
    spend(second)
    spend(third)
    spend(third)
    with pytest.raises(BudgetSpent, match="allows 5 calls"):
        spend(second)
    assert shared.standing() == {"budget.calls": [5, 5]}
    third.stop()
    with pytest.raises(BudgetSpent):
        spend(second)


def test_without_limits_nothing_is_written(tmp_path: Path) -> None:
    account = opened(BudgetSettings(), ledger := Ledger(tmp_path / CALLS))
    spend(account, send=lambda: reply("yes", UNTOLD))
    assert ledger.reserved() == [] and not account.used
