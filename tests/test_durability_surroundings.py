"""A run whose surroundings fail it: a full disk, permissions, a folder that moves or goes, a path that is too long."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from struck_runs import START, Struck

INTACT = "What was saved is intact: run the same command again."


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Struck:
    return Struck.make(tmp_path_factory.mktemp("surroundings"))


@pytest.fixture
def struck(made: Struck, request: pytest.FixtureRequest) -> Iterator[tuple[Struck, str, Path]]:
    """The project, and a run of this test alone: its name and its folder."""
    out = "".join(c if c.isalnum() else "-" for c in request.node.name)
    yield made, out, made.project.folder / out
    made.happens("pass")


# A full disk ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 100, 20_000])
def test_files_that_cannot_grow_are_told_and_nothing_is_lost(struck: tuple[Struck, str, Path], size: int) -> None:
    """A limit of the size of files stands for a disk that is full."""
    made, out, folder = struck
    made.happens(f"resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.RLIM_INFINITY))")
    made.train(out, "-q").refused(f"cannot write {out}/", "Free the space", INTACT)
    assert json.loads((folder / "runtime_state.json").read_text())["last_completed_step"] == 1
    made.goes_on(out)


def small_disk(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script in which a disk of 300 kB is mounted at `folder`, that nobody else sees."""
    mounted = f"mount -t tmpfs -o size=300k none {shlex.quote(str(folder))} && cd {shlex.quote(str(folder.parent))}"
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", f"{mounted} && {script}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def has_small_disk(folder: Path) -> bool:
    return shutil.which("unshare") is not None and small_disk(folder, "true").returncode == 0


def test_a_disk_that_is_full_is_told_and_the_run_goes_on_once_there_is_space(
    struck: tuple[Struck, str, Path], tmp_path: Path
) -> None:
    made, out, folder = struck
    folder.mkdir()
    if not has_small_disk(folder):
        pytest.skip("this system does not let its users mount a disk of their own")
    python = f"{shlex.quote(sys.executable)} -P -c {shlex.quote(START)}"
    train = f"{python} train mine.yaml --out {out}/run -q"
    kept = shlex.quote(str(tmp_path / "kept"))
    more = f"mount -o remount,size=100m {out}"
    done = small_disk(folder, f"{train}; echo ended with $?; {more}; {train} && cp -r {out}/run {kept}")
    assert done.returncode == 0, done.stderr
    assert "ended with 2\n" in done.stdout
    (line,) = done.stderr.splitlines()
    assert (line.startswith(f"Error: cannot write {out}/run/") and "full" in line) or "No space left" in line
    assert line.endswith(INTACT)
    folder.rmdir()
    shutil.copytree(tmp_path / "kept", folder)
    made.goes_on(out)


# Permissions ----------------------------------------------------------------------------------------------------


