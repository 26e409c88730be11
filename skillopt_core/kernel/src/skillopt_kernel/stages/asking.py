"""How stages ask the optimizer: many calls side by side, and every failure typed and counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from skillopt_kernel.errors import ContextTooLong, ModelError, Pending, SkillOptError, UnusableReply
from skillopt_kernel.interfaces import UpdateMode
from skillopt_kernel.records import ItemReport

Item = TypeVar("Item")
Made = TypeVar("Made")


def in_parallel(workers: int, function: Callable[[Item], Made], items: Sequence[Item]) -> list[Made]:
    """`function` of each item on at most `workers` threads; results in the order of `items`.

    The first exception is raised once all that had begun has ended, so that no call is left behind; `Pending` once
    everything was asked.
    """
    if len(items) <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(max_workers=min(workers, len(items)), thread_name_prefix="skillopt-optimizer") as pool:
        calls = [pool.submit(function, item) for item in items]
        try:
            for call in calls:
                if not isinstance(call.exception(), Pending):
                    call.result()
        finally:
            pool.shutdown(cancel_futures=True)
    return [call.result() for call in calls]


def failure_sentence(error: ModelError) -> str:
    """A typed failure in a sentence that starts with its kind: a bad reply is not a failed call.

    One that no later call can mend (`PermanentError`) is raised again: it ends the run.
    """
    if isinstance(error, SkillOptError):
        raise error
    if isinstance(error, UnusableReply):
        return f"unusable_reply: {error}"
    if isinstance(error, ContextTooLong):
        return f"context_too_long: {error}"
    return f"call_failed: {type(error).__name__}: {error}"


def payload_problem(reply: Any, key: str) -> str | None:
    """What is wrong with a reply that must hold a list of objects under `key`; `None`: nothing."""
    items = reply.get(key)
    if not isinstance(items, list):
        return f'the object has no list under "{key}"'
    if not all(isinstance(item, dict) for item in items):
        return f'"{key}" must hold objects only'
    return None


def read_items(mode: UpdateMode, raw: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[ItemReport, ...]]:
    """The readable items of a reply in their order, and a report on each that was not."""
    items: list[Any] = []
    invalid: list[ItemReport] = []
    for index, one in enumerate(raw, 1):
        try:
            items.append(mode.read_item(one))
        except ValueError as error:
            invalid.append(ItemReport(index, one, "invalid", str(error)))
    return tuple(items), tuple(invalid)
