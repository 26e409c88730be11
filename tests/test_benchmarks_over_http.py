"""The benchmarks over HTTP in their smallest form: each runs, and prints the table that it is for."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"

OTHER = """\
import json, pathlib, sys, urllib.request
url, data, out = sys.argv[1:]
item = json.loads(pathlib.Path(data, "train", "items.json").read_text())[0]
body = {"model": "sim-optimizer", "messages": [{"role": "user", "content": item["question"]}]}
asked = urllib.request.Request(url + "/chat/completions", json.dumps(body).encode())
reply = json.loads(urllib.request.urlopen(asked).read())["choices"][0]["message"]["content"]
rules = "".join(edit["content"] + "\\n" for edit in json.loads(reply)["edits"])
pathlib.Path(out, "skill.md").write_text(rules)
"""


def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARKS / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def rows(done: subprocess.CompletedProcess[str]) -> list[list[str]]:
    """The cells of the first table's rows."""
    lines = done.stdout.splitlines()
    assert lines and lines[0].startswith("| "), done.stdout + done.stderr
    found = []
    for line in lines[2:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def test_a_whole_training_is_measured() -> None:
    done = run("training_over_http.py", "--tasks", "20", "--latency-target", "0.01", "--latency-optimizer", "0.02")
    assert done.returncode in (0, 1), done.stderr  # how fast it was is not for a test to say
    table = rows(done)
    assert [row[0] for row in table] == ["20"]
    assert all(int(row[2].replace(",", "")) > int(row[0]) for row in table)
    assert 30 < int(table[0][6]) < 500


def test_the_whole_loop_is_measured_beside_a_bare_one() -> None:
    done = run("throughput.py", "--train", "4", "--rounds", "1", "--batch", "2")
    assert done.returncode in (0, 1), done.stderr
    assert [row[0] for row in rows(done)] == ["whole", "bare"]
    assert re.search(r"makes \d+\.\d\d of the bare one's calls a second", done.stdout)
    assert "| part of a worker's time | share |" in done.stdout


def test_resuming_a_run_with_a_long_history_is_measured() -> None:
    done = run("resume.py", "--megabytes", "1", "--outcomes", "200", "--repeats", "1")
    assert done.returncode in (0, 1), done.stderr
    assert [row[0] for row in rows(done)] == ["one step", "1 MB of events, 200 outcomes"]


def test_another_trainer_is_compared_on_the_same_server(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text(OTHER)
    command = f"{sys.executable} {tmp_path / 'other.py'} {{url}} {{data}} {{out}}"
    latencies = ("--latency-target", "0", "--latency-optimizer", "0")
    sizes = ("--sizes", "20", "6", "12")
    done = run("compare.py", "--other", command, "--skill", "*.md", *sizes, *latencies)
    assert done.returncode == 0, done.stderr
    other, ours = rows(done)
    assert other[0] == "other"
    assert other[2:4] == ["0", "1"]
    assert ours[0] == "ours"
    assert int(ours[2]) > 12
    assert 0.0 <= float(other[7]) <= 1.0


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("no-such-program {url}", "no-such-program cannot be started"),
        (f"{sys.executable} -c raise(SystemExit(3))", "ended with exit code 3"),
        (f"{sys.executable} -c pass", "names 0 files in the trainer's folder"),
    ],
)
def test_a_trainer_that_fails_is_one_sentence(other: str, words: str) -> None:
    done = run("compare.py", "--other", other, "--sizes", "1", "1", "1")
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr
