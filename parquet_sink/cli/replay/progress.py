"""What is seen of a replay while it runs."""

import argparse
import threading
import time
from collections.abc import Callable, Sequence
from typing import Self

from rich.progress import TextColumn

from parquet_sink.cli.progress import ShownProgress
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.model.receipts import Receipt
from parquet_sink.replay.results import SentFile
from parquet_sink.replay.run import Watcher


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
        columns = (TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[told]}"))
        what = f"connector {connector}: replay"
        self._shown = ShownProgress(what, total, *columns, logs=args.progress, monotonic=monotonic)
        self._doing, self._lock = doing, threading.Lock()
        self._files = self._rows = self._bytes = 0

    def __enter__(self) -> Self:
        self._shown.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._shown.__exit__(*error)

    def read(self, offsets: int) -> None:
        self._shown.advance(offsets, self._words())

    def sent(self, file: SentFile) -> None:
        with self._lock:
            self._files, self._rows = self._files + 1, self._rows + file.rows
            self._bytes += file.size_bytes
        self._shown.advance(0, self._words())

    def _words(self) -> str:
        files = f"{self._files:,} file{'' if self._files == 1 else 's'} {self._doing}"
        return f"of offsets read, {files}, {self._rows:,} rows, {self._bytes / 1e6:,.1f} MB"


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
