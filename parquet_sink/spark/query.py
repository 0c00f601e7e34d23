"""A connector's streaming query: from Kafka's blocks to the push API, with a checkpoint that is thrown away."""

import shutil
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from parquet_sink.kafka.settings import FlushSettings
from parquet_sink.pipeline.settings import SinkSettings
from parquet_sink.spark import handoff, source
from parquet_sink.spark.sink import NAME as SINK


def start_query(spark: SparkSession, settings: SinkSettings, folder: Path, *, until_caught_up: bool) -> StreamingQuery:
    """Starts it from the group's offsets. folder: the connector's run folder, as `handoff.write` made it."""
    checkpoint = folder / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    options = {handoff.RUN_FOLDER: str(folder)}
    stream = spark.readStream.format(source.NAME).options(**options).load().writeStream.format(SINK)
    stream = stream.options(**options, checkpointLocation=str(checkpoint)).queryName(settings.name)
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", settings.name)  # its own turn at the slots
    trigger = {"availableNow": True} if until_caught_up else {"processingTime": tick(settings.flush)}
    return stream.trigger(**trigger).start()


def tick(flush: FlushSettings) -> str:
    """A quarter of the commit interval, between 0.25 and 1 s: a range is due within a second of its age."""
    return f"{min(max(flush.commit_interval_ms // 4, 250), 1_000)} milliseconds"
