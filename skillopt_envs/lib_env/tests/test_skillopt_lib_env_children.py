"""A child is bounded in time and output, and nothing that it began stays behind."""

import os
import sys
import time

import pytest
from skillopt_lib_env.children import plain_environment, run_child


def run(code, sent=b"", seconds=60.0, most=100_000, **further):
    return run_child([sys.executable, "-c", code], sent, seconds=seconds, most=most, **further)


def test_output_errors_and_exit_code():
    code = "import sys; data = sys.stdin.buffer.read(); print(len(data)); print('oh', file=sys.stderr); sys.exit(3)"
    done = run(code, b"x" * 300_000)
    assert (done.code, done.output.split(), done.errors.split(), done.ended) == (3, [b"300000"], [b"oh"], "")


def test_too_long_and_too_much():
    assert run("import time; time.sleep(600)", seconds=0.2).ended == "time"
    much = run("while True: print('x' * 1000)", most=5_000)
    assert (much.ended, len(much.output)) == ("output", 5_000)
    assert run("print('x' * 4000)", most=5_000).ended == ""


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="process groups")
@pytest.mark.parametrize("ended", ["", "output"])
def test_what_a_child_began_ends_with_it(tmp_path, ended):
    """The grandchild holds the child's output open: waiting for its end would take ten minutes."""
    file = tmp_path / "pid"
    code = (
        "import subprocess, sys, pathlib\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"pathlib.Path({str(file)!r}).write_text(str(p.pid))\n"
        f"while {ended!r}: print('x' * 1000)\n"
    )
    done = run(code, seconds=300.0)
    assert done.ended == ended
    pid = int(file.read_text())
    for _ in range(600):  # its parent is gone: who takes it over may be slow to collect it
        if not _lives(pid):
            return
        time.sleep(0.1)
    pytest.fail("the grandchild is still there")


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = f"/proc/{pid}/stat"
    if os.path.exists(stat):  # noqa: PTH110
        with open(stat) as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    return True


def test_a_program_that_is_not_there():
    with pytest.raises(OSError, match="no-such-program"):
        run_child(["no-such-program"], b"", seconds=1, most=10)


def test_credentials_stay_here(monkeypatch):
    monkeypatch.setenv("MY_API_KEY", "k")
    monkeypatch.setenv("MY_PLAIN", "p")
    assert "MY_API_KEY" not in plain_environment()
    assert plain_environment(["MY_API_KEY"])["MY_API_KEY"] == "k"
    assert plain_environment()["MY_PLAIN"] == "p"
