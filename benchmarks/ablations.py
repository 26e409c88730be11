"""What each mechanism of training adds, on a simulated world: the whole method beside the method without one of them.

python benchmarks/ablations.py                                  every arm, 10 seeds, as many processes as processors
python benchmarks/ablations.py --seeds 3 --arms full --arms "no gate"
python benchmarks/ablations.py --write benchmarks/results/ablations.md

Each seed is another world (which questions are hard) and another run (batches, draws of the models), and every arm
sees the same ones, so differences to the whole method are paired. Nothing is called over a network.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from attrs import frozen
from skillopt_commands.student import student_interval
from skillopt_kernel import train
from skillopt_kernel.hookspecs import hookimpl
from skillopt_kernel.statistics import Interval
from skillopt_kernel.version import version_of

KINDS = (
    "river", "tower", "bridge", "harbour", "market", "orchard", "mill", "abbey", "ferry", "quarry", "garden", "forge",
    "bakery", "library", "station", "theatre",
)  # fmt: skip
SPLITS = {"train": 3, "val": 3, "test": 8}
"""Split -> questions of each kind."""

HARMFUL = {
    "Answer from memory when the list is long.": {"all": 0.25},
    "Give two answers when you are not sure.": {"all": 0.2},
    "Always answer in a whole sentence.": {"all": 0.3},
    "Take the first name that the list has.": {"river": 0.6, "tower": 0.6, "bridge": 0.6},
    "Round every number to tens.": {"market": 0.6, "mill": 0.6, "ferry": 0.6},
    "Leave out whatever stands behind a comma.": {"abbey": 0.6, "quarry": 0.6, "forge": 0.6},
}
USELESS = (
    "Read every line twice.", "Keep your reasoning calm.", "Note which line you have used.", "Mind the spelling.",
    "Think before you answer.", "Do not hurry.", "Be polite.", "Look at the whole list.",
)  # fmt: skip
QUALITY: Mapping[str, Mapping[str, float]] = {
    "target": {"partial": 0.3, "noise": 0.05, "lapses": 0.15},
    "optimizer": {
        "insight": 0.35, "harmful": 0.4, "distractors": 0.5, "duplicates": 0.3, "bad_anchors": 0.1, "over_budget": 0.1,
        "memory": 0.9, "merging": 0.9, "ranking": 0.8,
    },
}  # fmt: skip

WHOLE: Mapping[str, Any] = {
    "_base_": "package:skillopt_kernel/default.yaml",
    "train": {"num_epochs": 4, "batch_size": 12, "accumulation": 2, "samples_per_task": 2},
    "gradient": {"minibatch_size": 4, "merge_batch_size": 4},
    "optimizer": {
        "lr_scheduler": "cosine", "learning_rate": 4, "min_learning_rate": 2, "slow_update_samples": 16,
        "use_skill_aware_reflection": True,
    },
    "env": {"name": "searchqa", "split_mode": "split_dir", "workers": 1},
    "model": {"optimizer_backend": "simulated", "target_backend": "simulated"},
}  # fmt: skip
"""The whole method. One worker: with noise, which sample an answer is may otherwise depend on the order of threads."""


class Forgetful:
    """A hook plugin that takes the step buffer out of what the optimizer is told."""

    @hookimpl(wrapper=True)
    def skillopt_reflect(self, step: Any) -> Any:
        step.memory = ""
        return (yield)

    @hookimpl(wrapper=True)
    def skillopt_meta_skill(self, epoch: Any) -> Any:
        epoch.memory = ""
        return (yield)


@frozen
class Arm:
    """One way to train: what differs from the whole method, as `-o` takes it, and a hook plugin of its own."""

    name: str
    overrides: tuple[str, ...] = ()
    plugin: type | None = None


PLAIN = ("optimizer.use_skill_aware_reflection=false",)
ARMS = (
    Arm("full"),
    Arm("no gate", ("evaluation.use_gate=false",)),
    Arm("no slow update", ("optimizer.use_slow_update=false",)),
    Arm("slow update forced", ("optimizer.slow_update_gate_with_selection=false",)),
    Arm("no meta skill", ("optimizer.use_meta_skill=false",)),
    Arm("no step buffer", plugin=Forgetful),
    Arm("step buffer kept", ("gradient.keep_step_buffer=true",)),
    Arm("failures only", ("gradient.failure_only=true",)),
    Arm("merge by two", ("gradient.merge_batch_size=2",)),
    Arm("merge at once", ("gradient.merge_batch_size=64",)),
    Arm("constant budget", ("optimizer.lr_scheduler=constant",)),
    Arm("autonomous budget", ("optimizer.lr_control_mode=autonomous",)),
    Arm("no budget", ("optimizer.lr_control_mode=none",)),
    Arm("no accumulation", ("train.accumulation=1",)),
    Arm("one sample a task", ("train.samples_per_task=1",)),
    Arm("not skill-aware", PLAIN),
    Arm("rewrite by suggestions", (*PLAIN, "optimizer.skill_update_mode=rewrite_from_suggestions")),
    Arm("whole rewrites", (*PLAIN, "optimizer.skill_update_mode=full_rewrite_minibatch")),
)


@frozen
class Result:
    """One run: test scores of the first and the best skill, model calls, seconds."""

    first: float
    best: float
    calls: int
    seconds: float


def run(arm: Arm, seed: int) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_world(place)
        plugins = [("ablation", arm.plugin())] if arm.plugin else []
        overrides = [
            f"model.simulated_world={place / 'world.yaml'}",
            f"model.simulated_seed={seed}",
            f"env.split_dir={place}",
            f"env.skill_init={place / 'skill.md'}",
            f"train.seed={seed}",
        ]
        config = place / "config.yaml"
        config.write_text(yaml.safe_dump(dict(WHOLE)), encoding="utf-8")
        summary = train(config, [*overrides, *arm.overrides], out=place / "run", plugins=plugins)
    if summary.baseline_test_hard is None or summary.test_hard is None:
        raise SystemExit(f"{arm.name}, seed {seed}: the run ended without test scores ({summary.status})")
    calls = summary.token_summary["_total"]["calls"]
    return Result(summary.baseline_test_hard, summary.test_hard, calls, summary.total_wall_time_s)


def write_world(folder: Path) -> None:
    """Questions of each kind, which needs two rules of its own; rules that harm and rules that do nothing."""
    rules: dict[str, Any] = {}
    for kind in KINDS:
        rules[f"{kind}-name"] = {"sentence": f"Give the name of a {kind} without its article."}
        rules[f"{kind}-line"] = {"sentence": f"Take a {kind} from the line that is asked for."}
    rules |= {f"harmful-{at}": {"sentence": text, "harms": harms} for at, (text, harms) in enumerate(HARMFUL.items())}
    rules |= {f"useless-{at}": {"sentence": text} for at, text in enumerate(USELESS)}
    needs = {kind: [f"{kind}-name", f"{kind}-line"] for kind in KINDS}
    kinds = {k: {"marker": f"[{k}]", "needs": needs[k], "right_without": 0.1, "right_with": 0.95} for k in KINDS}
    world = {"data": ["*/items.json"], "kinds": kinds, "rules": rules, **QUALITY}
    (folder / "world.yaml").write_text(yaml.safe_dump(world, sort_keys=False), encoding="utf-8")
    (folder / "skill.md").write_text("# Lists\n\n- Answer in few words.\n", encoding="utf-8")
    number = 0
    for split, each in SPLITS.items():
        items = []
        for kind in KINDS * each:
            number += 1
            answer = f"{kind} number {number}"
            asked = {"id": f"{split}-{number}", "question": f"[{kind}] Which {kind} stands at line {number}?"}
            items.append({**asked, "context": f"[DOC] Line {number} has {answer}.", "answers": [answer]})
        (folder / split).mkdir()
        (folder / split / "items.json").write_text(json.dumps(items), encoding="utf-8")


def paired(results: Mapping[str, Sequence[Result]], name: str) -> Interval | None:
    """The mean difference of an arm to the whole method, seed by seed."""
    return student_interval([one.best - base.best for one, base in zip(results[name], results["full"], strict=True)])


def reading(differences: Mapping[str, Interval | None]) -> list[str]:
    """The arms by what their intervals say, as a list in Markdown."""
    groups: dict[str, list[str]] = {"worse than full": [], "better than full": [], "no difference shown": []}
    for name, found in differences.items():
        if found is None or found.low <= 0.0 <= found.high:
            groups["no difference shown"].append(name)
        else:
            groups["worse than full" if found.high < 0.0 else "better than full"].append(name)
    return [f"* {group}: {', '.join(names) or 'none'}" for group, names in groups.items()]


def table(results: Mapping[str, Sequence[Result]]) -> list[str]:
    """One row an arm, in Markdown."""
    full = results["full"]
    lines = [
        "| arm | test score of the best skill | difference to full | model calls | time |",
        "|---|---|---|---|---|",
    ]
    for name, ran in results.items():
        mean = student_interval([one.best for one in ran])
        calls = sum(one.calls for one in ran) / len(ran)
        time = sum(one.seconds for one in ran) / sum(one.seconds for one in full)
        versus = "" if name == "full" else shown(paired(results, name), "+")
        lines.append(f"| {name} | {shown(mean)} | {versus} | {calls:,.0f} | {time:.2f} |")
    return lines


def shown(interval: Interval | None, sign: str = "") -> str:
    if interval is None:
        return "-"
    return f"{interval.estimate:{sign}.3f} ({interval.low:{sign}.3f} to {interval.high:{sign}.3f})"


def report(results: Mapping[str, Sequence[Result]], seeds: int) -> str:
    """The table with what it was made of."""
    first = sum(one.first for one in results["full"]) / seeds
    counts = {split: each * len(KINDS) for split, each in SPLITS.items()}
    return "\n".join(
        [
            "# What each mechanism adds on a simulated world",
            "",
            f"Made on {datetime.now(UTC):%Y-%m-%d} by `python benchmarks/ablations.py --seeds {seeds}` with "
            f"skillopt-kernel {version_of('skillopt-kernel')}, Python {platform.python_version()}.",
            "",
            f"The world: {len(KINDS)} kinds of question, each of which needs two rules of its own "
            f"({2 * len(KINDS)} rules to be learnt), {len(HARMFUL)} rules that harm and {len(USELESS)} that do "
            f"nothing; {counts['train']} training, {counts['val']} selection and {counts['test']} test tasks; "
            f"target {dict(QUALITY['target'])}, optimizer {dict(QUALITY['optimizer'])} (the README of "
            f"skillopt-backend-simulated says what each is). The start skill has a test score of {first:.3f}.",
            "",
            "The whole method (`full`): four epochs of two steps, accumulation of two batches of 12 tasks, two samples "
            "a task, cosine schedule from 4 to 2 edits, hard gate, slow update behind the gate, meta skill, step "
            "buffer of the epoch, skill-aware reflection. Each other arm differs in what its name says; the two modes "
            "of rewriting exclude skill-aware reflection, so they are to be compared with `not skill-aware`.",
            "",
            f"Means over {seeds} seeds with the 95 % interval of Student's t; differences are paired by seed. An "
            "interval that holds zero shows no difference at this number of seeds. Time is the sum of wall times, full "
            "= 1; the models answer at once, so it is the loop's own work on a machine that did other things too.",
            "",
            *table(results),
            "",
            "By the intervals of the differences:",
            "",
            *reading({name: paired(results, name) for name in results if name != "full"}),
            "",
            f"This is one world. Eight steps of 4 to 2 edits are fewer than its {2 * len(KINDS)} rules, so what lets a "
            "run write more of them gains here. Where nothing differs, one interval in twenty excludes zero by chance.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="runs of each arm")
    parser.add_argument("--arms", action="append", choices=[arm.name for arm in ARMS], help="an arm; repeatable")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="runs at the same time")
    parser.add_argument("--write", type=Path, help="also write the report to this file")
    options = parser.parse_args()
    arms = [arm for arm in ARMS if not options.arms or arm.name in options.arms or arm.name == "full"]
    jobs = [(arm, seed) for seed in range(options.seeds) for arm in arms]
    results: dict[str, list[Result]] = {arm.name: [] for arm in arms}
    with ProcessPoolExecutor(options.processes) as pool:
        for (arm, seed), result in zip(jobs, pool.map(run, *zip(*jobs, strict=True)), strict=True):
            results[arm.name].append(result)
            sys.stderr.write(f"seed {seed}, {arm.name}: {result.best:.3f}\n")
    text = report(results, options.seeds)
    if options.write:
        options.write.parent.mkdir(parents=True, exist_ok=True)
        options.write.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
