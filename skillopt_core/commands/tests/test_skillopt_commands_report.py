"""The report of a training: what it says of runs that got better, did not, and stopped early."""

import json

import attrs
import pytest
from skillopt_commands.report import ACTIONS, REPORT, report_of, report_text
from skillopt_commands.report_tasks import Compared, told_probability
from skillopt_kernel.cli.main import main
from skillopt_kernel.history import RunSummary
from skillopt_kernel.skill import skill_hash

FIRST, BEST = "# One\n\n- Read.\n", "# One\n\n- Read.\n- Write ~~~~ dates | so.\n"
CONFIG = {
    "env": {"name": "tasks"},
    "train": {"seed": 4},
    "model": {"optimizer": "big", "target": None, "optimizer_backend": "openai_chat", "target_backend": "simulated"},
}
TEMPLATE = "Here is a note about a payment. Read it to its end."
STEPS = [
    {
        "step": 1,
        "action": "accept_new_best",
        "rollout_hard": 0.25,
        "candidate_gate_score": 0.75,
        "reason": "above | it",
    },
    {"step": 2, "action": "skip_no_patches", "rollout_hard": None, "candidate_gate_score": None, "reason": ""},
]


@pytest.fixture
def run(tmp_path):
    """A run directory with what the report reads, and its summary."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    write("skills/skill_v0000.md", FIRST)
    write("best_skill.md", BEST)
    write("history.json", json.dumps(STEPS))
    for folder, scores in (("test_eval_baseline", (0, 1, 0, None)), ("test_eval", (1, 0, 0, 1))):
        rows = [
            {"id": f"t{n}", "hard": score, "fail_reason": "" if score else f"Wrong:\n| {n}", "folder": f"{folder}/t{n}"}
            for n, score in enumerate(scores)
        ]
        for n in range(4):
            write(f"{folder}/t{n}/target_user_prompt.txt", f"{TEMPLATE}\n\nQuestion  number {n}?\n")
        write(f"{folder}/results.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    kinds = {
        "overall": {"total": 4, "hard_acc": 0.5},
        "a": {"total": 2, "hard_acc": 0.5},
        "b": {"total": 2, "hard_acc": None},
    }
    summary = RunSummary(
        version="1", status="finished", folder=str(tmp_path), config=CONFIG, gate="hard",
        splits={"train": 8, "selection": 4, "test": 4}, start_skill={"hash": skill_hash(FIRST)},
        baseline_selection_hard=0.25, best_selection_hard=0.75, final_selection_hard=0.75,
        baseline_test_hard=0.3, test_hard=0.6, final_test_hard=0.6, test_soft=0.625, test_n=4, best_step=1,
        total_accepts=1, intervals={"test_hard": [0.21, 0.89]}, by_kind={"baseline_test": kinds, "test": kinds},
        token_summary={
            "rollout": {"calls": 10, "prompt_tokens": 3000, "completion_tokens": 400, "usd": 0.4},
            "analyst": {"calls": 2, "prompt_tokens": None, "completion_tokens": None},
            "_target": {"calls": 10, "prompt_tokens": 3000, "completion_tokens": 400, "usd": 0.4},
            "_total": {"calls": 12, "total_tokens": 3456, "usd": 0.5},
        }, total_wall_time_s=7.25,
        notes=("One thing to know.",), best_origin="step_0001",
    )  # fmt: skip
    return tmp_path, summary


def test_a_better_skill(run):
    folder, summary = run
    text = report_of(summary).read_text()
    assert text == (folder / REPORT).read_text() == report_text(summary)
    assert text.startswith("# tasks: a skill trained\n\nThe best skill, from step 1, scores 0.600 on 4 test tasks")
    assert "| best | 0.750 | 0.600 | 0.210 to 0.890 | 0.625 |" in text
    assert "| first | 0.250 | 0.300 | - | - |" in text
    assert "1 better with the best skill, 1 worse, 1 alike. Two skills that are equally good would" in text
    assert "a probability of 1.000 (exact sign test).\n\n* better: `t0`\n* worse: `t1`\n" in text
    assert "| b | 2 | - | - |" in text
    assert "~~~~~diff\n--- first\n+++ best\n" in text and "\n+- Write ~~~~ dates | so.\n~~~~~\n" in text
    assert "| 1 | accepted, the best so far | 0.250 | 0.750 | above \\| it |" in text
    assert "| 2 | no change was proposed | - | - |  |" in text
    assert "* One thing to know." in text
    assert "optimizer big (openai_chat), target default (simulated); seed 4; SkillOpt 1" in text
    assert f"the first skill is `{skill_hash(FIRST)}`, the best one `{skill_hash(BEST)}`" in text
    assert "7.2 seconds, 12 model calls, 3,456 tokens, $0.5000." in text
    assert "| target (role) | 10 | 3,000 | 400 | 0.4000 |\n| rollout |" in text
    assert "| analyst | 2 | - | - | - |" in text


def test_what_is_still_not_right_is_shown_with_its_question(run):
    _, summary = run
    text = report_text(summary)
    assert "## Not right with the best skill\n\n2 of 4 test tasks:\n" in text
    assert "| `t1` | Question number 1? | Wrong: \\| 1 |\n| `t2` | Question number 2? | Wrong: \\| 2 |" in text
    assert TEMPLATE not in text, "what all tasks are asked alike says nothing of one"


def test_of_a_long_prompt_its_beginning_and_its_end_are_shown(run):
    folder, summary = run
    (folder / "test_eval" / "t1" / "target_user_prompt.txt").write_text(f"A report: {'word ' * 400}\nWhen was it?\n")
    (line,) = [line for line in report_text(summary).splitlines() if line.startswith("| `t1` | A report")]
    assert " ... " in line and line.split(" | ")[1].endswith("When was it?") and len(line) < 250


def test_a_task_without_a_score_or_a_prompt_is_shown_as_such(run):
    folder, summary = run
    rows = [{"id": f"u{n}", "hard": None, "missing": "endpoint: it is gone"} for n in range(12)]
    (folder / "test_eval" / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = report_text(summary)
    assert "12 of 12 test tasks, of which these are the first 10:" in text
    assert "| `u9` |  | endpoint: it is gone |" in text and "u10" not in text


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({}, "take `best_skill.md` when you agree with it. Do not rely on its lead yet: chance alone would make"),
        ({"start_skill": {"from": "file", "path": "S.md"}}, "take `best_skill.md` in place of `S.md` when you agree"),
        (
            {"test_hard": 0.3},
            "Keep the first skill: on tasks from which nothing was learnt, the best one is no better.",
        ),
        ({"test_hard": None}, "Whether it is better on other tasks is not known"),
        ({"status": "incomplete"}, "Run the same command again: it goes on where it stands."),
        ({"status": "budget"}, "Run the same command again with a higher limit: it goes on where it stands."),
        ({"splits": {"train": 8, "selection": 4, "test": 4}}, "Give more tasks: with 4 to select by, chance has a say"),
    ],
)
def test_what_to_do_next(run, changes, advice):
    _, summary = run
    text = report_text(attrs.evolve(summary, **changes))
    assert advice in text[text.index("## What to do next") : text.index("## Scores")]


def test_no_one_is_sent_on_from_a_skill_that_is_no_better(run):
    _, summary = run
    assert "To train on from there" in report_text(summary)
    assert "To train on from there" not in report_text(attrs.evolve(summary, test_hard=0.2))


def test_what_to_do_when_nothing_was_better(run):
    folder, summary = run
    (folder / "best_skill.md").write_text(FIRST)
    text = report_text(attrs.evolve(summary, best_step=0, best_origin="initial_skill"))
    assert "Your skill stays as it is. *Steps* says why" in text and "a stronger optimizer" in text
    unfinished = report_text(attrs.evolve(summary, best_step=0, status="budget", notes=("Spent.",), budget="Spent."))
    assert "a stronger optimizer" not in unfinished, "it has not had its chance"
    assert unfinished.count("Spent.") == 1
    (folder / "test_eval" / "results.jsonl").unlink()
    assert "3 of 4 test tasks:" in report_text(summary), "the first skill is tested once"
    text = report_text(attrs.evolve(summary, best_step=0, baseline_selection_hard=1.0))
    assert "The first skill is right on every selection task" in text and "stronger optimizer" not in text


@pytest.mark.parametrize(
    ("better", "worse", "chance"),
    [(0, 0, None), (1, 0, 1.0), (5, 5, 1.0), (8, 0, 2 / 2**8), (1, 9, 22 / 2**10), (3000, 2000, 0.0)],
)
def test_the_sign_test(better, worse, chance):
    names = [str(n) for n in range(better + worse)]
    found = Compared(tuple(names[:better]), tuple(names[better:]), ("same",)).chance
    assert found == (None if chance is None else pytest.approx(chance, abs=1e-12))


def test_a_probability_is_never_told_as_zero():
    assert (told_probability(0.0), told_probability(0.0312)) == ("below 0.001", "of 0.031")


def test_every_action_has_words():
    from skillopt_kernel.records import ACTIONS as KNOWN

    assert set(ACTIONS) == set(KNOWN)


def test_the_command_makes_the_report_again(run, capsys):
    folder, summary = run
    for name, content in (("summary.json", summary.as_json()), ("fingerprint.json", {}), ("config.json", CONFIG)):
        (folder / name).write_text(json.dumps(content))
    (folder / REPORT).write_text("of an older version\n")
    assert main(["report", str(folder)]) == 0, capsys.readouterr().err
    assert (folder / REPORT).read_text() == report_text(summary)
    assert f"Report: {folder / REPORT}" in capsys.readouterr().out


@pytest.mark.parametrize("damage", [{"splits": None, "version": "1"}, {"config": {}}])
def test_a_summary_that_is_something_else_is_told(run, capsys, damage):
    folder, summary = run
    told = {key: value for key, value in (summary.as_json() | damage).items() if value is not None}
    for name, content in (("summary.json", told), ("fingerprint.json", {}), ("config.json", CONFIG)):
        (folder / name).write_text(json.dumps(content))
    assert main(["report", str(folder)]) == 2
    assert "its files are not what a training of this version leaves" in capsys.readouterr().err


def test_no_report_is_made_of_what_is_no_finished_training(tmp_path, capsys):
    assert main(["report", str(tmp_path / "none")]) == 2
    assert "`skillopt runs FOLDER` lists the runs in a folder." in capsys.readouterr().err
    (tmp_path / "fingerprint.json").write_text("{}")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    assert main(["report", str(tmp_path)]) == 2
    assert "has not come to its end" in capsys.readouterr().err
    assert not (tmp_path / REPORT).exists()


def test_no_better_skill(run):
    folder, summary = run
    (folder / "best_skill.md").write_text(FIRST)
    text = report_text(attrs.evolve(summary, best_step=0, total_accepts=0))
    assert "No candidate was better than the skill that training began with; `best_skill.md` is that skill." in text
    assert "## What changed in the skill\n\nNothing." in text


def test_nothing_was_tested(run):
    folder, summary = run
    for name in ("test_eval", "test_eval_baseline"):
        (folder / name / "results.jsonl").unlink()
    untested = attrs.evolve(
        summary, baseline_test_hard=None, test_hard=None, by_kind={}, status="budget", budget="Spent."
    )
    text = report_text(untested)
    assert "It was not compared with the first one on test tasks." in text
    assert "## Test tasks" not in text and "## Task types" not in text
    assert "* The run has not come to its end (status budget). Spent." in text


def test_guidance_of_an_epoch_is_no_step(run):
    _, summary = run
    text = report_text(attrs.evolve(summary, best_step=0, ended_early="It ended early."))
    assert "The best skill, from the end of an epoch, scores" in text
    assert "* It ended early." in text


def test_what_looks_like_a_credential_is_not_repeated(run):
    folder, summary = run
    key = "sk-" + "a1B2" * 12
    (folder / "best_skill.md").write_text(f"{FIRST}- Use {key}.\n")
    assert key not in report_of(summary).read_text()


def test_a_credential_is_not_cut_in_two(run):
    folder, summary = run
    key = "sk-" + "a1B2" * 12
    (folder / "test_eval" / "t1" / "target_user_prompt.txt").write_text(f"{'word ' * 15}{key} {'word ' * 100}\n")
    text = report_text(summary)
    assert " ... " in text and key[:20] not in text


def test_the_report_of_an_earlier_run_is_left(run):
    folder, summary = run
    finished = attrs.evolve(summary, already_finished=True)
    report_of(finished)
    (folder / REPORT).write_text("mine\n")
    assert report_of(finished).read_text() == "mine\n"
    assert report_of(summary).read_text() != "mine\n"
