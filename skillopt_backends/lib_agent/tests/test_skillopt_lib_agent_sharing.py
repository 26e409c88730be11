"""Files that jobs only read are copied once and linked; a job that writes to them does not count."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import skillopt_lib_agent.sharing as sharing
from skillopt_kernel.errors import EnvironmentFailure
from skillopt_kernel.models.requests import AgentJob
from skillopt_lib_agent.failures import Program
from skillopt_lib_agent.launcher import Launcher
from skillopt_lib_agent.settings import ProgramSettings
from skillopt_lib_agent.sharing import SharedFiles
from skillopt_lib_agent.workspace import fresh_place


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "corpus" / "a.txt"
    path.parent.mkdir()
    path.write_bytes(b"as it is")
    return path


@pytest.fixture
def shared():
    made = SharedFiles()
    yield made
    made.close()


def forced(path: Path, data: bytes) -> None:
    """Write to a file whose owner took the right to write from it, as root or whoever takes it back can."""
    path.chmod(0o644)
    path.write_bytes(data)


def test_jobs_that_read_are_given_links_to_one_copy_and_never_the_source(tmp_path, source, shared):
    files = {"corpus/a.txt": source, "note.md": b"own"}
    with shared.laid(tmp_path / "1", files, edits=False), shared.laid(tmp_path / "2", files, edits=False):
        first, second = (tmp_path / name / "corpus/a.txt" for name in "12")
        assert first.read_bytes() == b"as it is" and (tmp_path / "2/note.md").read_bytes() == b"own"
        assert first.stat().st_ino == second.stat().st_ino != source.stat().st_ino
        assert first.stat().st_mode & 0o777 == 0o444
        first.unlink()  # its own link is the job's
        assert second.read_bytes() == b"as it is"
    assert source.read_bytes() == b"as it is" and source.stat().st_nlink == 1


def test_a_job_that_edits_owns_its_files(tmp_path, source, shared):
    with shared.laid(tmp_path / "1", {"a.txt": source}, edits=True):
        (tmp_path / "1/a.txt").write_bytes(b"changed")
    with shared.laid(tmp_path / "2", {"a.txt": source}, edits=True):
        assert (tmp_path / "2/a.txt").read_bytes() == b"as it is"


def test_a_job_that_writes_to_what_others_read_does_not_count_nor_do_those(tmp_path, source, shared):
    files = {"corpus/a.txt": source}
    wrote = r"wrote to 'corpus/a\.txt'.*does not count"
    with pytest.raises(EnvironmentFailure, match=wrote), shared.laid(tmp_path / "beside", files, edits=False):
        with pytest.raises(EnvironmentFailure, match=wrote), shared.laid(tmp_path / "writer", files, edits=False):
            forced(tmp_path / "writer/corpus/a.txt", b"another text")
        with shared.laid(tmp_path / "later", files, edits=False):
            assert (tmp_path / "later/corpus/a.txt").read_bytes() == b"as it is"
    assert source.read_bytes() == b"as it is"


def test_a_source_that_changed_is_copied_anew(tmp_path, source, shared):
    with shared.laid(tmp_path / "1", {"a.txt": source}, edits=False):
        pass
    source.write_bytes(b"longer than it was")
    with shared.laid(tmp_path / "2", {"a.txt": source}, edits=False):
        assert (tmp_path / "2/a.txt").read_bytes() == b"longer than it was"


def test_where_nothing_can_be_linked_files_are_copied(tmp_path, source, shared, monkeypatch):
    def refused(*_: object) -> None:
        raise OSError("another disk")

    monkeypatch.setattr(os, "link", refused)
    with shared.laid(tmp_path / "1", {"a.txt": source}, edits=False):
        (tmp_path / "1/a.txt").write_bytes(b"its own")
    with shared.laid(tmp_path / "2", {"a.txt": source}, edits=False):
        assert (tmp_path / "2/a.txt").read_bytes() == b"as it is"


def test_copies_are_bounded(tmp_path, source, shared, monkeypatch):
    monkeypatch.setattr(sharing, "MOST_SHARED", 10)
    other = source.with_name("b.txt")
    other.write_bytes(b"beyond")
    for name in ("1", "2"):
        with shared.laid(tmp_path / name, {"a.txt": source, "b.txt": other}, edits=False):
            assert (tmp_path / name / "b.txt").read_bytes() == b"beyond"
    assert (tmp_path / "1/a.txt").stat().st_nlink == 3  # the copy and two workspaces
    assert (tmp_path / "1/b.txt").stat().st_nlink == 1


@pytest.mark.parametrize("edits", [True, False])
def test_bad_names_and_missing_files_are_told_as_ever(tmp_path, source, shared, edits):
    with pytest.raises(EnvironmentFailure, match="inside"), shared.laid(tmp_path, {"../x": source}, edits=edits):
        pass
    missing = {"sheet.csv": tmp_path / "nowhere"}
    told = r"'sheet.csv'.*nowhere"
    with pytest.raises(EnvironmentFailure, match=told), shared.laid(tmp_path, missing, edits=edits):
        pass


def test_many_jobs_at_once_make_one_copy(tmp_path, shared):
    files = {}
    for number in range(50):
        files[f"{number}.txt"] = tmp_path / f"{number}.txt"
        files[f"{number}.txt"].write_bytes(b"x" * number)

    def job(number: int) -> list[int]:
        folder = tmp_path / f"job{number}"
        with shared.laid(folder, files, edits=False):
            return [(folder / name).stat().st_ino for name in files]

    with ThreadPoolExecutor(8) as pool:
        assert len({tuple(numbers) for numbers in pool.map(job, range(16))}) == 1


def test_a_launcher_deletes_its_copies_when_it_is_closed(source):
    made = Launcher(Program("T", "t", "model.t", "i", "s"), ProgramSettings(), command="t")
    job = AgentJob("", "", {"a.txt": source})
    with fresh_place() as place, made.laid(place, job):
        kept = place.workspace / "a.txt"
        assert kept.stat().st_nlink == 2
        made.close()
        assert kept.stat().st_nlink == 1
    with fresh_place() as place, made.laid(place, job):
        assert (place.workspace / "a.txt").read_bytes() == b"as it is"
