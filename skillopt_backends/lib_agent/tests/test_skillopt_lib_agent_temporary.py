"""Temporary folders: private, gone at the end, and of a process that was killed gone with the next one."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from skillopt_lib_agent.temporary import PREFIX, YOUNG_SECONDS, delete_leftovers, temporary_folder

HOLDER = """
import sys
from pathlib import Path
from skillopt_lib_agent.temporary import temporary_folder
with temporary_folder("job", Path(sys.argv[1])) as folder:
    (folder / "auth.json").write_text("secret")
    print(folder, flush=True)
    sys.stdin.read()
"""


def begun(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that holds a folder, which looks as if it had been made long ago."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert (folder / "auth.json").exists()
    long_ago = time.time() - 2 * YOUNG_SECONDS
    os.utime(folder, (long_ago, long_ago))
    return process, folder


def ended(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()


def look_again(parent: Path) -> None:
    delete_leftovers.cache_clear()
    delete_leftovers(parent)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_a_folder_is_private_and_gone_at_the_end(tmp_path: Path) -> None:
    with temporary_folder("job", tmp_path) as folder:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert folder.name.startswith(f"{PREFIX}job-")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_and_what_is_held_stays(tmp_path: Path) -> None:
    process, folder = begun(tmp_path)
    other, held = begun(tmp_path)
    try:
        look_again(tmp_path)
        assert folder.exists()
        ended(process)
        look_again(tmp_path)
        assert not folder.exists()
        assert (held / "auth.json").exists()
    finally:
        ended(process)
        ended(other)


def test_what_is_new_or_not_ours_stays(tmp_path: Path) -> None:
    process, folder = begun(tmp_path)
    ended(process)
    os.utime(folder)
    other = tmp_path / "somebody-elses"
    other.mkdir()
    look_again(tmp_path)
    assert folder.exists()
    assert other.exists()


def test_the_first_folder_of_a_process_looks_for_leftovers(tmp_path: Path) -> None:
    process, folder = begun(tmp_path)
    ended(process)
    delete_leftovers.cache_clear()
    with temporary_folder("job", tmp_path):
        assert not folder.exists()
