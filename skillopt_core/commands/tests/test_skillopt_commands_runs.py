"""Which runs `skillopt runs` lists, and in which order."""

from __future__ import annotations

import json
from pathlib import Path

from skillopt_commands.runs import find_runs


def test_runs_are_found_below_a_folder_the_latest_first(tmp_path: Path) -> None:
    for name, day in (("b", 1), ("c", 2), ("a", 3)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "fingerprint.json").write_text("{}")
        event = {"seq": 1, "time": f"2026-01-0{day}T00:00:00.000Z"}
        (tmp_path / name / "events.jsonl").write_text(json.dumps(event) + "\n")
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").write_text("")
    assert [view.folder.name for view in find_runs(tmp_path)] == ["a", "c", "b"]
    assert [view.folder.name for view in find_runs(tmp_path / "a")] == ["a"]
    assert find_runs(tmp_path / "gone") == []
