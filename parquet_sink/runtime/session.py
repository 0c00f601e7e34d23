"""The Spark session that hosts the connectors, and the two data sources by name."""

import os
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from parquet_sink.kafka.source import KafkaBlocks
from parquet_sink.sink import PushSink

SLOTS: Final = 4
"""Spark tasks at once when local: more than cores, because uploads wait on the network, not on a core."""
ATTEMPTS: Final = 4
"""Times a task is tried: `local[N]` alone never retries."""
LOCAL_MASTER: Final = f"local[{SLOTS},{ATTEMPTS}]"

SETTINGS: Final = {
    "spark.app.name": "parquet-sink",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=4",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.python.worker.reuse": "true",
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|authorization",
    "spark.log.level": "ERROR",
}
"""Ours unless the environment's Spark configuration says otherwise: one block is a row, and few rows make a batch, so
that memory stays bounded; ranges must not be merged into fewer tasks; history is kept short, for months of batches."""


def start(master: str | None, scratch: Path) -> SparkSession:
    """The session, both data sources registered. scratch: a folder for Spark's own temporary files."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ[name] = sys.executable
    local = master is None or master.startswith("local")
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [_package_root(), os.environ.get("PYTHONPATH", "")]))
    builder = SparkSession.builder.master(master or LOCAL_MASTER)
    for key, value in {**SETTINGS, **_folders(scratch), **(_loopback() if local else {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Makes `parquet_sink_kafka` and `parquet_sink` known to a session."""
    spark.dataSource.register(KafkaBlocks)
    spark.dataSource.register(PushSink)


def _folders(scratch: Path) -> dict[str, str]:
    return {"spark.local.dir": str(scratch), "spark.sql.warehouse.dir": str(scratch / "warehouse")}


def _loopback() -> dict[str, str]:
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _package_root() -> str:
    return str(Path(__file__).resolve().parents[2])


def slots(spark: SparkSession) -> int:
    """Spark tasks that can run at once now."""
    return max(int(spark.sparkContext.defaultParallelism), 1)
