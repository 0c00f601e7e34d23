"""Progress of reading an archive: a bar on a terminal, log lines where they are asked for, else nothing."""

import logging
import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

log = logging.getLogger(__name__)

LOG_S: Final = 5.0


class Shown:
    """Use as a context manager. total: bytes to be read. logs: log lines, and no bar."""

    def __init__(
        self, connector: str, total: int, *, logs: bool, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._connector, self._total, self._logs = connector, total, logs
        self._monotonic, self._last_s, self._read = monotonic, monotonic(), 0
        self._bar = None
        if total and not logs and sys.stderr.isatty():
            self._bar = Progress(
                *(BarColumn(), DownloadColumn(), TimeRemainingColumn()), console=Console(stderr=True), transient=True
            )
            self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def read(self, size_bytes: int) -> None:
        """So many bytes more."""
        self._read += size_bytes
        if self._bar is not None:
            self._bar.update(self._task, completed=self._read)
        elif self._logs and self._monotonic() - self._last_s >= LOG_S:
            self._last_s = self._monotonic()
            share = 100 * self._read / max(self._total, 1)
            log.info("connector %s: archive: %.0f %% of %.1f MB read", self._connector, share, self._total / 1e6)
