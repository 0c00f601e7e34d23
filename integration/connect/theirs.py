"""Kafka Connect itself: a distributed worker in a process of its own, with the file sink that comes with it."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from integration.connect.jars import class_path
from integration.connect.play import until_ready
from integration.connect.steps import Side
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.jars import read_lock
from parquet_sink.addons.devkit.ports import free_port
from parquet_sink.process.java_home import find_java

START_S: Final = 90.0
LOGGER: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
CLASS: Final = "org.apache.kafka.connect.file.FileStreamSinkConnector"
_JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Duser.language=en")
LOG: Final = "connect.log"
_MAIN: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
_LOGGING: Final = """\
rootLogger.level=INFO
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
"""


def properties(broker: Broker, port: int) -> dict[str, str]:
    """The worker's file: what a user writes, and intervals short enough for a test."""
    topics = {
        f"{what}.storage.{key}": value
        for what in ("config", "offset", "status")
        for key, value in {"topic": f"judge-{what}", "replication.factor": "1"}.items()
    }
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "group.id": "judge",
        **topics,
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
        "listeners": f"http://127.0.0.1:{port}",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "offset.flush.interval.ms": "1000",
        "plugin.discovery": "service_load",
        "scheduled.rebalance.max.delay.ms": "0",
        "consumer.auto.offset.reset": "earliest",
    }


@contextmanager
def kafka_connect(broker: Broker, folder: Path) -> Iterator[Side]:
    """A worker that runs. Fails with the end of its log when it does not come up."""
    port = free_port()
    path = folder / "connect.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties(broker, port).items()))
    with started(path, folder) as process:
        log = folder / LOG
        url = f"http://127.0.0.1:{port}"
        until_ready(url, lambda: process.poll() is None, lambda: log.read_text(errors="replace"), START_S)
        yield side(port, folder)


@contextmanager
def started(
    path: Path, folder: Path, classes: Path | None = None, java: Sequence[str] = _JAVA
) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker of this worker file, which may end by itself; it logs to LOG in the folder. classes: of further ones.

    java: options of Java.
    """
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING)
    jars = class_path() if classes is None else f"{classes}:{class_path()}"
    command = [find_java(), *java, f"-Dlog4j2.configurationFile={logging.as_uri()}", "-cp", jars, _MAIN, str(path)]
    with (
        (folder / LOG).open("wb") as said,
        subprocess.Popen(command, stdout=said, stderr=said, cwd=folder) as process,
    ):
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def side(port: int, folder: Path) -> Side:
    """How it is asked, and what stands for what is its own."""
    sink = folder / "out.txt"
    version = read_lock().kafka_version
    texts = {
        f"http://127.0.0.1:{port}": "<url>",
        f"127.0.0.1:{port}": "<worker>",
        CLASS: "<class>",
        CLASS.rpartition(".")[2]: "<Class>",
        str(folder): "<folder>",
        LOGGER: "<logger>",
        version: "<version>",
    }
    return Side("Kafka Connect", f"http://127.0.0.1:{port}", CLASS, LOGGER, {"file": str(sink)}, "file", texts)
