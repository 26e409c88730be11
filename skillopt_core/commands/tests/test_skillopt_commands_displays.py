"""What people see of a run: the live block, plain lines, JSON lines, and nothing; on narrow and old consoles."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
from rich.console import Console
from skillopt_commands.displays import Display, JsonDisplay, PlainDisplay
from skillopt_commands.live import LiveDisplay
from skillopt_commands.running import display_for
from skillopt_kernel.console import error
from skillopt_kernel.store.events import Event

MODEL = {"backend": "openai_compatible", "model": "small", "endpoint": "http://127.0.0.1:8000/v1"}
START = {
    "config": "demo", "seed": 42, "resumed": False, "step_done": 0,
    "models": {"optimizer": MODEL, "target": {"backend": "simulated", "model": "", "endpoint": "simulated"}},
    "splits": {"train": 40, "selection": 24, "test": 41},
    "epochs": 3, "steps_per_epoch": 4, "total_steps": 12, "batch_size": 10, "accumulation": 2,
    "environment": "searchqa", "gate": "hard", "scheduler": "cosine", "update": "patch", "epoch_end": [],
    "workers": 8, "folder": "outputs/demo-1234abcd", "skill_hash": "0" * 16, "warnings": ["a price is unknown →"],
}  # fmt: skip
STEP = {
    "action": "accept_new_best", "reason": "", "rollout_hard": 0.1, "rollout_soft": 0.2, "selection_asked": 24,
    "candidate_gate_score": 0.3333, "selection_bound": None, "current_score": 0.3333, "best_score": 0.4,
    "best_step": 1, "skill_len": 900, "wall_time_s": 112.34,
}  # fmt: skip
CALL = {"ok": True, "prompt_tokens": 1000, "completion_tokens": 234}


def event(
    name: str, *, epoch: int | None = None, step: int | None = None, stage: str | None = None, **data: Any
) -> Event:
    return Event(name, 1, "2026-01-02T03:04:05.678Z", "run", epoch, step, stage, data)


def step_events(step: int = 1) -> Iterator[Event]:
    """A step up to the middle of its rollout: three attempts done, one of them without a score, one running."""
    yield event("epoch_started", epoch=1, steps=4)
    yield event("step_started", epoch=1, step=step, tasks=10, skill_tokens=1129)
    yield event("stage_started", step=step, stage="rollout", tasks=10)
    for number in range(4):
        yield event("attempt_started", step=step, task=f"t{number}")
    for number in range(3):
        missing = {"missing": "endpoint", "message": "it is gone"} if number == 2 else {"hard": 1.0}
        yield event("attempt_finished", step=step, task=f"t{number}", **missing)


def live(width: int = 80, **options: Any) -> tuple[LiveDisplay, io.StringIO]:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=width, height=30, color_system=None, legacy_windows=False)
    return LiveDisplay(console, **options), stream


def block_of(display: LiveDisplay, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        console.print(display.block())
    return [line.rstrip() for line in captured.get().splitlines()]


def take(display: Display, *events: Event) -> None:
    for each in events:
        display.show(each)


def test_the_live_block_shows_where_the_run_stands() -> None:
    display, _ = live()
    take(display, event("run_started", **START), *step_events())
    take(display, event("model_called", **CALL, usd=0.0125), event("model_called", ok=False))
    _, *rows = block_of(display)
    assert dict(row.split(maxsplit=1) for row in rows) == {
        "where": "epoch 1 of 3, step 1 of 12",
        "stage": "rollout of 10 tasks",
        "attempts": "3 done, 1 running, 1 without a score",
        "score": "-, best -",
        "skill": "about 1,129 tokens",
        "spend": "2 model calls, 1,234 tokens, $0.0125; 1 failed",
    }
    take(display, event("step_finished", step=1, **STEP), event("step_started", step=2, skill_tokens=None))
    bar, *rows = block_of(display)
    assert bar == "━" * 5, "1 of 12 steps on a line of its own"
    assert any("0.3333, best 0.4000" in row for row in rows)
    assert any("skill" in row and "unknown tokens" in row for row in rows)
    display.close()


@pytest.mark.parametrize("width", [80, 100])
def test_the_live_display_draws_the_block_and_takes_it_away_at_the_end(width: int) -> None:
    display, stream = live(width)
    take(display, event("run_started", **START), *step_events(), event("step_finished", step=1, **STEP))
    display._live.refresh()
    shown = stream.getvalue()
    assert "Training demo (seed 42)\n" in shown
    assert "Step 1: accept_new_best, rollout 0.1000, candidate 0.3333, best 0.4000, 112.3s" in shown
    assert "\nattempts  3 done, 1 running" in shown.replace("\r", "")
    take(display, event("run_finished", status="finished"))
    ended = len(stream.getvalue())
    display.close()
    take(display, event("model_called", **CALL))
    assert len(stream.getvalue()) == ended, "after the end nothing is drawn any more"
    assert stream.getvalue().endswith("\x1b[2K"), "the block is erased"


def test_an_evaluation_is_shown_without_what_it_has_not() -> None:
    display, stream = live(training=False)
    take(display, event("run_started", **START), event("stage_started", stage="evaluate", tasks=24))
    names = [row.split(maxsplit=1)[0] for row in block_of(display)]
    assert names == ["stage", "attempts", "spend"]
    assert "Evaluating a skill on demo" in stream.getvalue()
    assert "schedule" not in stream.getvalue()
    display.close()


def test_a_batch_is_no_larger_than_the_data(capsys: pytest.CaptureFixture[str]) -> None:
    small = {"steps_per_epoch": 1, "batch_size": 20, "accumulation": 1, "splits": {"train": 8, "selection": 4}}
    take(PlainDisplay(), event("run_started", **{**START, **small}))
    assert "  schedule   3 epochs of 1 step of 8 tasks\n" in capsys.readouterr().out


def test_the_live_display_survives_a_run_that_never_started() -> None:
    display, stream = live()
    display.close()
    take(display, event("run_failed", error="DataError", message="no data"))
    assert stream.getvalue() == ""


def test_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    display = PlainDisplay()
    take(display, event("run_started", **START), *step_events())
    take(display, event("stage_finished", step=1, stage="rollout", seconds=1.26, hard=0.1, soft=None, missing=0))
    take(display, event("step_finished", step=1, **STEP), event("model_called", ok=True))
    take(display, event("epoch_finished", epoch=1, accepts=1, rejects=2, skips=1, best_score=0.4, current_score=0.4))
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "Training demo (seed 42)",
        "  optimizer  openai_compatible small at http://127.0.0.1:8000/v1",
        "  target     simulated",
        "  data       searchqa: 40 train, 24 selection, 41 test tasks",
        "  schedule   3 epochs of 4 steps of 2 x 10 tasks",
        "  updates    patch, sized by the cosine scheduler",
        "  gate       hard",
        "  epoch end  no plugin performs an epoch-end update",
        "  workers    8",
        "  folder     outputs/demo-1234abcd",
        "  rollout       1.3s  hard 0.1000, missing 0",
        "Step 1: accept_new_best, rollout 0.1000, candidate 0.3333, best 0.4000, 112.3s",
        "Epoch 1: 1 accepted, 2 rejected, 1 skipped, best 0.4000",
        "  1 model calls, tokens unknown",
    ]
    assert err == "  no score for t2: endpoint: it is gone\n"


def test_only_the_first_missing_outcomes_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    display = PlainDisplay()
    for number in range(9):
        take(display, event("attempt_finished", task=f"t{number}", missing="endpoint", message="gone"))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines[:5]] == [f"  no score for t{number}" for number in range(5)]
    assert len(lines) == 6
    assert "results.jsonl names them" in lines[5]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"action": "reject", "candidate_gate_score": None, "selection_bound": 0.75},
            "Step 12: reject, rollout 0.1000, candidate at most 0.7500, best 0.4000, 112.3s",
        ),
        (
            {"action": "skip_no_patches", "candidate_gate_score": None, "rollout_hard": None},
            "Step 12: skip_no_patches, rollout -, best 0.4000, 112.3s",
        ),
    ],
)
def test_a_step_is_one_line_of_80_columns(
    changes: dict[str, Any], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    PlainDisplay().show(event("step_finished", step=12, **(STEP | changes)))
    assert capsys.readouterr().out.splitlines() == [expected]
    assert len(expected) <= 80


def test_a_resumed_run_says_from_where(capsys: pytest.CaptureFixture[str]) -> None:
    display = PlainDisplay()
    take(display, event("run_started", **(START | {"resumed": True, "step_done": 5})))
    assert capsys.readouterr().out.startswith("Resuming demo (seed 42) after step 5\n")
    assert (display.progress.step, display.progress.steps_done) == (5, 5)


def test_json_lines_are_the_events(capsys: pytest.CaptureFixture[str]) -> None:
    one = event("attempt_finished", task="ä→", missing="endpoint")
    take(JsonDisplay(), one)
    out = capsys.readouterr().out
    assert json.loads(out) == one.as_json()
    assert out.isascii()


def test_the_display_that_fits(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def kind(**asked: bool) -> type:
        return type(display_for(**({"quiet": False, "as_json": False, "training": True} | asked)))

    assert kind(quiet=True) is Display
    assert kind(quiet=True, as_json=True) is Display
    assert kind(as_json=True) is JsonDisplay
    assert kind() is PlainDisplay
    display_for(quiet=True, as_json=False, training=True).show(event("run_started", **START))
    assert capsys.readouterr().out == ""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdout", Terminal())
    assert kind() is LiveDisplay


def test_o_w1_a_cp1252_console_gets_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    complaints = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="cp1252"))
    monkeypatch.setattr("sys.stderr", io.TextIOWrapper(complaints, encoding="cp1252"))
    take(PlainDisplay(), event("run_started", **(START | {"folder": "läuft→"})))
    error("Warning: a price is unknown →")
    text = raw.getvalue().decode("cp1252")
    assert "läuft?" in text
    assert complaints.getvalue().decode("cp1252").strip() == "Warning: a price is unknown ?"


def test_o_w1_the_live_block_is_plain_on_a_cp1252_terminal() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="cp1252", errors="replace")
    console = Console(file=stream, force_terminal=True, width=80, color_system=None, legacy_windows=False)
    display = LiveDisplay(console)
    take(display, event("run_started", **START), *step_events(), event("step_finished", step=1, **STEP))
    display._live.refresh()
    display.close()
    stream.flush()
    text = raw.getvalue().decode("cp1252")
    assert "attempts  3 done, 1 running" in text
    assert "-----" in text, "the bar is drawn with characters that the console has"


def test_a_display_that_shows_one_run_after_another_begins_each_at_nothing(capsys):
    display = PlainDisplay()
    missing = event("attempt_finished", task="t1", missing="endpoint", message="down")
    take(display, event("run_started", **START), *[missing] * 6)
    take(display, event("run_started", **(START | {"seed": 43})), missing)
    assert (display.progress.missing, display.progress.attempts) == (1, 1)
    printed = capsys.readouterr()
    assert "Training demo (seed 43)\n" in printed.out
    assert printed.err.count("no score for t1") == 6
