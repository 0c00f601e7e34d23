"""The writers of the data source `parquet_sink` for DataFrames with columns of the user's own.

A failure is raised where Spark has all tasks' results: the query, or the save, fails with our message, and the batch is
not noted as done.
"""

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from parquet_sink.errors import ConnectorError, InvalidConfiguration, SetupError
from parquet_sink.files import naming
from parquet_sink.files.storage import remove_empty
from parquet_sink.model.frames import FrameSlice
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.spark import rows
from parquet_sink.task.frame_settings import FrameOutcome, for_frame

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

BATCH: Final = "streaming.sql.batchId"
QUERY: Final = "sql.streaming.queryId"
"""Properties that Spark gives the tasks of a micro-batch. The query's id is kept in its checkpoint."""


RANGE_ROWS: Final = f"struct<{rows.DDL.replace('long', 'bigint').replace(', ', ',').replace(' ', ':')}>"
"""Rows of `spark.rows`, as Spark writes their schema."""
_RANGES: Final = {"start", "end", "reason", "work"}


def is_frame(schema: "StructType") -> bool:
    """Whether rows are a DataFrame's own, and not those of the source, one for each range.

    Raises InvalidConfiguration for rows of the source that a program has changed: they would be sent as they are.
    """
    if schema.simpleString() == RANGE_ROWS:
        return False
    if set(schema.fieldNames()) >= _RANGES:
        raise InvalidConfiguration(
            [
                (
                    "Rows of parquet_sink_kafka stand for ranges of offsets and cannot be changed, only filtered; read "
                    "the records themselves with option('rows', 'records') to write columns made of them."
                )
            ]
        )
    return True


@dataclass
class Written(WriterCommitMessage):
    """What one Spark task sends to the driver."""

    outcome: FrameOutcome


class FrameStreamWriter(DataSourceStreamArrowWriter):
    """A new one for each micro-batch. Raises InvalidConfiguration for what a DataFrame cannot have."""

    def __init__(self, settings: SinkSettings, overwrite: bool) -> None:
        if overwrite:
            raise InvalidConfiguration(
                ["Invalid [outputMode]. complete would replace a whole table, which no target does; write append."]
            )
        for_frame(settings)
        self._settings = settings

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        return _written(self._settings, _streamed(_task()), iterator)

    def commit(self, messages: Sequence[Any], batchId: int) -> None:
        """Raises ConnectorError when a file was refused or a row is invalid, which ends the query."""
        _require(messages)


class FrameSaveWriter(DataSourceArrowWriter):
    """One for each save. Raises InvalidConfiguration for what a DataFrame cannot have."""

    def __init__(self, settings: SinkSettings, overwrite: bool) -> None:
        if overwrite:
            raise InvalidConfiguration(
                ["Invalid [mode]. overwrite would replace a whole table, which no target does; write mode('append')."]
            )
        for_frame(settings)
        self._settings, self._run = settings, uuid.uuid4().hex

    def write(self, iterator: "Iterator[pa.RecordBatch]") -> Written:
        return _written(self._settings, FrameSlice(self._run, None, _task().partitionId()), iterator)

    def commit(self, messages: Sequence[Any]) -> None:
        """Raises ConnectorError when a file was refused or a row is invalid."""
        self._clean_up()
        _require(messages)

    def abort(self, messages: Sequence[Any]) -> None:
        self._clean_up()

    def _clean_up(self) -> None:
        """No save leaves a folder behind; a query has few, for as long as it lives."""
        base = naming.connector_folder(self._settings.files.tmp_dir, self._settings.name)
        remove_empty(os.path.join(base, FrameSlice(self._run, None, 0).label))


def _written(settings: SinkSettings, frame: FrameSlice, batches: "Iterator[pa.RecordBatch]") -> Written:
    from parquet_sink.task.frame_flush import FrameFlush  # only in workers: planning processes stay small

    return Written(FrameFlush(settings, frame).run(batches))


def _task() -> TaskContext:
    task = TaskContext.get()
    assert task is not None, "write is called in Spark tasks only"
    return task


def _streamed(task: TaskContext) -> FrameSlice:
    """Raises SetupError when Spark does not tell the batch: without it a repeated one would have other names."""
    batch, query = task.getLocalProperty(BATCH), task.getLocalProperty(QUERY)
    if batch is None or query is None:
        missing = BATCH if batch is None else QUERY
        raise SetupError(f"Spark gives its tasks no {missing}; PySpark 4.3 or newer is needed.")
    return FrameSlice(query.replace("-", ""), int(batch), task.partitionId())


def _require(messages: Sequence[Any]) -> None:
    failures = [one.outcome.failure for one in messages if isinstance(one, Written) and one.outcome.failure is not None]
    if failures:
        raise ConnectorError(failures[0].message)
