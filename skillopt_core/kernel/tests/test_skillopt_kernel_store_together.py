"""Writes that are joined: each is written once, in a list that may hold others', and each waits for its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from skillopt_kernel.store.together import Together


def in_threads(count: int, put: Callable[[int], None]) -> list[threading.Thread]:
    threads = [threading.Thread(target=put, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


def test_what_comes_while_a_write_is_under_way_is_in_the_next_one_together() -> None:
    began, go_on = threading.Event(), threading.Event()
    written: list[list[int]] = []

    def write(items: list[int]) -> None:
        written.append(items)
        began.set()
        assert go_on.wait(60)

    together = Together(write)
    first = threading.Thread(target=together.put, args=(-1,))
    first.start()
    assert began.wait(60)
    rest = in_threads(10, together.put)
    while len(together._waiting) < 10:
        assert rest[0].is_alive()
    go_on.set()
    for thread in (first, *rest):
        thread.join(60)
    assert written[0] == [-1]
    assert len(written) == 2
    assert sorted(written[1]) == list(range(10))


def test_nobody_returns_before_its_own_item_is_written_and_none_is_written_twice() -> None:
    written: list[int] = []
    early: list[int] = []
    together: Together[int] = Together(written.extend)

    def put(number: int) -> None:
        for at in range(number * 100, number * 100 + 100):
            together.put(at)
            if at not in written:
                early.append(at)

    for thread in in_threads(8, put):
        thread.join(60)
    assert early == []
    assert sorted(written) == list(range(800))


def test_a_write_that_fails_fails_for_each_of_its_items_and_for_no_other() -> None:
    written: list[int] = []

    def write(items: list[int]) -> None:
        if -1 in items:
            raise OSError("no space")
        written.extend(items)

    together = Together(write)
    with pytest.raises(OSError, match="no space"):
        together.put(-1)
    together.put(1)
    assert written == [1]
