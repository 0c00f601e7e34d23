"""A sink's streaming query with a checkpoint that is thrown away, and the one thread that starts queries."""

import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, TypeVar
from zlib import crc32

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from parquet_sink.planner.admission import tick_ms
from parquet_sink.settings.connector import TopicSettings
from parquet_sink.spark import handoff, source
from parquet_sink.spark.sink import NAME as SINK

T = TypeVar("T")
FOLDERS: Final = ("offsets", "commits")
"""Of a checkpoint. For each folder that it makes itself Java starts a program that sets rights: 5 ms of CPU."""
SPREAD: Final = 0.1
"""Of a period: how far those of connectors differ at most."""
TIDY_S: Final = 5.0
"""So long after something was done it is tidied up: by then a query's processes have started, as a rule."""


# A start takes a second, more on a busy machine; whoever looks after connectors must not wait for it.
class Launcher:
    """Does what it is given, one after the other, in a thread that keeps no process alive.

    tidy: called `tidy_s` seconds after something was done, and again as long as it says that more is to come.
    """

    def __init__(self, tidy: Callable[[], bool] = lambda: False, tidy_s: float = TIDY_S) -> None:
        self._queue: SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = SimpleQueue()
        self._tidy, self._tidy_s = tidy, tidy_s
        Thread(target=self._run, name="spark-launcher", daemon=True).start()

    def __call__(self, act: Callable[[], T], /) -> "Future[T]":
        future: Future[T] = Future()
        self._queue.put((act, future))
        return future

    def _run(self) -> None:
        tidy_at_s: float | None = None
        while True:
            if tidy_at_s is not None and time.monotonic() >= tidy_at_s:
                tidy_at_s = time.monotonic() + self._tidy_s if self._tidy() else None
            try:
                wait_s = None if tidy_at_s is None else max(tidy_at_s - time.monotonic(), 0.0)
                act, future = self._queue.get(timeout=wait_s)
            except Empty:
                continue
            tidy_at_s = tidy_at_s or time.monotonic() + self._tidy_s
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(act())
            except BaseException as error:  # noqa: BLE001 - whoever asks for the result gets it
                future.set_exception(error)


def start_query(spark: SparkSession, settings: TopicSettings, folder: Path, *, until_caught_up: bool) -> StreamingQuery:
    """Starts it from the group's offsets. folder: the connector's run folder, as `handoff.write` made it."""
    every_ms = None if until_caught_up else tick_ms(settings.flush)
    return start(spark, settings.name, folder, (source.NAME, SINK), every_ms)


def start(
    spark: SparkSession, name: str, folder: Path, formats: tuple[str, str], every_ms: int | None
) -> StreamingQuery:
    """A connector's query between two data sources, with a new checkpoint.

    every_ms: how often it looks at most, see `period_ms`; None: until nothing is left.
    """
    checkpoint = folder / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    for made in FOLDERS:
        (checkpoint / made).mkdir(parents=True, exist_ok=True)
    options = {handoff.RUN_FOLDER: str(folder)}
    stream = spark.readStream.format(formats[0]).options(**options).load().writeStream.format(formats[1])
    stream = stream.options(**options, checkpointLocation=str(checkpoint)).queryName(name)
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)  # its own turn at the slots
    if every_ms is None:
        return stream.trigger(availableNow=True).start()
    return stream.trigger(processingTime=f"{period_ms(name, every_ms)} milliseconds").start()


def period_ms(name: str, every_ms: int) -> int:
    """A connector's own period, up to SPREAD shorter than this.

    Spark triggers at multiples of the period, so all connectors of one period would look, and flush, at one moment.
    """
    return every_ms - crc32(name.encode()) % int(every_ms * SPREAD)
