"""A sink's streaming query: from ranges of Kafka's offsets to where they go, with a checkpoint that is thrown away."""

import shutil
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from parquet_sink.kafka.planning.admission import tick_ms
from parquet_sink.pipeline.connector_settings import TopicSettings
from parquet_sink.spark import handoff, source
from parquet_sink.spark.sink import NAME as SINK


def start_query(spark: SparkSession, settings: TopicSettings, folder: Path, *, until_caught_up: bool) -> StreamingQuery:
    """Starts it from the group's offsets. folder: the connector's run folder, as `handoff.write` made it."""
    checkpoint = folder / "checkpoint"
    shutil.rmtree(checkpoint, ignore_errors=True)
    options = {handoff.RUN_FOLDER: str(folder)}
    stream = spark.readStream.format(source.NAME).options(**options).load().writeStream.format(SINK)
    stream = stream.options(**options, checkpointLocation=str(checkpoint)).queryName(settings.name)
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", settings.name)  # its own turn at the slots
    trigger = (
        {"availableNow": True} if until_caught_up else {"processingTime": f"{tick_ms(settings.flush)} milliseconds"}
    )
    return stream.trigger(**trigger).start()
