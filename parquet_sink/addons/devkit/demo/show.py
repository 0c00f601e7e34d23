"""What the demo tells: steps, progress, the proof. Bars on a terminal, otherwise a line every two seconds of change."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

from parquet_sink.addons.devkit.demo.proof import Check

LINE_EVERY_S: Final = 2.0
SAME_LINE_EVERY_S: Final = 10.0
"""When nothing has changed."""


@dataclass(frozen=True)
class Snapshot:
    """How the run stands. produced, delivered, total: records. rows, files: at the target. reasons: in words."""

    produced: int
    delivered: int
    total: int
    files: int
    rows: int
    reasons: str

    @property
    def lag(self) -> int:
        return max(self.produced - self.delivered, 0)


class Show:
    """Writes to a console. `clock` gives seconds that never go back."""

    def __init__(self, console: Console | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.console = console or Console(highlight=False)
        self._clock, self._begun = clock, clock()
        self._progress: Progress | None = None
        self._tasks: tuple[TaskID, ...] = ()
        self._printed: Snapshot | None
        self._line_at, self._printed = float("-inf"), None

    def heading(self, text: str) -> None:
        self.console.print()
        self.print(Text(text, style="bold"))

    def step(self, text: str) -> None:
        """One thing that is done, with the seconds since the start."""
        self.print(Text.assemble((f"{self._elapsed():6.1f} s  ", "dim"), text))

    def note(self, text: str) -> None:
        """A line that belongs to the step above it."""
        self.print(Text(f"          {text}", style="dim"))

    def print(self, text: Text | str) -> None:
        """One line, never cut or wrapped by us."""
        self.console.print(text, soft_wrap=True, markup=False)

    @contextmanager
    def progress(self, total: int) -> Iterator[None]:
        """While `snapshot` is called."""
        if not self.console.is_terminal:
            yield
            return
        columns = (
            TextColumn("          {task.description:<10}"),
            BarColumn(30, complete_style="green", finished_style="green"),
            TextColumn("{task.fields[text]}"),
        )
        with Progress(*columns, console=self.console) as self._progress:
            self._tasks = tuple(
                self._progress.add_task(name, total=total, text="") for name in ("produced", "delivered")
            )
            yield
        self._progress = None

    def snapshot(self, now: Snapshot) -> None:
        """Show how the run stands."""
        if self._progress is not None:
            produced, delivered = self._tasks
            self._progress.update(produced, completed=now.produced, text=f"{now.produced:,} of {now.total:,} records")
            self._progress.update(delivered, completed=now.delivered, text=_delivered(now))
        elif self._clock() >= self._line_at + (SAME_LINE_EVERY_S if now == self._printed else LINE_EVERY_S):
            self._line_at, self._printed = self._clock(), now
            self.step(f"produced {now.produced:,} of {now.total:,}; delivered {_delivered(now)}")

    def check(self, check: Check) -> None:
        """One line of the proof, and its details."""
        verdict = ("OK      ", "bold green") if check.ok else ("FAILED  ", "bold red")
        self.print(Text.assemble("  ", verdict, f"{check.name}: {check.figures}"))
        for detail in check.details:
            self.print(f"            {detail}")

    def verdict(self, checks: Sequence[Check]) -> None:
        """The last line."""
        failed = sum(not check.ok for check in checks)
        if failed:
            self.print(Text(f"FAILED: {failed} of {len(checks)} checks do not hold.", style="bold red"))
        else:
            self.print(Text(f"PROVEN: all {len(checks)} checks hold.", style="bold green"))

    def _elapsed(self) -> float:
        return self._clock() - self._begun


def _delivered(now: Snapshot) -> str:
    if not now.delivered and not now.files:
        return f"0, lag {now.lag:,} (the sink is starting)"
    rotated = f" ({now.reasons})" if now.reasons else ""
    files = f"{now.files:,} file{'' if now.files == 1 else 's'}"
    return f"{now.delivered:,}, lag {now.lag:,}; {now.rows:,} rows in {files}{rotated}"
