"""`skillopt hooks explain`: a configuration's hooks from the file to the order in which they are asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from skillopt_kernel.cli.main import main

Explain = Callable[..., tuple[int, str, str]]

LAB = """
from skillopt_kernel import Update, hookimpl

class Critic:
    def __init__(self, settings):
        self.depth = settings["depth"]

    @hookimpl
    def skillopt_select(self, update):
        return None

    @hookimpl
    def skillopt_step_finished(self, event):
        pass

def keep(update):
    return update

def log(step):
    return (yield)
"""

CONFIG = """
_base_: default
model: {backend: simulated}
hooks:
  path: [.]
  plugins: ["explained_lab:Critic"]
  settings: {"explained_lab:Critic": {depth: 3}}
  override: {select: "explained_lab:keep"}
  wrap: {select: "explained_lab:log"}
"""


@pytest.fixture
def explain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Explain]:
    """Runs the command on CONFIG with one text replaced by another."""

    def run(*words: str, replace: tuple[str, str] = ("", "")) -> tuple[int, str, str]:
        (tmp_path / "explained_lab.py").write_text(LAB, encoding="utf-8")
        (tmp_path / "mine.yaml").write_text(CONFIG.replace(*replace), encoding="utf-8")
        code = main(["hooks", "explain", str(tmp_path / "mine.yaml"), *words])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    yield run
    sys.modules.pop("explained_lab", None)


def test_the_order_is_wrappers_overrides_plugins_and_the_kernel_last(
    explain: Explain,
) -> None:
    code, output, error = explain()
    assert (code, error) == (0, "")
    lines = dict(line.split(": ", 1) for line in output.splitlines() if line.startswith("skillopt_"))
    assert lines["skillopt_select"] == (
        "[wrap] hooks.wrap: explained_lab:log (select) -> hooks.override: explained_lab:keep (select) -> "
        "explained_lab:Critic -> kernel.select"
    )
    assert lines["skillopt_step_finished"] == "explained_lab:Critic"
    assert lines["skillopt_rollout"] == "kernel.rollout"
    assert lines["skillopt_configure"] == "nobody"
    assert "explained_lab:Critic comes from explained_lab" in output


def test_a_disabled_plugin_is_not_asked(explain: Explain) -> None:
    code, output, _ = explain("-o", "hooks.disable=['explained_lab:Critic']")
    assert code == 0
    assert "skillopt_step_finished: nobody" in output


@pytest.mark.parametrize(
    ("replace", "place", "message"),
    [
        (('wrap: {select: "explained_lab:log"', 'wrap: {selekt: "explained_lab:log"'), ":9:", "Did you mean 'select'?"),
        (("explained_lab:log", "explained_lab:lag"), ":9:", "'explained_lab:lag' cannot be imported"),
        (("explained_lab:keep", "explained_lab:log"), ":8:", "belongs under hooks.wrap"),
        (("path: [.]", "path: []"), ":6:", "add the line `path: [.]` under `hooks:`"),
        (
            ('plugins: ["explained_lab:Critic"]', "plugins: [semantic_densty]"),
            ":6:",
            "Did you mean 'semantic_density'?",
        ),
    ],
)
def test_a_mistake_is_said_with_its_line(explain: Explain, replace: tuple[str, str], place: str, message: str) -> None:
    code, _, error = explain(replace=replace)
    assert code == 2
    assert f"mine.yaml{place}" in error
    assert message in error
    assert "Traceback" not in error
