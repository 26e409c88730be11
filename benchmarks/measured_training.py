"""One training, or one bare loop over the same calls, in this process, and what it took as one line of JSON.

python benchmarks/measured_training.py train CONFIG OUT      train, into the run directory OUT
python benchmarks/measured_training.py bare RUN URL THREADS  ask what RUN asked once more, with the client alone
python benchmarks/measured_training.py profile CONFIG OUT    train, and tell the shares of one worker's time

A small training, or a few calls, come before what is measured, and load what is loaded once.

The other benchmarks start it, so that each measurement has a process of its own.
"""

from __future__ import annotations

import contextlib
import cProfile
import json
import os
import pstats
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai

WORKERS = 24


def measured(work: Callable[[], int]) -> dict[str, float]:
    """What `work`, which returns how many calls it made, took.

    seconds  wall time; cpu: seconds of CPU of this process; system: those of them spent in the operating system
    peak_mb  the most memory that it ever held, in 10^6 bytes
    waits    how often one of its threads gave its CPU away to wait
    """
    before = resource.getrusage(resource.RUSAGE_SELF)
    began, cpu = time.perf_counter(), time.process_time()
    calls = work()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    used = resource.getrusage(resource.RUSAGE_SELF)
    held = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return {
        "calls": calls, "seconds": seconds, "cpu": cpu, "system": used.ru_stime - before.ru_stime,
        "peak_mb": held / 1e6, "waits": used.ru_nvcsw - before.ru_nvcsw,
    }  # fmt: skip


def train(config: str, out: str, *overrides: str) -> int:
    from skillopt_kernel import train as train_skill

    return int(train_skill(config, overrides, out=out).token_summary["_total"]["calls"])


def recorded_requests(run: Path) -> list[dict[str, Any]]:
    """The body of each request of a run, in the order in which they ended."""
    from skillopt_kernel.models.ledger import CALLS, Ledger

    ledger = Ledger(run / CALLS, read_only=True)
    found = [call for number in range(1, len(ledger.calls()) + 1) if (call := ledger.call(number)) is not None]
    ledger.close()
    return [{"model": call["model"], "messages": call["request"]["messages"]} for call in found]


def bare(bodies: list[dict[str, Any]], url: str, threads: int) -> int:
    """Every request once, with nothing but the client and a pool of threads."""
    client = openai.OpenAI(api_key="none-needed", base_url=url, max_retries=0)
    with ThreadPoolExecutor(threads) as pool:
        return sum(reply.choices[0].message.content is not None for reply in pool.map(
            lambda body: client.chat.completions.create(**body), bodies
        ))  # fmt: skip


PARTS = {
    "the client: request, wait, reply": "skillopt_lib_chat/model.py:_post",
    "ledger": "models/ledger.py:record",
    "outcome: its files and its line": "store/outcomes.py:put",
    "the rest of a call: key, limit, retries, redaction, event": "models/calling.py:complete",
    "pool: what ends, what is next": "loop/attempts.py:_ended",
    "attempt and score": "loop/worker.py:perform",
}
"""Part of a worker's time -> the function that it is in, the innermost first: each has what those above it leave."""


def profiled(config: str, out: str) -> dict[str, float]:
    """Part -> its share of the time of one worker thread, while it is not waiting for a job."""
    from skillopt_kernel.loop import threads

    profiles: list[cProfile.Profile] = []
    work = threads.ThreadExecutor._work

    def watched(executor: threads.ThreadExecutor) -> None:
        if profiles:
            return work(executor)
        profiles.append(cProfile.Profile())
        return profiles[0].runcall(work, executor)

    threads.ThreadExecutor._work = watched  # type: ignore[method-assign]
    train(config, out)
    time.sleep(1.0)  # the worker ends after the run
    found = {f"{file}:{name}": each[3] for (file, _, name), each in pstats.Stats(profiles[0]).stats.items()}
    taken = {part: next((time for key, time in found.items() if key.endswith(at)), 0.0) for part, at in PARTS.items()}
    waited = next(
        time for key, time in found.items() if key.endswith(":<method 'get' of '_queue.SimpleQueue' objects>")
    )
    whole = next(time for key, time in found.items() if key.endswith("loop/threads.py:_work")) - waited
    client, ledger, outcome, call, pool, attempt = taken.values()
    own = (client, ledger, outcome, call - client - ledger, pool, attempt - call)
    return {part: max(0.0, seconds) / whole for part, seconds in zip(PARTS, own, strict=True)}


def in_own_process(*arguments: object) -> dict[str, float]:
    """Measure in a process of its own; ends the benchmark with what that process said when it fails."""
    done = subprocess.run(
        [sys.executable, __file__, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=False,
        env={**os.environ, "OPENAI_COMPATIBLE_API_KEY": "none-needed"},
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"the measured process ended with exit code {done.returncode}; what it says stands above.")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def write_config(folder: Path, url: str, changes: Mapping[str, Mapping[str, Any]] | None = None) -> Path:
    """`config.yaml` and a start skill beside the data in `folder`: two epochs of four steps, nothing switched off."""
    sections: dict[str, dict[str, Any]] = {
        "train": {"num_epochs": 2, "batch_size": 20},
        "env": {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data", "skill_init": "skill.md",
                "workers": WORKERS},
        "model": {"backend": "openai_compatible", "openai_compatible_base_url": url, "optimizer": "sim-optimizer",
                  "target": "sim-target"},
    }  # fmt: skip
    for name, change in (changes or {}).items():
        sections[name] = {**sections.get(name, {}), **change}
    (folder / "skill.md").write_text("# Answering\n\n- Answer in few words.\n", encoding="utf-8")
    path = folder / "config.yaml"
    path.write_text(json.dumps({"_base_": "package:skillopt_kernel/default.yaml", **sections}), encoding="utf-8")
    return path


def main(arguments: list[str]) -> int:
    with contextlib.redirect_stdout(sys.stderr):
        if arguments[0] != "bare":
            train(arguments[1], f"{arguments[2]}-warm", "train.num_epochs=1", "train.batch_size=2", "env.limit=2")
        if arguments[0] == "train":
            result = measured(lambda: train(*arguments[1:]))
        elif arguments[0] == "profile":
            result = profiled(*arguments[1:])
        else:
            bodies, threads = recorded_requests(Path(arguments[1])), int(arguments[3])
            bare(bodies[:threads], arguments[2], threads)  # opens what is opened once
            result = measured(lambda: bare(bodies, arguments[2], threads))
    print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
