"""What reaches a terminal, and what becomes of it where nobody reads or nothing can be written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
from skillopt_kernel.console import echo, error
from skillopt_kernel.errors import SkillOptError


@pytest.fixture
def unread() -> Iterator[TextIO]:
    """A stream whose reader has ended."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w", encoding="utf-8") as stream:
        yield stream


def test_what_nobody_reads_is_dropped(unread: TextIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", unread)
    monkeypatch.setattr("sys.stderr", unread)
    for _ in range(3):
        echo("a line")
        error("another")
    assert os.path.samestat(os.fstat(unread.fileno()), Path(os.devnull).stat())


def test_a_process_may_have_been_begun_without_its_streams(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr", None)
    error("not to standard output either")
    assert capsys.readouterr().out == ""
    monkeypatch.setattr("sys.stdout", None)
    echo("a line")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_output_that_cannot_be_written_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stdout", full)
        with pytest.raises(SkillOptError, match=r"cannot write the output: No space left on device\. Free the space"):
            echo("a line")
        echo("dropped, as is what was left of the first when the stream is closed")
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr("sys.stderr", full)
        error("there is nobody who could be told")
