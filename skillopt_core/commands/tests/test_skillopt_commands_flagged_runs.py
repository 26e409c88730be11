"""The installed commands `skillopt-train` and `skillopt-eval`, in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from skillopt_testkit.project import Finished, Project


@pytest.fixture
def project(skillopt_project: Project) -> Project:
    return skillopt_project


def run(project: Project, command: str, *words: str | Path) -> Finished:
    """Run one of the two commands as it is installed beside this Python."""
    script = Path(sys.executable).parent / command
    done = subprocess.run(
        [script, *map(str, words)],
        cwd=project.folder,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    return Finished(done.returncode, done.stdout, done.stderr, 0.0)


def test_both_are_console_scripts() -> None:
    names = {entry.name for entry in entry_points(group="console_scripts")}
    assert {"skillopt-train", "skillopt-eval"} <= names


def test_training_with_flags_is_training_with_overrides(project: Project) -> None:
    flags = ["--num_epochs", "1", "--batch_size", "4", "--seed", "5", "--lr_scheduler", "linear", "--edit_budget", "3"]
    run(project, "skillopt-train", "--config", "config.yaml", *flags, "--out_root", "flags", "--quiet").ok()
    keys = [
        "train.num_epochs=1",
        "train.batch_size=4",
        "train.seed=5",
        "optimizer.lr_scheduler=linear",
        "edit_budget=3",
    ]
    project.run("train", "config.yaml", "-o", *keys, "--out", "keys").ok()
    of_flags, of_keys = (project.json(f"{name}/config.json") for name in ("flags", "keys"))
    assert of_flags.pop("env") | {"out_root": None} == of_keys.pop("env")
    assert of_flags == of_keys
    texts = [(project.folder / name / "best_skill.md").read_bytes() for name in ("flags", "keys")]
    assert texts[0] == texts[1]


def test_an_evaluation_with_flags(project: Project) -> None:
    words = ["--config", "config.yaml", "--skill", "skill.md", "--split", "valid_unseen", "--test_env_num", "3"]
    run(project, "skillopt-eval", *words, "--out_root", "scores").ok()
    assert project.json("scores/eval_summary.json")["n_items"] == 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "Missing option '--config'"),
        (["--config", "none.yaml"], "there is no file"),
        (
            ["--config", "config.yaml", "--num_epoch", "2"],
            "No such option '--num_epoch'. Did you mean '--num_epochs'?",
        ),
        (["--config", "config.yaml", "--num_epochs"], "requires an argument"),
        (
            ["--config", "config.yaml", "--num_epochs", "two"],
            "--num_epochs: train.num_epochs: expected a whole number, got the text 'two'",
        ),
        (
            ["--config", "config.yaml", "--image_detail", "low"],
            "--image_detail: env.image_detail: is no key of the environment searchqa",
        ),
        (
            ["--config", "config.yaml", "--lr_scheduler", "cosin"],
            "--lr_scheduler: optimizer.lr_scheduler: there is no scheduler named 'cosin'. Did you mean 'cosine'?",
        ),
        (["--config", "config.yaml", "--target_backend", "simulatd"], "named 'simulatd'. Did you mean 'simulated'?"),
        (["--config", "config.yaml", "--split_mode", "ratoi"], "--split_mode: env.split_mode: expected one of ratio"),
        (["--config", "config.yaml", "extra"], "unexpected extra argument"),
    ],
)
def test_a_mistake_is_told_in_a_sentence(project: Project, words: list[str], told: str) -> None:
    run(project, "skillopt-train", *words).refused(told)


def test_a_retired_flag_is_warned_of_once_and_changes_nothing(project: Project) -> None:
    words = ["--config", "config.yaml", "--num_epochs", "1", "--quiet"]
    told = run(project, "skillopt-train", *words, "--max_analyst_rounds", "7", "--out_root", "with").ok()
    assert told.err.count("max_analyst_rounds") == 2  # the flag and its key, in one line
    assert told.err.startswith("Warning: --max_analyst_rounds: gradient.max_analyst_rounds: has no effect")
    assert not run(project, "skillopt-train", *words, "--out_root", "without").ok().err
    assert project.json("with/fingerprint.json") == project.json("without/fingerprint.json")
    skills = [(project.folder / name / "best_skill.md").read_bytes() for name in ("with", "without")]
    assert skills[0] == skills[1]
