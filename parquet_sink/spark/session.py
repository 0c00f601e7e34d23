"""The Spark session that hosts the connectors, and the two data sources by name."""

import logging
import os
import shutil
import sys
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from py4j import protocol  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

from parquet_sink.errors import SetupError
from parquet_sink.process import logs
from parquet_sink.process.java_home import find_java
from parquet_sink.spark import cds_archive
from parquet_sink.spark.forks.host import ForkServer
from parquet_sink.spark.java import Java
from parquet_sink.spark.java_command import java_command
from parquet_sink.spark.leftovers import Leftovers
from parquet_sink.spark.program import register
from parquet_sink.spark.slots import local_master

log = logging.getLogger(__name__)

LOCAL_MASTER: Final = local_master(1)
STOP_S: Final = 10.0
"""How long Spark may take to stop; then its Java process is ended."""

LOG4J: Final = Path(__file__).resolve().with_name("log4j2.properties")

JAVA_OPTIONS: Final = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData -Xms64m -Xmn16m "
    "-XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=20 "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote "
    f"-Dlog4j2.configurationFile={LOG4J.as_uri()}"
)
"""Java only plans: measured with `make bench`, the quick compiler alone saves 0.8 µs CPU per record
and 80 MB against the optimising one, and a small young generation keeps the heap small: 40 MB less with one of 16 MB
than of 64, and no more CPU at a start. Spark's jars are not verified at each start: that takes 2 s of CPU where there
is no archive of their classes (`cds_archive`)."""

SETTINGS: Final = {
    "spark.app.name": "parquet-sink",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "512m",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    # Without these two Spark writes, compiles and loads Java for the few rows of a micro-batch.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",  # it may merge our ranges into fewer tasks
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.streaming.minBatchesToRetain": "2",
    # Without Hadoop's native library a link is looked at, and rights are set, by a program that Java starts.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",  # no file of checksums beside each
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.sql.streaming.stopTimeout": "10s",
    "spark.sql.ui.retainedExecutions": "1",
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.python.worker.reuse": "true",
    "spark.scheduler.mode": "FAIR",
    "spark.python.daemon.module": "parquet_sink.spark.daemon",
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|authorization",
}
"""Ranges must not be merged into fewer tasks; history is kept short, for months of batches; connectors take turns at
the slots. What is given by `--conf` comes on top."""

PYTHON: Final = "spark.pyspark.python"
"""Which Python executors start, where it is not ours."""

FORCED: Final = {"spark.speculation": "false"}
"""Whatever `--conf` says: a second attempt beside a living one would send the files of a range at the same time."""


