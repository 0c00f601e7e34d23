"""A short run of Spark without Kafka and target, that loads the Java classes of a real one."""

import time
from collections.abc import Iterator, Sequence
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
from parquet_sink.spark.session import JAVA_OPTIONS, Session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

MICRO_BATCHES: Final = 3
TASKS: Final = 4
PATIENCE_S: Final = 300.0


@dataclass
class Done(WriterCommitMessage):
    """What a task of the practice returns: rows."""

    rows: int


class Practice(DataSource):
    """Both ends of the practice: ranges of nothing, a few micro-batches of them, and a sink that counts."""

    @classmethod
    def name(cls) -> str:
        return "parquet_sink_practice"

    def schema(self) -> str:
        return rows.DDL

    def streamReader(self, schema: "StructType") -> "PracticeReader":
        return PracticeReader()

    def streamWriter(self, schema: "StructType", overwrite: bool) -> "PracticeWriter":
        return PracticeWriter()


class PracticeReader(DataSourceStreamReader):
    """A range for each task and micro-batch."""

    def initialOffset(self) -> dict[str, Any]:
        return {"batch": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        return {"batch": min(start["batch"] + 1, MICRO_BATCHES)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(TASKS)]

    def read(self, partition: InputPartition) -> "Iterator[pa.RecordBatch]":
        yield rows.of_range(PlannedRange("", partition.value, 0, 0, rows.WARM_UP))


class PracticeWriter(DataSourceStreamArrowWriter):
    """Counts rows."""

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Done:
        return Done(sum(len(batch) for batch in iterator))

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Nothing is kept."""

    def abort(self, messages: Sequence[Any], batchId: int) -> None:
        """Nothing is kept."""


def practise(folder: Path, java_options: str = "") -> str:
    """Runs a few micro-batches in a session of its own; Java's class path in it.

    folder: for temporary files. java_options: on top of the usual ones. Raises SetupError when Spark does not start, or
    does not come to an end.
    """
    session = Session(None, folder, {"spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} {java_options}"})
    try:
        spark = session.start()
        spark.dataSource.register(Practice)
        stream = spark.readStream.format(Practice.name()).load().writeStream.format(Practice.name())
        stream = stream.option("checkpointLocation", str(folder / "checkpoint"))
        running = stream.trigger(processingTime="250 milliseconds").start()
        _wait(running)
        running.stop()
        jvm = spark._jvm  # noqa: SLF001 - PySpark has no other way to ask Java
        assert jvm is not None
        return str(jvm.java.lang.System.getProperty("java.class.path"))
    finally:
        session.close()


def _wait(running: "StreamingQuery") -> None:
    deadline = time.monotonic() + PATIENCE_S
    while (progress := running.lastProgress) is None or progress["batchId"] + 1 < MICRO_BATCHES:
        if not running.isActive or time.monotonic() > deadline:
            raise SetupError(f"Spark's practice did not come to an end: {running.exception()}")
        time.sleep(0.1)