def bound_by_permissions() -> None:
    """In the child, before it begins: the superuser gives up what lets it write everywhere (CAP_DAC_OVERRIDE, ...)."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (1, 2):
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


def are_bound(folder: Path) -> bool:
    """Whether a process that began so is refused by a folder without permissions."""
    closed = folder / "closed"
    closed.mkdir(mode=0o500)
    tried = subprocess.run(
        [sys.executable, "-c", f"open({str(closed / 'file')!r}, 'w')"], stderr=subprocess.DEVNULL,
        preexec_fn=bound_by_permissions,
    )  # fmt: skip
    return tried.returncode != 0


@pytest.fixture(scope="module")
def bound(tmp_path_factory: pytest.TempPathFactory) -> None:
    if sys.platform == "win32" or not are_bound(tmp_path_factory.mktemp("bound")):
        pytest.skip("permissions do not bind this user")


@pytest.mark.usefixtures("bound")
def test_a_folder_that_may_not_be_written_is_told_at_the_start(struck: tuple[Struck, str, Path]) -> None:
    made, out, folder = struck
    folder.mkdir(mode=0o500)
    done = made.train(f"{out}/run", "-q", prepare=bound_by_permissions)
    done.refused(f"cannot write {out}/run: Permission denied. ", "choose another folder (--out)")
    assert not list(folder.iterdir())


@pytest.mark.usefixtures("bound")
def test_a_folder_that_may_not_be_looked_into_is_told_at_the_start(struck: tuple[Struck, str, Path]) -> None:
    made, out, folder = struck
    folder.mkdir(mode=0)
    for command in (("train", "mine.yaml", "--out", f"{out}/run"), ("status", f"{out}/run"), ("calls", f"{out}/run")):
        done = made.start(*command, prepare=bound_by_permissions).wait()
        assert "a defect" not in done.refused("Permission denied").err
    folder.chmod(0o700)


@pytest.mark.usefixtures("bound")
def test_a_run_directory_that_becomes_read_only_is_told_and_goes_on_afterwards(
    struck: tuple[Struck, str, Path],
) -> None:
    made, out, folder = struck
    made.happens("os.chmod(root, 0o500); os.chmod(root / 'steps' / 'step_0002', 0o500)")
    done = made.train(out, "-q", prepare=bound_by_permissions)
    done.refused(f"cannot write {out}/", "Permission denied. ", "correct the permissions", INTACT)
    made.train(out, "-q", prepare=bound_by_permissions).refused("Permission denied")
    folder.chmod(0o700)
    (folder / "steps" / "step_0002").chmod(0o700)
    made.goes_on(out)
    assert (folder / "summary.json").exists()


# A folder that moves, goes, or is not one -----------------------------------------------------------------------


def test_a_run_that_was_stopped_goes_on_in_another_place(struck: tuple[Struck, str, Path], tmp_path: Path) -> None:
    made, out, folder = struck
    made.happens("os.kill(os.getpid(), signal.SIGKILL)")
    assert made.train(out, "-q").code == -9
    shutil.copytree(folder, tmp_path / "copied")
    shutil.rmtree(folder)
    (tmp_path / "copied").rename(made.project.folder / f"{out}-moved")
    made.goes_on(f"{out}-moved")
    assert not folder.exists()


GONE = "is no longer there: the run directory was moved or deleted while the run went on"


def test_a_run_directory_that_is_moved_under_way_gets_no_second_one_in_its_place(
    struck: tuple[Struck, str, Path],
) -> None:
    made, out, folder = struck
    made.happens("root.rename(root.with_name(root.name + '-moved'))")
    made.train(out, "-q").refused(GONE, "Move it back and run the same command again")
    assert not folder.exists()
    folder.with_name(f"{out}-moved").rename(folder)
    made.goes_on(out)


def test_a_run_directory_that_is_deleted_under_way_is_told_and_the_run_begins_anew(
    struck: tuple[Struck, str, Path],
) -> None:
    made, out, folder = struck
    made.happens("shutil.rmtree(root)")
    made.train(out, "-q").refused(GONE, "if it is gone, that begins anew")
    assert not folder.exists()
    made.goes_on(out)


def test_files_where_folders_should_be_are_told(struck: tuple[Struck, str, Path]) -> None:
    made, out, folder = struck
    folder.write_text("a file")
    made.train(out, "-q").refused(f"{out} is a file, not a folder; choose another run directory (--out).")
    made.train(f"{out}/below", "-q").refused(f"cannot write {out}/below", "Not a directory")
    folder.unlink()
    made.happens("os.rename(root / 'steps', root / 'kept'); (root / 'steps').write_text('a file')")
    made.train(out, "-q").refused(f"cannot write {out}/steps/step_0002/", "move what is in the way", INTACT)
    (folder / "steps").unlink()
    (folder / "kept").rename(folder / "steps")
    made.goes_on(out)
    assert (folder / "summary.json").exists()


@pytest.mark.parametrize("path", ["x" * 300, "/".join(["x" * 200] * 25)], ids=["name", "path"])
def test_a_path_that_is_too_long_is_told(made: Struck, path: str) -> None:
    for command in (("train", "mine.yaml", "--out"), ("train", "mine.yaml", "--fresh", "--out"), ("status",)):
        done = made.start(*command, path).wait().refused("File name too long")
        assert "a defect" not in done.err


def test_a_path_in_which_the_files_below_are_too_long_is_told(made: Struck) -> None:
    path = "/".join(["x" * 100] * 6)
    done = made.train(path, "-q")
    done.refused(f"cannot write {path}/calls.sqlite: ", "(its path is too long for SQLite)", "another folder (--out)")
    assert "a defect" not in done.err
