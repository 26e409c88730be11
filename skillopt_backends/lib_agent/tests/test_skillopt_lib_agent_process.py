"""A program in a session of its own: what it is told, what it says, and that nothing of it outlives its time."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from skillopt_kernel.errors import PassingError
from skillopt_lib_agent.descendants import descendants
from skillopt_lib_agent.process import Finished, Processes
from skillopt_lib_agent.workspace import fresh_place
from skillopt_testkit.programs import write_program

LONG = 60.0
"""Seconds that are more than any test needs."""

ECHO = """
import sys
data = sys.stdin.buffer.read()
sys.stdout.buffer.write(data)
sys.stderr.write(f"{len(data)} bytes")
sys.exit(3)
"""

FAMILY = """
import os, subprocess, sys, time
child = [sys.executable, "-c", "import time; time.sleep(600)"]
plain = subprocess.Popen(child)
escaped = subprocess.Popen(child, start_new_session=True)
print(os.getpid(), plain.pid, escaped.pid, flush=True)
if {stays}: time.sleep(600)
"""


def alive(number: int) -> bool:
    """Whether a process runs; one that has ended and whose exit code nobody took does not."""
    try:
        stat = Path(f"/proc/{number}/stat").read_text("utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_until(holds, seconds: float = LONG) -> bool:
    ends = time.monotonic() + seconds
    while not holds() and time.monotonic() < ends:
        time.sleep(0.01)
    return bool(holds())


def threads_and_files() -> tuple[int, int]:
    files = Path("/proc/self/fd")
    return threading.active_count(), len(list(files.iterdir())) if files.exists() else 0


def run(program: Path, *, stdin: str = "", seconds: float = LONG, processes: Processes | None = None, **options):
    """How the program ended, and what it printed."""
    with fresh_place() as place:
        done: Finished = (processes or Processes()).run(
            [str(program)],
            stdin=stdin,
            streams=place.streams,
            folder=place.workspace,
            variables={"PATH": os.environ["PATH"]},
            deadline=time.monotonic() + seconds,
            **options,
        )
        return done, done.stdout.read_text("utf-8")


def test_a_prompt_longer_than_a_command_line_arrives_whole_in_utf8(tmp_path):
    prompt = "größer 🦉 " * 30_000
    done, out = run(write_program(tmp_path, "echo", ECHO), stdin=prompt)
    assert out == prompt
    assert (done.code, done.how, done.stderr) == (3, "by itself", f"{len(prompt.encode())} bytes")


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")
def test_a_deadline_ends_the_whole_family_also_what_left_the_group(tmp_path):
    family = write_program(tmp_path, "family", FAMILY.format(stays=True))
    for seconds in (2.0, 8.0, 30.0):  # a busy machine may not have started the children when the time is over
        done, out = run(family, seconds=seconds)
        assert done.how == "deadline"
        numbers = [int(word) for word in out.split()]
        if len(numbers) == 3:
            break
    assert len(numbers) == 3
    assert wait_until(lambda: not any(map(alive, numbers)))


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")
def test_what_a_program_leaves_behind_in_its_group_ends_with_it(tmp_path):
    done, out = run(write_program(tmp_path, "family", FAMILY.format(stays=False)))
    _, plain, escaped = (int(word) for word in out.split())
    try:
        assert (done.how, done.code) == ("by itself", 0)
        assert wait_until(lambda: not alive(plain))
    finally:
        if alive(escaped):  # it is nobody's child any more, so that only a wall could end it
            os.kill(escaped, 9)


def test_a_program_that_ends_by_a_signal_says_so(tmp_path):
    done, _ = run(write_program(tmp_path, "shot", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"))
    assert (done.code, done.how) == (-9, "by itself")


def test_a_flood_of_output_is_stopped(tmp_path):
    flood = write_program(tmp_path, "flood", "while True: print('x' * 10_000)")
    done, _ = run(flood, most_output=1_000_000)
    assert done.how == "output"


def test_closing_ends_what_runs_and_nothing_begins_any_more(tmp_path):
    processes = Processes()
    mark = tmp_path / "begun"
    sleeper = write_program(tmp_path, "sleeper", f"import time; open({str(mark)!r}, 'w').close(); time.sleep(600)")
    ended = []
    thread = threading.Thread(target=lambda: ended.append(run(sleeper, processes=processes)[0].how))
    thread.start()
    assert wait_until(mark.exists)
    processes.close()
    thread.join(LONG)
    assert ended == ["cancelled"]
    with pytest.raises(PassingError):
        run(sleeper, processes=processes)


KILLED = """
import os, sys, time
from pathlib import Path
from skillopt_lib_agent.process import Processes
streams = Path(sys.argv[2])
streams.mkdir()
processes = Processes()
for program in ("true", sys.argv[1]):
    processes.run([program], stdin="", streams=streams, folder=streams, variables=dict(os.environ),
                  deadline=time.monotonic() + 600, guarded=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")
def test_a_program_does_not_outlive_a_run_that_was_killed(tmp_path):
    """Nobody is there any more who could end it, but its guard."""
    mark = tmp_path / "begun"
    family = f"open({str(mark)!r}, 'w').write(f'{{os.getpid()}} {{plain.pid}} ')\nwhile True: time.sleep(600)\n"
    program = write_program(tmp_path / "programs", "family", FAMILY.format(stays=False) + family)
    run_of_it = subprocess.Popen([sys.executable, "-c", KILLED, program, tmp_path / "streams"])
    try:
        assert wait_until(lambda: mark.exists() and mark.read_text("utf-8").endswith(" "))
        numbers = [int(word) for word in mark.read_text("utf-8").split()]
        assert all(map(alive, numbers))
    finally:
        run_of_it.kill()
        run_of_it.wait()
    assert wait_until(lambda: not any(map(alive, numbers)))
    escaped = int((tmp_path / "streams/stdout").read_text("utf-8").split()[2])
    if alive(escaped):
        os.kill(escaped, 9)


def test_no_thread_and_no_open_file_is_left(tmp_path):
    echo, processes = write_program(tmp_path, "echo", ECHO), Processes()
    run(echo, processes=processes)
    before = threads_and_files()
    threads = [threading.Thread(target=run, args=(echo,), kwargs={"processes": processes}) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert threads_and_files() == before


def test_descendants_are_told_from_later_processes_of_the_same_number(tmp_path):
    assert descendants(os.getpid()) == descendants(os.getpid())
    assert descendants(2**22 + 1) == set()
