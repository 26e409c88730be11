"""O-S4 in whole commands: `skillopt audit`, and a run that goes on only once the findings are acknowledged."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from skillopt_testkit.project import Project
from skillopt_testkit.servers import ChatServer, Reply

STOCK = "Some other statement is stronger"
CHOICES = """
import json
from skillopt_kernel import PLUGIN_API, Attempt, Manifest, Message, Score, Splits, Task

choices = Manifest(
    kind="env", name="choices", api=PLUGIN_API, summary="multiple choice", factory="acme_choices:Choices"
)


class Choices:
    targets = frozenset({"chat"})
    isolation = "thread"

    def __init__(self, settings, context):
        self.folder = context.common.split_dir

    def splits(self):
        return Splits(*(self.tasks(name) for name in ("train", "val", "test")))

    def tasks(self, split):
        rows = json.loads((self.folder / split / "items.json").read_text("utf-8"))
        shown = ("question", "choices")
        return tuple(Task(row["id"], "mc", {key: row[key] for key in shown}, row["answer"]) for row in rows)

    def attempt(self, task, skill, target):
        shown = "\\n".join([task.inputs["question"], *task.inputs["choices"]])
        return Attempt(target.chat([Message("system", skill), Message("user", shown)]).text, target.trajectory)

    def score(self, task, attempt, judge):
        right = float(task.reference in attempt.output)
        return Score(right, right)
"""


def rows(first: int, count: int, stock: int) -> list[dict[str, Any]]:
    """Multiple-choice items; the first `stock` of them have the stock option, which is always right."""
    items = []
    for number in range(first, first + count):
        right = STOCK if number < first + stock else f"Statement number {number:03d} with the letter d holds"
        texts = [right, *(f"Statement number {number:03d} with the letter {letter} holds" for letter in "abc")]
        Random(number).shuffle(texts)
        items.append({"id": f"q{number}", "question": f"Which of {number}?", "choices": texts, "answer": right})
    return items


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A benchmark of multiple-choice tasks, installed as any third-party distribution is."""
    plain = Project.make(tmp_path)
    installed = tmp_path / "installed"
    metadata = "installed/acme_choices-1.0.dist-info"
    plain.write("installed/acme_choices.py", CHOICES)
    plain.write(f"{metadata}/METADATA", "Metadata-Version: 2.1\nName: acme-choices\nVersion: 1.0\n")
    plain.write(f"{metadata}/entry_points.txt", "[skillopt.envs]\nchoices = acme_choices:choices\n")
    for split, first, stock in (("train", 0, 20), ("val", 100, 0), ("test", 200, 0)):
        plain.write(f"data/{split}/items.json", json.dumps(rows(first, 40 if stock else 12, stock)))
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    return Project(tmp_path, {"PYTHONPATH": path, "OPENAI_COMPATIBLE_API_KEY": "key"})


def configure(project: Project, **changes: Any) -> str:
    sections = {
        "_base_": "package:skillopt_kernel/default.yaml",
        "train": {"num_epochs": 1, "batch_size": 40},
        "env": {"name": "choices", "split_mode": "split_dir", "split_dir": "data"},
        "model": {"backend": "openai_compatible", "optimizer": "m", "target": "m"},
        **changes,
    }
    return project.write("mine.yaml", json.dumps(sections)).name


def test_o_s4_the_audit_names_the_option_with_precision_and_coverage(project: Project) -> None:
    done = project.run("audit", configure(project))
    assert done.code == 1, done.err
    (line,) = [line for line in done.out.splitlines() if line.startswith("Finding:")]
    assert line.startswith(f'Finding: train: the option "{STOCK}" is right in 20 of the 20 tasks that offer it')
    assert "precision 1.00" in line and "against 0.25 by chance" in line and "coverage 0.50 (20 of 40" in line
    found = json.loads(project.run("audit", "mine.yaml", "--json").out)
    assert found["splits"] == {"train": 40, "selection": 12, "test": 12}
    assert [(one["kind"], one["split"]) for one in found["findings"]] == [("option_text", "train")]
    assert len(found["findings"][0]["tasks"]) == 20
    assert found["audit"] in done.out


def test_o_s4_a_run_goes_on_only_after_the_findings_are_acknowledged(project: Project) -> None:
    audited = configure(project, hooks={"plugins": ["data_audit"]})
    refused = project.run("train", audited, "--out", "run").refused(STOCK, "acknowledge them: -o hooks.settings.")
    assert not (project.folder / "run").exists(), "nothing was written or spent"
    (flag,) = re.findall(r"hooks\.settings\.data_audit\.acknowledged=audit-[0-9a-f]{8}", refused.err)
    other = flag.rpartition("-")[0] + "-00000000"
    project.run("train", audited, "--out", "run", "-o", other).refused(
        "audit-00000000 was acknowledged, which are other"
    )
    with ChatServer(lambda _: Reply(STOCK)) as server:
        url = f"model.openai_compatible_base_url={server.url}"
        for number, accepted in enumerate((flag, "hooks.settings.data_audit.acknowledged=all")):
            done = project.run("train", audited, "--out", f"run{number}", "-o", accepted, url).ok()
            assert "acknowledged as" in done.err and STOCK in done.err
            assert project.json(f"run{number}/summary.json")["status"] == "finished"


def test_clean_data_ends_with_0_and_a_run_that_is_audited_says_nothing(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    done = project.run("audit", "config.yaml").ok()
    assert done.out.splitlines()[0] == "Data of config: 12 train, 12 selection, 8 test tasks"
    assert done.out.endswith("No finding.\n")
    audited = ("-o", "hooks.plugins=[data_audit]", "train.num_epochs=1")
    assert "data_audit" not in project.run("train", "config.yaml", "-q", *audited).ok().err


def test_what_cannot_be_audited_is_said_in_a_sentence(project: Project) -> None:
    project.run("audit").refused("CONFIG is missing")
    project.run("audit", "none.yaml").refused("none.yaml")
    project.run("audit", configure(project, env={})).refused("env.name is not set")
    plain = {"name": "searchqa", "split_mode": "split_dir", "split_dir": "data"}
    project.run("audit", configure(project, env=plain)).refused("items.json")
    settings = {"plugins": ["data_audit"], "settings": {"data_audit": {"acknowledged": "yes"}}}
    project.run("train", configure(project, hooks=settings)).refused("must be the name that the audit printed")


def test_repeated_ids_are_refused_by_the_loader_with_every_id(tmp_path: Path) -> None:
    """O-S1: an environment that loads through the shared loader never gets as far as the audit."""
    project = Project.make(tmp_path)
    row = {"question": "?", "context": "", "answers": ["a"]}
    for split, ids in (("train", ["q1", "q2"]), ("val", ["q2"]), ("test", ["q3", "q3"])):
        project.write(f"data/{split}/items.json", json.dumps([{"id": one, **row} for one in ids]))
    project.run("audit", "config.yaml").refused(
        "the test split holds 1 id more than once: 'q3'", "both train and selection: 'q2'"
    )
