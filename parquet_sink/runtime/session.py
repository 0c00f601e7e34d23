"""The Spark session that hosts the connectors, and the two data sources by name."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from parquet_sink import logs
from parquet_sink.spark import register

SLOTS: Final = 4
"""Spark tasks at once when local: more than cores, because uploads wait on the network, not on a core."""
ATTEMPTS: Final = 4
"""Times a task is tried: `local[N]` alone never retries."""
LOCAL_MASTER: Final = f"local[{SLOTS},{ATTEMPTS}]"

LOG4J: Final = Path(__file__).resolve().with_name("log4j2.properties")

JAVA_OPTIONS: Final = (
    f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xms96m -Xmn64m -Dlog4j2.configurationFile={LOG4J.as_uri()}"
)
"""Java only plans and hands blocks on: measured with `make bench`, the quick compiler alone saves 0.8 µs CPU per record
and 80 MB against the optimising one, and a small young generation keeps the heap small."""

SETTINGS: Final = {
    "spark.app.name": "parquet-sink",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
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
}
"""One block is a row, and one row makes a batch, so that memory stays bounded; ranges must not be merged into fewer
tasks; history is kept short, for months of batches. What is given by `--conf` comes on top."""


def start(master: str | None, scratch: Path, extra: Mapping[str, str] | None = None) -> SparkSession:
    """The session, both data sources registered.

    master: Spark's, None for LOCAL_MASTER. scratch: a folder for Spark's temporary files. extra: Spark settings that
    win over SETTINGS.
    """
    local = master is None or master.startswith("local")
    _set_environment(local)
    conf = SparkConf(loadDefaults=False).setMaster(master or LOCAL_MASTER)
    for key, value in {**SETTINGS, **_folders(scratch), **(_loopback() if local else {}), **(extra or {})}.items():
        conf.set(key, value)
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    gateway = launch_gateway(conf, output)  # type: ignore[no-untyped-call]
    if gateway.proc is not None:
        logs.relay(gateway.proc.stdout)
    SparkContext(conf=conf, gateway=gateway)
    spark = SparkSession.builder.getOrCreate()
    register(spark)
    return spark


def _set_environment(local: bool) -> None:
    """What Spark's processes inherit: this Python, this package, and that the program listens to their log lines."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ[name] = sys.executable
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # glibc keeps memory for each thread otherwise, and Java has many
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # measured: as quick as mimalloc here, and smaller
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ[logs.VARIABLE] = "1"
    roots = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys([_package_root(), *roots])))


def _folders(scratch: Path) -> dict[str, str]:
    return {"spark.local.dir": str(scratch), "spark.sql.warehouse.dir": str(scratch / "warehouse")}


def _loopback() -> dict[str, str]:
    return {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}


def _package_root() -> str:
    return str(Path(__file__).resolve().parents[2])


def slots(spark: SparkSession) -> int:
    """Spark tasks that can run at once now."""
    return max(int(spark.sparkContext.defaultParallelism), 1)
