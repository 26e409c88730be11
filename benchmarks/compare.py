"""Another trainer's command and ours against the same server, in turn, and both in one table.

python benchmarks/compare.py --other 'their-train --api {url} --data {data} --out {out}' --skill 'best_skill.md'
python benchmarks/compare.py --other '...' --url URL --data DIR      against a server of yours

In the command {url} is the base URL, which ends in /v1, {data} the folder with train, val and test, and {out} a folder
of its own, in which the file that --skill names (a pattern is allowed) is its final skill. The models are sim-target
and sim-optimizer. Without --url a simulated world is served. Calls, tokens and concurrency are the server's count (GET
/stats, as `simulated_server.py` gives it); the score is of every test question, asked of the target with the final
skill as the system message, after both have ended: neither trainer's own word counts.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import openai
from measured_training import WORKERS, write_config
from reporting import machine, tell
from simulated_server import reset, serving, stats
from simulated_world import read_questions, score_of, write_data

OURS = "from skillopt_kernel.cli.main import main; raise SystemExit(main())"
INSTRUCTION = "Answer the question. Put the answer into <answer></answer>.\n\n"


def run(command: list[str], url: str, log: Path) -> dict[str, Any]:
    """Run a trainer; what the server counted meanwhile, and `wall_s`. Ends the benchmark when it fails."""
    reset(url)
    began = time.monotonic()
    environment = {**os.environ, "OPENAI_COMPATIBLE_API_KEY": "none-needed", "OPENAI_API_KEY": "none-needed"}
    with log.open("wb") as output:
        try:
            done = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, env=environment, check=False)
        except OSError as error:
            raise SystemExit(f"{command[0]} cannot be started: {error.strerror}.") from error
    if done.returncode:
        last = log.read_text(encoding="utf-8", errors="replace")[-2_000:]
        raise SystemExit(f"{shlex.join(command)} ended with exit code {done.returncode}; its last words:\n{last}")
    return {**stats(url), "wall_s": time.monotonic() - began}


def final_skill(out: Path, pattern: str) -> str:
    """The text of the one file that the pattern names. Ends the benchmark when there is none, or more than one."""
    found = sorted(out.glob(pattern))
    if len(found) != 1:
        raise SystemExit(f"--skill {pattern!r} names {len(found)} files in the trainer's folder; it must name one.")
    return found[0].read_text(encoding="utf-8")


def score_on_test_tasks(url: str, data: Path, skill: str) -> float:
    """The share of the test questions that the target answers right with this skill."""
    client = openai.OpenAI(api_key="none-needed", base_url=url)
    questions = read_questions(data, "test")

    def ask(question: str) -> str:
        messages: Any = [{"role": "system", "content": skill}, {"role": "user", "content": INSTRUCTION + question}]
        reply = client.chat.completions.create(model="sim-target", messages=messages)
        return reply.choices[0].message.content or ""

    with ThreadPoolExecutor(WORKERS) as pool:
        return score_of(zip(questions.values(), pool.map(ask, questions), strict=True))


def table(rows: dict[str, dict[str, Any]]) -> str:
    heads = (
        "trainer",
        "wall, s",
        "target calls",
        "optimizer calls",
        "calls at once",
        "at most",
        "tokens",
        "test score",
    )
    lines = [f"| {' | '.join(heads)} |", "|---|" + "---:|" * (len(heads) - 1)]
    for name, row in rows.items():
        tokens = sum(count for key, count in row.items() if key.endswith("_tokens"))
        at_once = row["busy_s"] / row["span_s"] if row["span_s"] else 0.0
        lines.append(
            f"| {name} | {row['wall_s']:.1f} | {row.get('target_calls', 0):,} | {row.get('optimizer_calls', 0):,} "
            f"| {at_once:.1f} | {row['peak']} | {tokens:,} | {row['score']:.3f} |"
        )
    return "\n".join([*lines, "", machine()])


def compared(chosen: argparse.Namespace, folder: Path, url: str) -> dict[str, dict[str, Any]]:
    """Both trainers, each run and then measured."""
    data = (chosen.data or folder / "data").resolve()
    config = write_config(folder, url)
    settings = json.loads(config.read_text(encoding="utf-8"))
    settings["env"]["split_dir"] = str(data)
    config.write_text(json.dumps(settings), encoding="utf-8")
    theirs = shlex.split(chosen.other.format(url=url, data=data, out=folder / "other"))
    ours = [sys.executable, "-c", OURS, "train", str(chosen.config or config), "--out", str(folder / "ours")]
    rows: dict[str, dict[str, Any]] = {}
    (folder / "other").mkdir()
    for name, command, pattern in (("other", theirs, chosen.skill), ("ours", ours, "best_skill.md")):
        rows[name] = run(command, url, folder / f"{name}.log")
        rows[name]["skill"] = final_skill(folder / name, pattern)
    for row in rows.values():
        row["score"] = score_on_test_tasks(url, data, row["skill"])
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--other", required=True, help="the other trainer's command, with {url}, {data} and {out}")
    parser.add_argument("--skill", default="best_skill.md", help="its final skill, in {out}; a pattern is allowed")
    parser.add_argument("--config", type=Path, help="our configuration, if not two epochs of batches of 20")
    parser.add_argument("--url", default="", help="base URL of another server, which gives /stats; with --data")
    parser.add_argument("--data", type=Path, help="its data: <split>/items.json")
    parser.add_argument("--sizes", type=int, nargs=3, default=[80, 60, 120], help="tasks of train, val and test")
    parser.add_argument("--latency-target", type=float, default=0.3, help="mean seconds of the target's replies")
    parser.add_argument("--latency-optimizer", type=float, default=1.0, help="mean seconds of the optimizer's replies")
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/compare.md")
    chosen = parser.parse_args()
    if bool(chosen.url) != bool(chosen.data):
        parser.error("--url and --data belong together")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not chosen.url:
            write_data(folder / "data", 12, dict(zip(("train", "val", "test"), chosen.sizes, strict=True)))
        own = serving(folder / "data", chosen.latency_target, chosen.latency_optimizer)
        with nullcontext(chosen.url) if chosen.url else own as url:
            rows = compared(chosen, folder, url)
    tell("Two trainers on one server", "compare", table(rows), write=chosen.write)
    return 0


if __name__ == "__main__":
    sys.exit(main())
