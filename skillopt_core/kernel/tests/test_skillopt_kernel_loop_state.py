"""Taking up a checkpoint: everything comes back as it was, and a damaged file is told in a sentence."""

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from skillopt_kernel.errors import RunDirectoryError
from skillopt_kernel.history import EpochRecord, StepRecord
from skillopt_kernel.loop.memory import MemoryEntry
from skillopt_kernel.loop.state import LoopState, restore
from skillopt_kernel.skill import skill_hash
from skillopt_kernel.store.directory import RunDirectory
from skillopt_kernel.store.files import write_json
from skillopt_kernel.store.state import RunState

RECORD = StepRecord(
    step=1,
    epoch=1,
    step_in_epoch=0,
    action="reject",
    accumulation_batches=({"batch_idx": 0, "hard": 0.5},),
    support_counts=(3, 1),
    edit_apply_summary={"total": 1, "applied": 1},
    lr_decision={"learning_rate": 2},
    timing={"rollout_s": 1},
    counters={"n_mine": 3},
)
ENTRY = MemoryEntry(
    step=1,
    action="reject",
    n_total=4,
    n_fail=2,
    failure_patterns=({"pattern": "unit", "count": 2, "description": "", "task_ids": ["a"]},),
    score_before=0.5,
    rejected_edits=("append: Be short.",),
    not_applied=({"edit": "replace", "status": "unmatched", "detail": "not found"},),
)
EPOCH = EpochRecord(epoch=1, steps=1, rejects=1, model_failures={"call_failed": 1})


def checkpoint(root: Path, skill: str = "# Skill\n", **extra: Any) -> RunDirectory:
    directory = RunDirectory(root)
    directory.save_skill(0, skill)
    write_json(root / "history.json", [RECORD.as_json()])
    kept = {
        "epoch_ended": 1,
        "memory": [attrs.asdict(ENTRY)],
        "meta": "advice",
        "plugins": {"mine": {"seen": 3}},
        "epochs": [EPOCH.as_json()],
        "seconds": 2.5,
    }
    path = "skills/skill_v0000.md"
    RunState(
        last_completed_step=1,
        current_skill_path=path,
        current_score=0.5,
        current_origin="initial_skill",
        best_skill_path=path,
        best_score=0.5,
        best_step=0,
        best_origin="initial_skill",
        extra=kept | extra,
    ).save(root)
    return directory


def test_a_checkpoint_comes_back_as_it_was_written(tmp_path: Path) -> None:
    state = LoopState.at_start("another text")
    restore(checkpoint(tmp_path), state)
    assert (state.history, state.memory, state.epochs) == ([RECORD], [ENTRY], [EPOCH])
    assert (state.step, state.epoch_ended, state.meta, state.seconds) == (1, 1, "advice", 2.5)
    assert state.current.skill == state.best.skill == "# Skill\n"
    assert state.plugins["mine"] == {"seen": 3}
    assert (tmp_path / "best_skill.md").read_text("utf-8") == "# Skill\n"


def test_counters_of_plugins_stand_beside_the_fields_of_a_record_and_hide_none() -> None:
    fields = attrs.evolve(RECORD, counters={"n_mine": 3, "action": 7}).as_json()
    assert (fields["n_mine"], fields["action"]) == (3, "reject")
    assert "counters" not in fields


@pytest.mark.parametrize("skill", ["# T\r\n- a\r\n", "# T\n- a\r\n- b\n", "no line end"])
def test_a_resumed_run_goes_on_with_the_very_text_whatever_its_newlines(tmp_path: Path, skill: str) -> None:
    state = LoopState.at_start("another text")
    restore(checkpoint(tmp_path, skill), state)
    assert (state.current.skill, state.best.skill) == (skill, skill)


@pytest.mark.parametrize("damage", [b"", b"# Skill\n\n- A line that nobody proposed.\n"])
def test_a_skill_that_is_not_the_one_that_was_saved_is_told_with_the_cure(tmp_path: Path, damage: bytes) -> None:
    path = "skills/skill_v0000.md"
    directory = checkpoint(tmp_path, hashes={path: skill_hash("# Skill\n")})
    restore(directory, LoopState.at_start("another text"))
    (tmp_path / path).write_bytes(damage)
    with pytest.raises(
        RunDirectoryError, match=r"skill_v0000\.md: .*was changed since\. Restore the file, or .*--fresh"
    ):
        restore(directory, LoopState.at_start("another text"))


@pytest.mark.parametrize("damage", [None, b"\xff\xfe"])
def test_a_skill_that_cannot_be_read_is_told_with_the_cure(tmp_path: Path, damage: bytes | None) -> None:
    directory = checkpoint(tmp_path)
    path = tmp_path / "skills" / "skill_v0000.md"
    path.unlink() if damage is None else path.write_bytes(damage)
    with pytest.raises(RunDirectoryError, match=r"skill_v0000\.md.*--fresh"):
        restore(directory, LoopState.at_start("another text"))


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"memory": [{"step": 1}]}, "action: is missing"),
        ({"epochs": [{"epoch": "one", "steps": 1}]}, "epoch: must be int, not 'one'"),
    ],
)
def test_a_damaged_state_is_told_in_a_sentence(tmp_path: Path, extra: dict[str, Any], told: str) -> None:
    directory = checkpoint(tmp_path, **extra)
    with pytest.raises(RunDirectoryError, match="cannot be used") as caught:
        restore(directory, LoopState.at_start(""))
    assert told in str(caught.value)
    assert "--fresh" in str(caught.value)


def test_a_history_with_a_wrong_type_is_told(tmp_path: Path) -> None:
    directory = checkpoint(tmp_path)
    rows = json.loads((tmp_path / "history.json").read_text("utf-8"))
    rows[0]["n_patches"] = "two"
    write_json(tmp_path / "history.json", rows)
    with pytest.raises(RunDirectoryError, match="n_patches: must be int, not 'two'"):
        restore(directory, LoopState.at_start(""))
