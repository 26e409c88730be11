"""docs/scorers.md: every scorer and setting is there, and every example is scored as the page says."""

from __future__ import annotations

import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
import yaml
from skillopt_kernel.config.fields import default_of, description
from skillopt_kernel.config.structure import Structurer, fields_of
from skillopt_kernel.config.tree import Place, from_python
from skillopt_kernel.interfaces import DriverContext
from skillopt_kernel.plugins.discovery import installed, load_manifest, make_driver, settings_class
from skillopt_kernel.records import Task
from skillopt_lib_env.scoring import ScorerChoice

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "scorers.md").read_text(encoding="utf-8")
NAMES = [plugin.name for plugin in installed("scorer") if plugin.distribution == "skillopt-scorers"]
CONTEXT = DriverContext(logging.getLogger("test"))


@attrs.frozen
class Settings:
    scorer: ScorerChoice = attrs.field()


def section(name: str) -> str:
    """What the page says under the scorer's heading."""
    found = re.search(rf"^### {name}\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S)
    assert found is not None, f"docs/scorers.md has no heading ### {name}"
    return found[1]


EXAMPLES = [
    pytest.param(name, block, rows, id=f"{name} {number}")
    for name in NAMES
    for number, (block, rows) in enumerate(
        re.findall(r"^```yaml\n(.*?)^```\n(?:\n((?:\|[^\n]*\n)+))?", section(name), re.M | re.S), start=1
    )
]


@pytest.mark.parametrize("name", NAMES)
def test_every_scorer_has_a_heading_an_example_and_its_settings(name: str) -> None:
    assert f"[`{name}`](#{name})" in PAGE, "the table of scorers names it"
    assert any(example.values[0] == name for example in EXAMPLES)
    found = settings_class(load_manifest("scorer", name))
    expected = ["| setting | default | meaning |", "|---|---|---|"] if found else []
    for field in attrs.fields(found) if found else ():
        default = default_of(field)
        default = list(default) if isinstance(default, tuple) else default
        empty = default in (None, "", [], {})
        shown = "none" if empty else default if isinstance(default, str) else json.dumps(default)
        expected.append(f"| `{field.name}` | {shown} | {description(found, field.name)} |")
    assert "\n".join(expected) in section(name)


@pytest.mark.parametrize(("name", "block", "rows"), EXAMPLES)
def test_an_example_is_scored_as_the_page_says(
    name: str, block: str, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file, code in re.findall(
        r"^In `([\w.]+)`, beside the configuration:\n\n```\w+\n(.*?)^```", section(name), re.M | re.S
    ):
        (tmp_path / file).write_text(code, encoding="utf-8")
    scorer = made(yaml.safe_load(block)["scorer"], tmp_path)
    assert rows or name == "llm_judge"
    for line in rows.splitlines()[2:]:
        answer, reference, hard, soft = (cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1])
        task = Task("t", inputs={"question": "Which?"}, reference=json.loads(reference.strip("`")))
        score = scorer.score(answer[1:-1], task.reference, task)
        assert (score.hard, score.soft) == (float(hard), pytest.approx(float(soft), abs=1e-4)), line


def made(written: Any, folder: Path) -> Any:
    if isinstance(written, dict) and written.get("command"):
        written["command"][0] = sys.executable  # `python3` may be another one here
    structurer = Structurer()
    node = from_python(written, Place("docs/scorers.md", folder=folder))
    choice = structurer.value(node, fields_of(Settings)["scorer"], "env.scorer")
    assert not structurer.problems
    return choice.make(
        attrs.evolve(CONTEXT, driver=lambda kind, name, settings=None: make_driver(kind, name, settings, CONTEXT))
    )


def test_the_python_of_a_scorer_to_share_works() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.partition("## A scorer to share")[2], re.M | re.S)
    assert len(blocks) == 3
    names: dict[str, Any] = {"__name__": "my_scorers"}
    for block in blocks:
        exec(compile(block, "docs/scorers.md", "exec"), names)
    scorer = names["BrevityScorer"](names["BrevitySettings"](most_words=2), CONTEXT)
    assert scorer.score("Paris", "Paris", Task("t")).hard == 1
    assert "3 words" in scorer.score("It is Paris", "Paris", Task("t")).feedback
    with pytest.raises(ValueError, match="must be a text"):
        scorer.check(3, Task("t"))
    context = attrs.evolve(CONTEXT, driver=lambda kind, name, settings=None: make_driver(kind, name, settings, CONTEXT))
    assert names["MyEnvironment"](names["MySettings"](), context)._scorer.score("a", "A", Task("t")).hard == 1
