"""A user's path with tasks of their own: what docs/your-own-tasks.md says, run as it stands."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from here import Here
from receipts_world import RULES, Receipts
from skillopt_kernel.config import load_config
from skillopt_kernel.skill import skill_hash
from skillopt_testkit.project import Finished, Project
from skillopt_testkit.servers import ChatServer

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "your-own-tasks.md").read_text(encoding="utf-8")
KEY = "sk-very-secret-0123456789"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.M | re.S)


TABLE, SKILL = blocks("csv")[0], blocks("markdown")[0]
TRAIN, EVAL = (
    shlex.split(next(line for line in block.splitlines() if line.startswith("skillopt "))) for block in blocks("sh")
)


@pytest.fixture
def world() -> Receipts:
    return Receipts.of(TABLE)


@pytest.fixture
def variables(world: Receipts) -> Iterator[dict[str, str]]:
    with ChatServer(world) as server:
        yield {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url, "AZURE_OPENAI_ENDPOINT": ""}


@pytest.fixture
def apart(tmp_path: Path, variables: dict[str, str]) -> Project:
    """A user in an empty folder, with a key and an endpoint, whose commands are processes of their own."""
    return Project(tmp_path, variables)


@pytest.fixture
def user(tmp_path: Path, variables: dict[str, str]) -> Here:
    """The same, with commands in this process."""
    return Here(tmp_path, variables)


def ready(user: Project) -> Project:
    user.write("tasks.csv", TABLE)
    user.write("SKILL.md", SKILL)
    return user


def trained(user: Project, *more: str) -> Finished:
    return ready(user).run(*TRAIN[1:], "--out", "run", *more)


def test_the_documented_path(apart: Project, world: Receipts) -> None:
    done = ready(apart).run(*TRAIN[1:]).ok()
    (run,) = (apart.folder / "outputs").iterdir()
    assert run.name.startswith("tasks-")
    assert "Warning: the selection split has only 4 tasks (train 8, test 8)" in done.err
    assert "tasks: 8 train, 4 selection, 8 test tasks" in done.out

    best = (run / "best_skill.md").read_text()
    front, start = SKILL[: SKILL.index("# Reading")], SKILL[SKILL.index("# Reading") :]
    assert best.startswith(front + start.rstrip("\n")), "the front matter and what the user wrote stand as they stood"
    assert all(f"- {rule}" in best for rule in RULES.values())
    assert (apart.folder / "SKILL.md").read_text() == SKILL

    summary = apart.json(run / "summary.json")
    assert (summary["baseline_test_hard"], summary["test_hard"]) == (0.0, 1.0)
    assert set(summary["by_kind"]["test"]) == {"overall", "date", "amount"}
    assert f"Report: {Path('outputs', run.name, 'report.md')}" in done.out
    report = (run / "report.md").read_text()
    assert (
        "scores 1.000 on 8 test tasks, from which nothing was learnt; the one that training began with scores 0.000"
        in report
    )
    assert "8 better with the best skill, 0 worse, 0 alike." in report
    assert all(f"+- {rule}" in report for rule in RULES.values())
    assert skill_hash(best) in report
    assert KEY not in report

    asked = len(world.asked["target"])
    assert "This run is finished already" in apart.run(*TRAIN[1:]).ok().out
    assert len(world.asked["target"]) == asked, "nothing is asked twice"


def test_the_documented_evaluation(user: Project) -> None:
    done = ready(user).run(*EVAL[1:]).ok()
    (folder,) = (user.folder / "outputs").iterdir()
    assert folder.name.startswith("eval-test-tasks-")
    assert user.json(folder / "eval_summary.json")["n_items"] == 8
    assert "Folder: " in done.out


@pytest.mark.parametrize("block", blocks("yaml"))
def test_the_documented_configurations_load(user: Project, block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ready(user).folder)
    path = user.write("mine.yaml", block)
    config = load_config(path, environ=user.environment)
    assert config.driver("env").name == "tasks"
    assert not config.unused


def test_the_documented_configuration_trains(user: Project, world: Receipts) -> None:
    ready(user).write("mine.yaml", blocks("yaml")[0])
    user.run("train", "mine.yaml", "--out", "run").ok()
    assert user.json("run/summary.json")["test_hard"] == 1.0
    assert all("Answer in the form that the books want." in body for body in world.asked["target"])


def test_the_documented_python_trains(user: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ready(user).folder)
    for name, value in user.environment.items():
        monkeypatch.setenv(name, value)
    names: dict[str, object] = {}
    exec(compile(blocks("python")[0], "docs/your-own-tasks.md", "exec"), names)
    assert user.json("run/summary.json")["test_hard"] == 1.0


def test_what_is_right_of_held_out_tasks_is_seen_by_nobody(user: Project, world: Receipts) -> None:
    trained(user).ok()
    parts = {
        part: [row["text"] for row in user.json(path)]
        for part, path in (
            (part, next((user.folder / "run").glob(f"_generated_splits/*/{part}/items.json")))
            for part in ("train", "val", "test")
        )
    }
    optimizer, target = ("\n".join(world.asked[role]) for role in ("optimizer", "target"))
    for part, texts in parts.items():
        for text in texts:
            assert (text in optimizer) == (part == "train"), f"{part}: {text}"
            assert (world.rows[text]["answer"] in optimizer) == (part == "train")
            assert world.rows[text]["answer"] not in target


def comments(*rows: tuple[str, str, str]) -> str:
    return "".join(
        json.dumps({"task": task, "version": version, "rating": "poor", "comment": text}) + "\n"
        for task, version, text in rows
    )


def with_ids(user: Project) -> dict[str, list[str]]:
    """The table with ids and splits: which ids are in which part."""
    lines = TABLE.strip().splitlines()
    parts = [("train", "val", "test")[number % 3] for number in range(len(lines) - 1)]
    rows = [f"r{number},{part},{line}" for number, (part, line) in enumerate(zip(parts, lines[1:], strict=True))]
    user.write("tasks.csv", "\n".join([f"id,split,{lines[0]}", *rows]) + "\n")
    user.write("SKILL.md", SKILL)
    return {
        part: [f"r{number}" for number, each in enumerate(parts) if each == part] for part in ("train", "val", "test")
    }


def test_o_b1_comments_reach_analysts_of_their_version_and_nobody_else(user: Project, world: Receipts) -> None:
    ids, first = with_ids(user), skill_hash(SKILL)
    rows = [(task, first, f"c4nary-train-{task}") for task in ids["train"]]
    rows += [(task, first, "c4nary-held-out") for task in ids["val"] + ids["test"]]
    rows += [(task, "0123456789abcdef", "c4nary-other-version") for task in ids["train"]]
    user.write("feedback.jsonl", comments(*rows))
    command = [*TRAIN[1:], "-o", "env.feedback=feedback.jsonl"]
    done = user.run(*command, "--out", "run").ok()
    assert (
        f"env.feedback: {len(ids['val'] + ids['test'])} of {len(rows)} comments are on selection or test tasks"
        in done.err
    )

    target, optimizer = ("\n".join(world.asked[role]) for role in ("target", "optimizer"))
    assert "c4nary" not in target
    assert "c4nary-held-out" not in optimizer and "c4nary-other-version" not in optimizer
    assert all(f"c4nary-train-{task}" in optimizer for task in ids["train"])
    for request in world.asked["optimizer"]:  # a later version is not charged with what was said of the first
        if "Trajectories (" in request and any(rule in request for rule in RULES.values()):
            assert "c4nary" not in request
    assert user.json("run/summary.json")["test_hard"] == 1.0, "what was rated poor does not veto what is better"


def test_o_b1_comments_are_part_of_what_decides(user: Project) -> None:
    ids, first = with_ids(user), skill_hash(SKILL)
    user.write("feedback.jsonl", comments((ids["train"][0], first, "too long")))
    command = [*TRAIN[1:], "--out", "run", "-o", "env.feedback=feedback.jsonl", "train.num_epochs=1"]
    user.run(*command).ok()
    user.write("feedback.jsonl", comments((ids["train"][0], first, "too short")))
    user.run(*command).refused("data")


def test_o_u3_a_fresh_installation_says_what_is_missing_and_how_to_make_it(user: Project) -> None:
    done = user.run("train", "tasks").refused(
        "env.data_path names no data to split",
        "skillopt train --tasks FILE --skill SKILL.md --scorer exact --model NAME",
    )
    assert "Traceback" not in done.err
    assert not (user.folder / "outputs").exists()


def test_o_d3_nothing_to_learn_from_is_told_before_a_model_is_asked(user: Project, world: Receipts) -> None:
    ready(user)
    user.write("tasks.csv", "text,answer,split\n" + "".join(f"Which {n}?,this,test\n" for n in range(12)))
    user.run(*TRAIN[1:]).refused("tasks.csv: the field 'split' puts no task into the train split")
    user.write("tasks.csv", "text,answer\n")
    user.run(*TRAIN[1:]).refused("tasks.csv: the file holds 0 tasks")
    assert not any(world.asked.values())
    assert not (user.folder / "outputs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tasks", "none.csv"), ("--tasks: env.data_path: 'none.csv'", "there is no file or folder")),
        (("--tasks", ""), ("Invalid value for '--tasks': it is empty",)),
        (("--tasks", "tasks.csv", "--skill", "none.md"), ("--skill: env.skill_init: 'none.md' is not at",)),
        (("--tasks", "tasks.csv", "--skill", ""), ("Invalid value for '--skill': it is empty",)),
        (("--tasks", "tasks.csv", "--scorer", "exakt"), ("--scorer: env.scorer", "Did you mean 'exact'?")),
        (
            ("--tasks", "tasks.csv", "--scorer", "{name: numeric, tolerence: 1}"),
            ("--scorer: env.scorer", "tolerence"),
        ),
        (("--tasks", "tasks.csv", "--backend", "openay"), ("--backend: model.backend", "openay")),
        (("--scorer", "exact"), ("CONFIG is missing",)),
        (("--tasks", "tasks.csv", "-o", "env.promt=x"), ("env.promt", "did you mean 'prompt'?")),
        (("--tasks", "tasks.csv", "-o", "env.prompt={{txt}}"), ("env.prompt, line 1", "Did you mean 'text'?")),
        (("--tasks", "tasks.csv", "-o", "env.answer=tag"), ("expected one of tags, whole",)),
        (("--tasks", "tasks.csv", "-o", "env.fields={input: [text]}"), ("is no key", "did you mean 'inputs'?")),
        (("--tasks", "tasks.csv", "-o", "env.feedback=none.jsonl"), ("env.feedback", "none.jsonl")),
    ],
)
def test_what_a_user_can_get_wrong_is_a_sentence(
    user: Project, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    ready(user).run("train", *arguments, "--model", "gpt-5.5").refused(*words)
    assert not (user.folder / "outputs").exists()


def test_flags_stand_beside_a_configuration_and_win_over_its_keys(
    user: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready(user).write("mine.yaml", "_base_: tasks\nenv: {data_path: other.csv, scorer: token_f1}\n")
    user.run("train", "mine.yaml", *TRAIN[2:], "--out", "run", "-o", "train.num_epochs=1", "env.scorer=token_f1").ok()
    config = user.json("run/config.json")
    assert config["env"]["scorer"]["name"] == "exact"
    assert (config["model"]["optimizer"], config["model"]["target"]) == ("gpt-5.5", "gpt-5.5")


def test_a_folder_that_is_split_already_is_taken_as_it_is(user: Project) -> None:
    trained(user, "-o", "train.num_epochs=1").ok()
    (split,) = (user.folder / "run" / "_generated_splits").iterdir()
    user.run("train", "--tasks", split, *TRAIN[4:], "--out", "again", "-o", "train.num_epochs=1").ok()
    one, other = (user.json(f"{name}/summary.json") for name in ("run", "again"))
    assert one["splits"] == other["splits"] == {"train": 8, "selection": 4, "test": 8}
    assert one["test_hard"] == other["test_hard"]


@pytest.mark.parametrize(
    "front",
    [
        "---\r\nname: x\r\ndescription: >-\r\n  two\r\n  lines # no comment\r\n---\r\n",
        "---\n# first a comment\nname:   'odd   spacing'\nallowed-tools: [Read, \"Bash(git:*)\"]   \n\n---\n\n\n",
        "---\nname: ä\ndescription: \"<!-- not a region -->\"\nmetadata:\n    version: '1.0'\n---   \n",
    ],
)
def test_front_matter_is_kept_byte_for_byte(user: Project, front: str) -> None:
    ready(user)
    newline = "\r\n" if "\r\n" in front else "\n"
    (user.folder / "SKILL.md").write_bytes((front + f"# Receipts{newline}{newline}- Read.{newline}").encode())
    user.run(*TRAIN[1:], "--out", "run", "-o", "train.num_epochs=1").ok()
    best = (user.folder / "run" / "best_skill.md").read_bytes()
    assert best.startswith(front.encode() + b"# Receipts")
    assert any(rule.encode() in best for rule in RULES.values())
