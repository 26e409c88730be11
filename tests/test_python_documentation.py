"""The examples of docs/python.md, run as they stand."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "python.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_an_example_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(BLOCKS[number], f"docs/python.md, example {number + 1}", "exec"), names)
    if "update" in names:
        assert names["advice"]
        assert "- Explain each answer at length." in str(names["current"])


def test_there_are_examples() -> None:
    assert len(BLOCKS) == 2
