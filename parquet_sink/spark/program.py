"""For PySpark programs: both data sources by name. DataFrames of your own: `spark.frame_program`.

    from parquet_sink import spark as parquet_sink

    parquet_sink.register(session)
    with parquet_sink.connector("orders.properties", worker="worker.properties") as options:
        stream = session.readStream.format("parquet_sink_kafka").options(**options).load()
        query = (
            stream.writeStream.format("parquet_sink").options(**options)
            .option("checkpointLocation", folder).trigger(processingTime="1 second").start()
        )

The source alone, with `.option("rows", "records")`, gives one row for each record (topic, partition, offset, timestamp
in epoch milliseconds, value), for any sink. The sink takes the rows of the source as they are, one for each range: a
program may filter them by topic or topic-partition, and may not change them. Offsets are committed to the connector's
group when the micro-batch after them begins, and these offsets alone say where a query goes on: the checkpoint may be
kept from run to run, or be a new folder at each start.
"""

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from parquet_sink.connectors.check import check_files
from parquet_sink.files.lock import ConnectorLock
from parquet_sink.settings.connector import ConnectorSettings
from parquet_sink.spark import handoff
from parquet_sink.spark.frame_program import dataframes
from parquet_sink.spark.sink import PushSink
from parquet_sink.spark.source import KafkaRanges
from parquet_sink.state.sqlite.store import SqliteStore

__all__ = ["connector", "dataframes", "register"]


def register(spark: SparkSession) -> None:
    """Makes `parquet_sink_kafka` and `parquet_sink` known to a session."""
    spark.dataSource.register(KafkaRanges)
    spark.dataSource.register(PushSink)


@contextmanager
def connector(
    file: str, *, worker: str | None = None, bootstrap_servers: str | None = None
) -> Iterator[dict[str, str]]:
    """The options of both data sources for a connector file; keep it open as long as the query runs.

    The options hold no secret: they name a private folder, which is removed at the end. Raises InvalidConfiguration,
    StorageFailed, and AnotherInstance when the connector runs on this machine already.
    """
    settings = check_files([file], worker, bootstrap_servers=bootstrap_servers).require()[0]
    lock = ConnectorLock(settings.files.tmp_dir, settings.name)
    with lock, tempfile.TemporaryDirectory(prefix="parquet-sink-") as folder, _state(settings) as state:
        handoff.write(settings, Path(folder), state.ids)
        yield {handoff.RUN_FOLDER: folder}


def _state(settings: ConnectorSettings) -> closing[SqliteStore]:
    """Open as long as the query runs: SQLite removes what is beside the file when the last process closes it."""
    return closing(SqliteStore.for_new_run(handoff.state_path(settings)))
