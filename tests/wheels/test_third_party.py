"""A benchmark, a gate and a hook by others: from their wheels beside ours, found by name, trained with.

The model is a loopback server. Its target adds well once the skill tells it to carry; its optimizer proposes that rule.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import zipfile

import pytest
import skillopt_kernel
from skillopt_testkit import ChatServer

RULE = "Carry the tens."
PACKAGES = ("acme-skillopt-env-arithmetic", "acme-skillopt-gate-strictly-more", "acme-skillopt-hook-journal")
CONFIGURATION = """\
train: {num_epochs: 2, train_size: 0, batch_size: 4, seed: 3}
optimizer: {lr_scheduler: constant, use_slow_update: false, use_meta_skill: false}
evaluation: {gate_metric: strictly_more, more_tasks: 2}
env: {name: arithmetic, digits: 2, held_out_tasks: 6, workers: 4}
model:
  optimizer_backend: openai_compatible
  target_backend: openai_compatible
  optimizer: acme-optimizer
  target: acme-target
  openai_compatible_base_url: ADDRESS
  openai_compatible_api_key: none
hooks:
  plugins: [journal]
  settings: {journal: {file: diary.md}}
"""


def play(body):
    """One reply of either role."""
    text = "\n".join(message["content"] for message in body["messages"])
    if body["model"] == "acme-target":
        one, other = map(int, re.findall(r"How much is (\d+) \+ (\d+)\?", text)[-1])
        carried = one % 10 + other % 10 >= 10 and RULE not in text
        return f"It is {one + other - (10 if carried else 0)}"
    edits = [] if f"- {RULE}" in text.split("Trajector")[0] else [{"op": "append", "content": f"- {RULE}"}]
    return json.dumps(
        {"reasoning": "tens are lost", "patch": {"edits": edits}, "edits": edits, "selected_indices": [0]}
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_they_import_the_public_api_only(root, package):
    files = list((root / "tests/third_party" / package / "src").rglob("*.py"))
    assert len(files) == 2
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert not [alias for alias in node.names if alias.name.startswith("skillopt_")], path
            if isinstance(node, ast.ImportFrom) and node.module.startswith("skillopt_"):
                assert node.module == "skillopt_kernel", path
                assert {alias.name for alias in node.names} <= set(skillopt_kernel.__all__), path


def test_they_train_beside_our_wheels(installation):
    installation.install("skillopt-core", *PACKAGES)
    listed = installation.skillopt("plugins")
    for name in ("arithmetic", "strictly_more", "journal"):
        assert name in listed
    assert "0 findings" in installation.skillopt("plugins", "check")
    assert "more_tasks" in installation.skillopt("plugins", "show", "gate", "strictly_more")

    with ChatServer(play) as server:
        config = installation.folder / "sums.yaml"
        config.write_text(CONFIGURATION.replace("ADDRESS", server.url))
        assert "journal" in installation.skillopt("hooks", "explain", "sums.yaml")
        installation.skillopt("train", "sums.yaml", "--out", "run")
    run = installation.folder / "run"

    assert f"- {RULE}" in (run / "best_skill.md").read_text()
    history = json.loads((run / "history.json").read_text())
    actions = [step["action"] for step in history]
    assert "accept_new_best" in actions
    assert json.loads((run / "summary.json").read_text())["best_selection_hard"] == 1.0

    diary = (installation.folder / "diary.md").read_text()
    assert diary.startswith("# run\n")
    assert [line.partition(": ")[2] for line in diary.splitlines() if line.startswith("- step")] == actions
    assert diary.endswith("The end: finished.\n")
    state = json.loads((run / "runtime_state.json").read_text())
    assert '"journal": {"accept_new_best": 1' in json.dumps(state), "what the hook counted is saved with the run"


@pytest.mark.parametrize("package", PACKAGES)
def test_they_pass_the_conformance_suites(root, package, tmp_path, third_party_dist):
    """In this environment, with the package on the path as its wheel has it: metadata, modules and nothing else."""
    wheel = next(third_party_dist.glob(f"{package.replace('-', '_')}-*.whl"))
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    tests = root / "tests/third_party" / package / "tests"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", tests],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
