"""Progress of a replay: a bar on a terminal, log lines where they are asked for, else nothing."""

import argparse
import logging
import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.receipts import Receipt
from parquet_sink.replay.results import SentFile
from parquet_sink.replay.run import Watcher

log = logging.getLogger(__name__)

LOG_S: Final = 5.0


class Shown(Watcher):
    """Use as a context manager. total: offsets to be read. doing: what becomes of files, in words."""

    def __init__(
        self,
        args: argparse.Namespace,
        connector: str,
        total: int,
        doing: str = "sent",
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connector, self._total, self._doing = connector, total, doing
        self._logs, self._monotonic, self._last_s = args.progress, monotonic, monotonic()
        self._read = self._files = self._rows = self._bytes = 0
        self._lock = threading.Lock()
        self._bar = None if self._logs or not sys.stderr.isatty() else _bar()
        self._task = None if self._bar is None else self._bar.add_task("", total=total, what="")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def read(self, offsets: int) -> None:
        self._tell(offsets)

    def sent(self, file: SentFile) -> None:
        with self._lock:
            self._files, self._rows = self._files + 1, self._rows + file.rows
            self._bytes += file.size_bytes
        self._tell(0)

    def _tell(self, offsets: int) -> None:
        with self._lock:
            self._read += offsets
            if self._bar is not None and self._task is not None:
                self._bar.update(self._task, advance=offsets, what=self._words())
            elif self._logs and self._monotonic() - self._last_s >= LOG_S:
                self._last_s = self._monotonic()
                percent = 100 * self._read / max(self._total, 1)
                log.info("connector %s: replay: %.0f %% of offsets read, %s", self._connector, percent, self._words())

    def _words(self) -> str:
        return f"{self._files:,} file{_s(self._files)} {self._doing}, {self._rows:,} rows, {self._bytes / 1e6:,.1f} MB"


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _bar() -> Progress:
    columns = (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[what]}"))
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)


class All(Watcher):
    """Several, in turn."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = watchers

    def read(self, offsets: int) -> None:
        for one in self._watchers:
            one.read(offsets)

    def sent(self, file: SentFile) -> None:
        for one in self._watchers:
            one.sent(file)

    def flushed(self, planned: PlannedRange, receipts: Sequence[Receipt]) -> None:
        for one in self._watchers:
            one.flushed(planned, receipts)
