"""A sink's streaming query: from ranges of Kafka's offsets to where they go, with a checkpoint that is thrown away."""

import shutil
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from parquet_sink.planner.admission import tick_ms
from parquet_sink.settings.connector import TopicSettings
from parquet_sink.spark import handoff, source
from parquet_sink.spark.sink import NAME as SINK


def start_query(spark: SparkSession, settings: TopicSettings, folder: Path, *, until_caught_up: bool) -> StreamingQuery:
    """Starts it from the group's offsets. folder: the connector's run folder, as `handoff.write` made it."""
    every_ms = None if until_caught_up else tick_ms(settings.flush)
    return start(spark, settings.name, folder, (source.NAME, SINK), every_ms)


def start(
    spark: SparkSession, name: str, folder: Path, formats: tuple[str, str], every_ms: int | None
) -> StreamingQuery:
    """A connector's query between two data sources, with a new checkpoint. every_ms: None: until nothing is left."""
    checkpoint = folder / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    options = {handoff.RUN_FOLDER: str(folder)}
    stream = spark.readStream.format(formats[0]).options(**options).load().writeStream.format(formats[1])
    stream = stream.options(**options, checkpointLocation=str(checkpoint)).queryName(name)
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)  # its own turn at the slots
    trigger = {"availableNow": True} if every_ms is None else {"processingTime": f"{every_ms} milliseconds"}
    return stream.trigger(**trigger).start()
