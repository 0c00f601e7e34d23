"""Spark, as far as a connector meets it: a query that runs the real data sources in micro-batches."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from parquet_sink.spark import handoff
from parquet_sink.spark.sink import Outcomes, PushSink
from parquet_sink.spark.source import KafkaRanges
from tests.life.effects import Crash, Dies, Effects
from tests.spark_task import attempt

TRIES = 4
"""Of a Spark task: `local[N,4]`."""
TYPES = {"topic": StringType, "partition": IntegerType, "start": LongType, "end": LongType, "reason": StringType}
ROWS = StructType([StructField(name, kind()) for name, kind in {**TYPES, "work": StringType}.items()])
"""As `spark.rows` has them."""


class ProcessGone(RuntimeError):
    """What Spark says when one of its Python processes was killed."""


class Query:
    """Implements what `worker.loop.connector` asks of PySpark's `StreamingQuery`. on_tick: a trigger begins."""

    def __init__(self, folder: Path, effects: Effects, on_tick: Callable[[], None], *, draining: bool) -> None:
        self.isActive = True
        self._error: Exception | None = None
        self._options = {handoff.RUN_FOLDER: str(folder)}
        self._effects, self._on_tick, self._draining = effects, on_tick, draining
        self._reader = KafkaRanges(self._options).streamReader(None)  # type: ignore[arg-type]
        if draining:
            self._reader.prepareForTriggerAvailableNow()
        self._at: dict[str, Any] | None = None
        self._batches, self._busy = 0, False

    def exception(self) -> Exception | None:
        return self._error

    def stop(self) -> None:
        """In the middle of a micro-batch its processes are killed."""
        self.isActive = False
        if self._busy:
            self._effects.kill(Dies.QUERY)
        else:
            self._let_go()

    def tick(self) -> None:
        """One trigger. Raises Crash when the program dies of it."""
        self._busy, error = True, None
        try:
            self._tick()
        except Crash as crash:
            if crash.who is Dies.PROGRAM:
                raise
            self._effects.let_go()
            error = ProcessGone(f"a process of the {crash.who} was killed")
        except Exception as raised:  # noqa: BLE001 - whatever it is, the query ends with it
            error = raised
        finally:
            self._busy = False
        if error is not None or not self.isActive:
            self._error = error if self.isActive else None
            self.stop()

    def _tick(self) -> None:
        self._on_tick()
        start = self._reader.initialOffset() if self._at is None else self._at
        self._at, end = start, self._reader.latestOffset(start, ReadAllAvailable())
        if end == start:
            self.isActive = not self._draining
            return
        self._run(start, end)
        self._at = end

    def _run(self, start: dict[str, Any], end: dict[str, Any]) -> None:
        done: list[Outcomes] = []
        work = self._reader.partitions(start, end)
        self._batches += 1
        try:
            done += [self._task(one) for one in work]
            self._effects.gate("before report")
            self._writer().commit(done, self._batches)
            self._effects.gate("after report")
        except Exception:
            self._writer().abort(done, self._batches)
            raise

    def _task(self, work: Any) -> Outcomes:
        """A Spark task, tried again when its worker dies or raises; its outcome crosses to the driver by value."""
        for number in range(TRIES):
            last = number == TRIES - 1
            try:
                found = attempt(self._writer(), self._reader.read(work), number)
                self._effects.gate("task done")
            except Crash as crash:
                if crash.who is not Dies.TASK or last:
                    raise
                self._effects.let_go()
            except Exception:
                if last:
                    raise
            else:
                return found
        raise AssertionError("unreachable")

    def _writer(self) -> Any:
        return PushSink(self._options).streamWriter(ROWS, False)

    def _let_go(self) -> None:
        """What the planner's process held is let go by the system."""
        with self._effects.open():
            self._reader.stop()
            if self._reader._state is not None:
                self._reader._state.close()
                self._reader._state = None
