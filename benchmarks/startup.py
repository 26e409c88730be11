"""How long `skillopt --help` takes, beside a bare interpreter: the median of ten starts each.

Measured with compiled bytecode, as every start but the first finds it; it is kept in a temporary folder.

python benchmarks/startup.py            prints a table
python benchmarks/startup.py --write    also writes benchmarks/results/startup.md
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time

from reporting import tell

STARTS = 10
LIMIT = 150.0
"""Milliseconds that `skillopt --help` may take."""

HELP = [sys.executable, "-c", "import sys; from skillopt_kernel.cli.main import main; sys.exit(main(['--help']))"]
COMMANDS = {
    "bare interpreter": [sys.executable, "-c", "pass"],
    "import skillopt_kernel": [sys.executable, "-c", "import skillopt_kernel"],
    "skillopt --help": HELP,
}


def milliseconds(command: list[str], environment: dict[str, str]) -> float:
    """Wall time of one start. Raises `CalledProcessError` when the command fails."""
    began = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
    return 1000 * (time.perf_counter() - began)


def measure() -> dict[str, float]:
    """The median of `STARTS` starts of each command, taken in turn so that a busy moment strikes all alike."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder
        for command in COMMANDS.values():
            milliseconds(command, environment)  # writes the compiled files
        rounds = [
            {name: milliseconds(command, environment) for name, command in COMMANDS.items()} for _ in range(STARTS)
        ]
    return {name: statistics.median(each[name] for each in rounds) for name in COMMANDS}


def table(medians: dict[str, float]) -> str:
    bare = medians["bare interpreter"]
    lines = ["| start | median of ten, ms | of a bare interpreter |", "|---|---:|---:|"]
    lines += [f"| {name} | {value:.0f} | {value / bare:.1f} |" for name, value in medians.items()]
    lines += [
        "",
        f"Python {platform.python_version()}, {platform.system()}; limit of `skillopt --help`: {LIMIT:.0f} ms.",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write benchmarks/results/startup.md")
    arguments = parser.parse_args()
    medians = measure()
    tell("Start of the command", "startup", table(medians), write=arguments.write)
    return 0 if medians["skillopt --help"] < LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
