"""The report of a training: what it says of runs that got better, did not, and stopped early."""

import json

import attrs
import pytest
from skillopt_commands.report import REPORT, report_of, report_text
from skillopt_kernel.history import RunSummary
from skillopt_kernel.skill import skill_hash

FIRST, BEST = "# One\n\n- Read.\n", "# One\n\n- Read.\n- Write ~~~~ dates | so.\n"
CONFIG = {
    "env": {"name": "tasks"},
    "train": {"seed": 4},
    "model": {"optimizer": "big", "target": None, "optimizer_backend": "openai_chat", "target_backend": "simulated"},
}
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
        rows = [{"id": f"t{n}", "hard": score} for n, score in enumerate(scores)]
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
        token_summary={"_total": {"calls": 12, "total_tokens": 3456, "usd": 0.5}}, total_wall_time_s=7.25,
        notes=("One thing to know.",),
    )  # fmt: skip
    return tmp_path, summary


def test_a_better_skill(run):
    folder, summary = run
    text = report_of(summary).read_text()
    assert text == (folder / REPORT).read_text() == report_text(summary)
    assert text.startswith("# tasks: a skill trained\n\nThe best skill, from step 1, scores 0.600 on 4 test tasks")
    assert "| best | 0.750 | 0.600 | 0.21 to 0.89 | 0.625 |" in text
    assert "| first | 0.250 | 0.300 | - | - |" in text
    assert "1 better with the best skill, 1 worse, 1 alike.\n* better: `t0`\n* worse: `t1`" in text
    assert "| b | 2 | - | - |" in text
    assert "~~~~~diff\n--- first\n+++ best\n" in text and "\n+- Write ~~~~ dates | so.\n~~~~~\n" in text
    assert "| 1 | accept_new_best | 0.250 | 0.750 | above \\| it |" in text
    assert "* One thing to know." in text
    assert "optimizer big (openai_chat), target default (simulated); seed 4" in text
    assert f"the first skill is `{skill_hash(FIRST)}`, the best one `{skill_hash(BEST)}`" in text
    assert "7.2 seconds, 12 model calls, 3,456 tokens, $0.5000" in text


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


def test_the_report_of_an_earlier_run_is_left(run):
    folder, summary = run
    finished = attrs.evolve(summary, already_finished=True)
    report_of(finished)
    (folder / REPORT).write_text("mine\n")
    assert report_of(finished).read_text() == "mine\n"
    assert report_of(summary).read_text() != "mine\n"
