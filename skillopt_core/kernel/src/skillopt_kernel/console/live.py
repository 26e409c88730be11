"""The live display on a terminal: one block that is redrawn, and a line above it for each step."""

from __future__ import annotations

from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from skillopt_kernel.console import texts
from skillopt_kernel.console.displays import _Display
from skillopt_kernel.console.progress import Progress
from skillopt_kernel.store.events import Event


class LiveDisplay(_Display):
    """Epoch, step, stage, attempts done and running, score, best, spend and the skill's tokens."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self.progress = Progress()
        self._live = Live(self.block(), console=self.console, refresh_per_second=5, transient=True)
        self._started = False

    def show(self, event: Event) -> None:
        self.progress.take(event)
        if event.name == "run_started":
            for line in texts.start_lines(event.data):
                self._print(line)
            self._live.start()
            self._started = True
        elif event.name == "step_finished":
            self._print(texts.step_line(event))
        elif event.name == "epoch_finished":
            self._print(texts.epoch_line(event))
        elif event.name in ("run_finished", "run_failed"):
            self.close()
        if self._started:
            self._live.update(self.block())

    def close(self) -> None:
        if self._started:
            self._started = False
            self._live.stop()

    def block(self) -> Any:
        """What is redrawn."""
        progress = self.progress
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        grid.add_column()
        grid.add_row("where", f"{progress.where()}  {progress.stage}")
        done = f"{progress.stage_done} of {progress.stage_total} in this stage, " if progress.stage_total else ""
        missing = f", {progress.missing} without a score" if progress.missing else ""
        grid.add_row("attempts", f"{done}{progress.running} running, {progress.attempts} done{missing}")
        grid.add_row("scores", progress.scores())
        tokens = "unknown" if progress.skill_tokens is None else f"about {progress.skill_tokens:,} tokens"
        grid.add_row("skill", tokens)
        grid.add_row("spend", progress.spend())
        total = max(progress.stage_total, 1)
        return Group(ProgressBar(total=total, completed=min(progress.stage_done, total), width=60), grid)

    def _print(self, line: str) -> None:
        self.console.print(Text(line))
