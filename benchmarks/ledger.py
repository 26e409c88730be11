"""What the ledger costs: calls a second of a model that answers at once, without it, with it, and served from it.

Each call has a skill of 4 kB, which 100 calls share, and a question of 3 kB of its own, as a rollout has. The three
take turns in each round, so that a busy moment strikes all alike; what counts is their ratio in one run.

python benchmarks/ledger.py            prints a table
python benchmarks/ledger.py --write    also writes benchmarks/results/ledger.md
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reporting import tell
from skillopt_kernel.models.call_text import CallKey, describe_request
from skillopt_kernel.models.calling import NOBODYS, ModelCaller, _Call
from skillopt_kernel.models.ledger import Ledger
from skillopt_kernel.models.requests import ChatReply, ChatRequest, Message
from skillopt_kernel.records import Usage

CALLS, ROUNDS = 1_000, 5
REPLY = ChatReply("It is the second of them.\n<answer>the second</answer>", usage=Usage(1, 1_800, 16))
NO_TEXT = describe_request("", "", ChatRequest(()))


class AtOnce:
    """A chat model without any wait."""

    model = "at-once"

    def complete(self, request: ChatRequest) -> ChatReply:
        return REPLY


def requests(seed: int) -> list[ChatRequest]:
    generator = random.Random(seed)
    words = [f"word{number}" for number in range(5_000)]

    def text(length: int) -> str:
        made: list[str] = []
        while sum(map(len, made)) + len(made) < length:
            made += generator.choices(words, k=50)
        return " ".join(made)[:length]

    skills = [text(4_000) for _ in range(CALLS // 100)]
    return [
        ChatRequest((Message("system", skills[number // 100]), Message("user", text(3_000))), stage="rollout")
        for number in range(CALLS)
    ]


def per_second(threads: int, ask: Callable[[int], object]) -> float:
    with ThreadPoolExecutor(threads) as pool:
        began = time.perf_counter()
        list(pool.map(ask, range(CALLS)))
        return CALLS / (time.perf_counter() - began)


def one_round(threads: int, seed: int, folder: Path) -> dict[str, float]:
    """Calls a second of each of the three."""
    asked, ledger = requests(seed), Ledger(folder / f"calls-{threads}-{seed}.sqlite")
    caller = ModelCaller(AtOnce(), role="target", ledger=ledger)
    began = time.process_time()
    rates = {"without": per_second(threads, lambda at: caller._with_retries(asked[at], _Call("", NOBODYS, NO_TEXT)))}
    bare = time.process_time()
    rates["with"] = per_second(threads, lambda at: caller.complete(asked[at], CallKey(f"attempt-{at}")))
    rates["cpu"] = 1_000 * ((time.process_time() - bare) - (bare - began)) / CALLS
    rates["served"] = per_second(threads, lambda at: caller.complete(asked[at], CallKey(f"attempt-{at}")))
    (total,) = ledger.sums()
    assert (total["calls"], total["served_calls"]) == (CALLS, CALLS)
    ledger.close()
    return rates | {"bytes": ledger.path.stat().st_size / CALLS}


def table(rounds: dict[int, list[dict[str, float]]]) -> str:
    lines = [
        "| threads | without, calls/s | with, calls/s | ratio | ms more | CPU ms more | served, calls/s | kB on disk |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for threads, rates in rounds.items():
        names = ("without", "with", "served", "bytes", "cpu")
        without, recorded, served, size, cpu = (statistics.median(each[name] for each in rates) for name in names)
        ratio = statistics.median(each["with"] / each["without"] for each in rates)
        cost = 1_000 * (1 / recorded - 1 / without)
        lines.append(
            f"| {threads} | {without:,.0f} | {recorded:,.0f} | {ratio:.2f} | {cost:.2f} | {cpu:.2f} | {served:,.0f} "
            f"| {size / 1_000:.1f} |"
        )
    lines += [
        "",
        f"Medians of {ROUNDS} rounds of {CALLS:,} calls. Python {platform.python_version()}, {platform.system()}, "
        f"{os.cpu_count()} cores that other work shared. "
        "The model answers at once, so that `without` is the bare path of a call with its limit and retries; a real "
        "model takes a second, and the ledger adds the cost of a call to that.",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/ledger.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rounds = {threads: [one_round(threads, seed, Path(folder)) for seed in range(ROUNDS)] for threads in (1, 24)}
    tell("What the ledger costs", "ledger", table(rounds), write=arguments.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
