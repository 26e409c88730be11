"""Tables, lines and the summary's text."""

from __future__ import annotations

import io

import pytest
from skillopt_commands.texts import summary_text
from skillopt_kernel.console import echo, table
from skillopt_kernel.history import RunSummary


def test_a_table_aligns_numbers_right_and_words_left() -> None:
    rows = [("first", "0.5", "10"), ("best (step 8)", "-", "9")]
    assert table(("skill", "score", "tasks"), rows).splitlines() == [
        "skill          score  tasks",
        "-------------  -----  -----",
        "first            0.5     10",
        "best (step 8)      -      9",
    ]


def test_a_table_without_rows_is_its_headings() -> None:
    assert table(("run", "status"), []).splitlines() == ["run  status", "---  ------"]


@pytest.mark.parametrize(("encoding", "shown"), [("cp1252", "ä ?\n"), ("ascii", "? ?\n"), ("utf-8", "ä →\n")])
def test_o_w1_what_a_console_lacks_is_replaced(encoding: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
    monkeypatch.setattr("sys.stdout", stream)
    echo("ä →")
    assert raw.getvalue().decode(encoding) == shown


def summary(**fields: object) -> RunSummary:
    told = {"version": "0", "status": "finished", "folder": "run", "config": {}, "splits": {}, "gate": "hard"}
    return RunSummary(**(told | fields))  # type: ignore[arg-type]


def test_the_summary_holds_first_best_and_last_skill() -> None:
    text = summary_text(
        summary(
            baseline_selection_hard=0.125,
            best_selection_hard=1.0,
            final_selection_hard=0.75,
            baseline_test_hard=0.2,
            baseline_test_soft=0.4238,
            baseline_test_n=40,
            test_hard=0.95,
            test_soft=0.9833,
            test_n=40,
            intervals={"baseline_test_hard": [0.105, 0.348], "test_hard": None},
            best_step=8,
            total_steps=12,
            total_accepts=5,
            total_rejects=6,
            total_skips=1,
            total_wall_time_s=32.44,
            token_summary={"_total": {"calls": 1454, "total_tokens": 360449, "unknown_calls": 2}},
            model_failures={"malformed": 3},
            notes=("the split has no test tasks.",),
        )
    )
    assert text.splitlines() == [
        "skill          selection    test  95% interval  test soft  tasks",
        "-------------  ---------  ------  ------------  ---------  -----",
        "first             0.1250  0.2000  0.10 to 0.35     0.4238     40",
        "best (step 8)     1.0000  0.9500             -     0.9833     40",
        "last              0.7500       -             -          -      0",
        "",
        "12 steps: 5 accepted, 6 rejected, 1 skipped, 0 undecided, 0 forced",
        "32.4s, 1,454 model calls, 360,449 tokens (2 calls did not tell)",
        "Optimizer calls that came to nothing: 3 malformed",
        "Note: the split has no test tasks.",
    ]
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("tokens", [{}, {"_total": {"calls": 0, "total_tokens": None}}])
def test_a_summary_without_calls_says_what_is_unknown(tokens: dict[str, object]) -> None:
    assert "0.0s, 0 model calls, tokens unknown" in summary_text(summary(token_summary=tokens))