class Session:
    """Spark with its Java process. folder: the run folder, which holds all their temporary files."""

    def __init__(self, master: str | None, folder: Path, extra: Mapping[str, str] | None = None) -> None:
        """master: Spark's, None for LOCAL_MASTER. extra: Spark settings that win over SETTINGS."""
        self.master, self._extra = master or LOCAL_MASTER, dict(extra or {})
        self._folder = folder / "spark"
        self._command = java_command(self.master, self._extra, os.environ)
        self.java = Java(self._folder, folder)
        self._forks = ForkServer(self._folder)
        self._spark: SparkSession | None = None
        self._leftovers: Leftovers | None = None

    def start(self) -> SparkSession:
        """The session, both data sources registered."""
        self.connect()
        return self.open()

    def connect(self) -> None:
        """Starts Java and Spark, which takes seconds. In the main thread PySpark takes SIGINT for itself here."""
        local = self.master.startswith("local")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Before the session: otherwise Spark takes another python3, and hangs until a timeout.
        _set_environment(local, sys.executable if local else _python_of_executors(self._extra))
        if local:  # executors elsewhere start Python by its path
            os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = self._forks.start()
        _leave_numpy_out()
        conf, gateway = self._launched(local)
        context = SparkContext(conf=conf, gateway=gateway)
        self._leftovers = Leftovers(gateway, self._forks.take_ports)
        log.debug("start: the Spark context is ready")
        vars(context._accumulatorServer)["handle_error"] = _reported_elsewhere  # noqa: SLF001 - prints a trace otherwise

    def _launched(self, local: bool) -> tuple[SparkConf, Any]:
        """Java, with the CDS archive of its classes if there is one; without when Java crashes over it."""
        found = cds_archive.usable(JAVA_OPTIONS, self._command.jars())
        if found is None and self._command.direct and not cds_archive.is_off():
            log.info("Java starts some seconds quicker with an archive of its classes: %s", cds_archive.COMMAND)
        try:
            return self._launched_with(found, local)
        except SetupError:
            if found is None or not self.java.crashed:
                raise
            cds_archive.discard(found)
            return self._launched_with(None, local)

    def _launched_with(self, classes: Path | None, local: bool) -> tuple[SparkConf, Any]:
        settings = {"spark.master": self.master, **self._settings(local, classes)}
        gateway = self.java.launch(self._command.words(find_java(), settings), self._command.environment())
        conf = SparkConf(loadDefaults=False)
        for key, value in settings.items():
            conf.set(key, value)
        return conf, gateway

    def open(self) -> SparkSession:
        """The session; it is known to the thread that asks, in which queries are to be started."""
        self._spark = SparkSession.builder.getOrCreate()
        register(self._spark)
        log.debug("start: the session is ready")
        return self._spark

    def _settings(self, local: bool, classes: Path | None = None) -> dict[str, str]:
        for key in FORCED.keys() & self._extra.keys():
            if self._extra[key] != FORCED[key]:
                log.warning("--conf %s=%s is not honoured: it is %s here", key, self._extra[key], FORCED[key])
        folders = {"spark.local.dir": str(self._folder), "spark.sql.warehouse.dir": str(self._folder / "warehouse")}
        # Elsewhere executors connect to the address that the driver binds, not to the one that it advertises: on
        # Kubernetes spark.driver.bindAddress must not be 0.0.0.0.
        loopback = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        settings = {**SETTINGS, **folders, **(loopback if local else {}), **self._extra, **FORCED}
        settings["spark.driver.extraJavaOptions"] += f' "-Djava.io.tmpdir={self._folder}"'
        if classes is not None and "SharedArchiveFile" not in settings["spark.driver.extraJavaOptions"]:
            settings["spark.driver.extraJavaOptions"] += f" {cds_archive.options(classes)}"
        return settings

    def tidy(self) -> bool:
        """Releases what starts of queries left in Java. Whether more of it is to come soon."""
        return self._leftovers is not None and self._leftovers.release()

    def silence_logging(self) -> None:
        """Spark says no more: tasks that are killed when their time is over fill pages, and say nothing new."""
        if self._spark is not None:
            with suppress(Exception):
                self._spark.sparkContext.setLogLevel("OFF")

    def close(self) -> None:
        """Ends Spark and Java, within a bounded time. Nothing that was running is waited for."""
        if self._spark is not None:
            stopping = threading.Thread(target=_stopped, args=(self._spark,), name="spark-stop", daemon=True)
            stopping.start()
            stopping.join(STOP_S)
        self.java.end()
        self._forks.end()


def _leave_numpy_out() -> None:
    """PySpark loads NumPy, Arrow and its own test tools to ask whether a value for Java is of NumPy: none is here."""
    of_numpy = (NumpyArrayConverter, NumpyScalarConverter)
    protocol.INPUT_CONVERTER[:] = [one for one in protocol.INPUT_CONVERTER if not isinstance(one, of_numpy)]


def _reported_elsewhere(request: object, address: object) -> None:
    """The end of Java is noticed by whoever talks to it."""


def _stopped(spark: SparkSession) -> None:
    with suppress(Exception), warnings.catch_warnings(action="ignore"):  # a Java process that is gone needs no stopping
        spark.stop()


def _python_of_executors(extra: Mapping[str, str]) -> str:
    """Ours, by its path, or the one of an environment that `spark.archives` takes along. Raises SetupError.

    Spark starts it on this machine, too, for what plans.
    """
    named = extra.get(PYTHON, sys.executable)
    if shutil.which(named) is None:
        raise SetupError(
            f"{PYTHON} is {named!r}, which is not on this machine, where Spark starts it as well; unpack the "
            f"environment in the folder that the program is started in ({Path.cwd()})"
        )
    return named


def _set_environment(local: bool, python: str) -> None:
    """What Spark's processes inherit: a Python, this package, and that the program listens to their log lines."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        os.environ[name] = python
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # glibc keeps memory for each thread otherwise, and Java has many
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # measured: as quick as mimalloc here, and smaller
    if local:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ[logs.VARIABLE] = "1"
    roots = (str(Path(__file__).resolve().parents[2]), *os.environ.get("PYTHONPATH", "").split(os.pathsep))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, dict.fromkeys(roots)))


def slots(spark: SparkSession) -> int:
    """Spark tasks that can run at once now."""
    return max(int(spark.sparkContext.defaultParallelism), 1)
