"""The live display on a terminal: one block that is redrawn, and a line above it for each step."""

from __future__ import annotations

from contextlib import suppress

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text
from skillopt_kernel.console import score
from skillopt_kernel.store.events import Event

from skillopt_commands import texts
from skillopt_commands.displays import Display
from skillopt_commands.progress import Progress


class LiveDisplay(Display):
    """Epoch, step, stage, attempts done and running, score, best, spend and the skill's tokens."""

    def __init__(self, console: Console | None = None, *, training: bool = True) -> None:
        self.console = console or Console()
        self.progress = Progress()
        self._training = training
        self._live = Live(console=self.console, refresh_per_second=5, transient=True, get_renderable=self.block)

    def show(self, event: Event) -> None:
        self.progress.take(event)
        for line in texts.event_lines(event, training=self._training):
            self.console.print(Text(line))
        if event.name == "run_started":
            self._live.start()
        elif event.name in ("run_finished", "run_failed"):
            self.close()

    def close(self) -> None:
        with suppress(OSError):  # the terminal may have gone
            self._live.stop()

    def block(self) -> Group:
        """What is redrawn, at most 80 columns wide."""
        run = self.progress
        missing = f", {run.missing} without a score" if run.missing else ""
        rows = {}
        if self._training:
            rows["where"] = f"epoch {run.epoch} of {run.total_epochs}, step {run.step} of {run.total_steps}"
        rows |= {"stage": run.stage, "attempts": f"{run.attempts} done, {run.running} running{missing}"}
        if self._training:
            tokens = "unknown" if run.skill_tokens is None else f"about {run.skill_tokens:,}"
            rows |= {"score": f"{score(run.current)}, best {score(run.best)}", "skill": f"{tokens} tokens"}
        rows["spend"] = run.spend()
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="bold")
        for name, value in rows.items():
            grid.add_row(name, Text(value))
        bar = ProgressBar(total=max(run.total_steps, 1), completed=run.steps_done, width=60)
        return Group(bar, Text(), grid) if self._training else Group(grid)
