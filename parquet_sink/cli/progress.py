"""Progress of long work: a bar on a terminal, log lines where they are asked for, else nothing."""

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TimeRemainingColumn

log = logging.getLogger(__name__)

LOG_S: Final = 5.0
_TOLD_S: Final = 0.2
listener: Callable[[int, int, str], None] | None = None
"""Told what is done, of how much, and in words, where a process does its work for another one (`cli.job`)."""


class ShownProgress:
    """Use as a context manager. what: whose work it is, as a log line begins.

    total: in units of `advance`; 0 where it is not known.
    columns: of the bar, between itself and the time that is left. logs: log lines, one every five seconds, and no bar.
    """

    def __init__(
        self,
        what: str,
        total: int,
        *columns: ProgressColumn,
        logs: bool,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._total, self._logs = what, total, logs
        self._monotonic, self._last_s, self._done = monotonic, monotonic(), 0
        self._lock = threading.Lock()
        self._bar = None
        if not logs and sys.stderr.isatty():
            shown = (BarColumn(), *columns, TimeRemainingColumn())
            self._bar = Progress(*shown, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=total or None, told="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self, by: int, told: str) -> None:
        """So much more is done; told: what, in words. Any thread may call it."""
        with self._lock:
            self._done += by
            if listener is not None and self._monotonic() - self._last_s >= _TOLD_S:
                self._last_s = self._monotonic()
                listener(self._done, self._total, told)
            elif self._bar is not None:
                self._bar.update(self._task, completed=self._done, told=told)
            elif self._logs and self._monotonic() - self._last_s >= LOG_S:
                self._last_s = self._monotonic()
                log.info("%s: %.0f %% %s", self._what, 100 * self._done / max(self._total, 1), told)
