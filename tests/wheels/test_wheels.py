"""What is shipped works by itself: from wheels, offline, in an empty environment outside the checkout."""

from __future__ import annotations

import json
import subprocess
import zipfile
from email.parser import Parser

TWO_RUNS = """
import skillopt_core
from skillopt_core import load_config, train
config = load_config("demo", ["train.num_epochs=1"])
for name in ("a", "b"):
    print(train(config, out=name).best_selection_hard)
assert skillopt_core.__file__.endswith("site-packages/skillopt_core/__init__.py"), skillopt_core.__file__
"""

WORLD = """
data: [items.json]
kinds: {sum: {marker: plus, needs: [digits], right_without: 0.2, right_with: 1.0}}
rules: {digits: {sentence: "Write digits."}}
"""
ITEMS = json.dumps([{"question": f"What is {n} plus {n}?", "answers": [f"{n + n}"]} for n in range(20)])


def wheel_of(dist, distribution):
    found = list(dist.glob(f"{distribution.package}-*.whl"))
    assert len(found) == 1, found
    return zipfile.ZipFile(found[0])


def test_every_file_of_the_package_is_in_its_wheel(dist, distribution):
    with wheel_of(dist, distribution) as wheel:
        shipped = {name for name in wheel.namelist() if ".dist-info/" not in name and not name.endswith("/")}
    source = distribution.folder / "src"
    files = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    assert shipped == {name for name in files if "__pycache__" not in name and ".egg-info" not in name}


def test_the_metadata_says_what_users_need(dist, distribution):
    with wheel_of(dist, distribution) as wheel:
        text = wheel.read(next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))).decode()
    metadata = Parser().parsestr(text)
    assert metadata["Name"] == distribution.name
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    required = metadata.get_all("Requires-Dist") or []
    assert len(required) == len(distribution.requirements)
    assert not [line for line in required if "@" in line or "file:" in line], "no path of the workspace is left in it"
    assert metadata.get_payload().startswith(f"# {distribution.name}")


def test_the_bundle_and_an_environment_train_the_demo(installation):
    installation.install("skillopt-core", "skillopt-env-searchqa")
    listed = json.loads(installation.call("-m", "pip", "list", "--format", "json"))
    assert "skillopt-testkit" not in {row["name"] for row in listed}, "the test kit is for authors only"

    printed = installation.skillopt("train", "demo", "--out", "run")
    assert "best_skill.md" in printed
    summary = json.loads((installation.folder / "run/summary.json").read_text())
    assert summary["status"] == "finished"
    assert summary["best_selection_hard"] > 0.5
    best = (installation.folder / "run/best_skill.md").read_text()
    assert best != (installation.folder / "run/skills/skill_v0000.md").read_text()

    assert "analyst_failure" in installation.skillopt("config", "show", "demo", "--prompts")
    assert "simulated" in installation.skillopt("plugins")
    assert "0 findings" in installation.skillopt("plugins", "check")
    assert all((installation.folder / "bin" / name).is_file() for name in ("skillopt-train", "skillopt-eval"))
    evaluated = installation.skillopt(
        "eval", "demo", "--skill", "run/best_skill.md", "--split", "test", "--out", "eval"
    )
    assert evaluated.strip()
    assert json.loads((installation.folder / "eval/eval_summary.json").read_text())["hard"] > 0.5

    first, second = map(float, installation.call("-c", TWO_RUNS).split())
    assert first == second > 0, "two runs in one process know nothing of each other"


def test_o_u1_own_tasks_train_with_the_bundle_alone(installation):
    installation.install("skillopt-core")
    rows = "".join(f"What is {n} plus {n}?,{n + n}\n" for n in range(20))
    (installation.folder / "tasks.csv").write_text(f"question,answer\n{rows}")
    (installation.folder / "world.yaml").write_text(WORLD)
    (installation.folder / "items.json").write_text(ITEMS)
    printed = installation.skillopt(
        "train", "--tasks", "tasks.csv", "--scorer", "exact", "--backend", "simulated", "--out", "run",
        "-o", "model.simulated_world=world.yaml", "train.num_epochs=1",
    )  # fmt: skip
    assert "tasks: 8 train, 4 selection, 8 test tasks" in printed
    start = (installation.folder / "run/skills/skill_v0000.md").read_text()
    assert start.startswith("# Doing these tasks"), "the environment's own skill is in its wheel"
    assert json.loads((installation.folder / "run/summary.json").read_text())["status"] == "finished"
    assert (installation.folder / "run/report.md").is_file()


def test_every_distribution_installs_together(installation, distributions):
    installation.install(*(each.name for each in distributions if each.name != "skillopt-testkit"))
    assert "0 findings" in installation.skillopt("plugins", "check")


def test_what_is_not_installed_is_named_with_its_cure(installation):
    installation.install("skillopt-core")
    config = installation.folder / "mine.yaml"
    config.write_text("env: {name: searchqa}\nmodel: {backend: simulated, simulated_world: world.yaml}\n")
    command = [installation.folder / "bin/skillopt", "train", config]
    done = subprocess.run(command, cwd=installation.folder, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install skillopt-env-searchqa" in done.stderr
    assert "mine.yaml:1" in done.stderr
    assert "Traceback" not in done.stderr
