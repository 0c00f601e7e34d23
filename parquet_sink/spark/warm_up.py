"""A streaming query of nothing, so that what the first one of a session has to load is loaded before there is one.

Ranges of nothing go through both ends of a query, as a connector's do: Java loads its classes, Python workers start.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit

from parquet_sink.errors import SetupError
from parquet_sink.model.ranges import PlannedRange
from parquet_sink.spark import rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

LOOK_S: Final = 0.1
BATCHES, TASKS = "batches", "tasks"
"""Options: micro-batches in all, and Spark tasks of each."""


@dataclass
class Done(WriterCommitMessage):
    """What a task returns: rows."""

    rows: int


class WarmUp(DataSource):
    """Both ends of the query: ranges of nothing, a few micro-batches of them, and a sink that counts."""

    @classmethod
    def name(cls) -> str:
        return "parquet_sink_warm_up"

    def schema(self) -> str:
        return rows.DDL

    def streamReader(self, schema: "StructType") -> "WarmUpReader":
        return WarmUpReader(self.options)

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "WarmUpWriter":
        return WarmUpWriter()


class WarmUpReader(DataSourceStreamReader):
    """A range for each task and micro-batch."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._batches, self._tasks = int(options[BATCHES]), int(options[TASKS])

    def initialOffset(self) -> dict[str, Any]:
        return {"batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return {"batch": min(start["batch"] + 1, self._batches)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(self._tasks)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        yield rows.of_ranges([PlannedRange("", partition.value, 0, 0, rows.WARM_UP)])


class WarmUpWriter(DataSourceStreamArrowWriter):
    """Counts rows."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Done:
        return Done(sum(len(batch) for batch in iterator))

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Nothing is kept."""

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        """Nothing is kept."""


def start(spark: "SparkSession", folder: Path, batches: int = 1, tasks: int = 1) -> "StreamingQuery":
    """Begins it; in a thread that knows the session. folder: for its checkpoint."""
    spark.dataSource.register(WarmUp)
    stream = spark.readStream.format(WarmUp.name()).options(**{BATCHES: batches, TASKS: tasks}).load()
    writing = stream.writeStream.format(WarmUp.name()).option("checkpointLocation", str(folder))
    return writing.trigger(processingTime="250 milliseconds").start()


def finish(running: "StreamingQuery", within_s: float, batches: int = 1) -> None:
    """Ends it after so many micro-batches. Raises SetupError when it does not get there in that time, or fails."""
    deadline = time.monotonic() + within_s
    while (progress := running.lastProgress) is None or progress["batchId"] + 1 < batches:
        if not running.isActive or time.monotonic() > deadline:
            raise SetupError(f"Spark's warm-up run did not come to an end: {running.exception()}")
        time.sleep(LOOK_S)
    running.stop()
