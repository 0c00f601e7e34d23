"""Our worker, started as a user starts it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from integration.commands import Command
from integration.connect.play import until_ready
from integration.connect.steps import Side
from parquet_sink import __version__
from parquet_sink.addons.devkit.broker import Broker
from parquet_sink.addons.devkit.jars import read_lock
from parquet_sink.addons.devkit.ports import free_port

START_S: Final = 120.0
LOGGER: Final = "parquet_sink.worker.rest.app"
CLASS: Final = "com.celonis.kafka.connect.ems.sink.EmsSinkConnector"
PREFIX: Final = "connect.ems."


def properties(broker: Broker, port: int, folder: Path) -> dict[str, str]:
    """The worker's file."""
    return {
        "bootstrap.servers": broker.bootstrap_servers,
        "listeners": f"http://127.0.0.1:{port}",
        "config.storage.folder": str(folder / "store"),
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "consumer.auto.offset.reset": "earliest",
    }


@contextmanager
def our_worker(broker: Broker, folder: Path) -> Iterator[Side]:
    """A worker that runs. Fails with the end of its log when it does not come up."""
    port = free_port()
    for name in ("out", "tmp"):
        (folder / name).mkdir()
    path = folder / "worker.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in properties(broker, port, folder).items()))
    worker = Command(folder, ["worker", str(path)], {})
    try:
        url = f"http://127.0.0.1:{port}"
        until_ready(url, lambda: worker.process.poll() is None, lambda: worker.said, START_S)
        yield side(port, folder)
        worker.send()
        assert worker.ended(60) == 0, worker.said[-3_000:]
    finally:
        worker.close()


def side(port: int, folder: Path) -> Side:
    """How it is asked, and what stands for what is its own."""
    own = {
        "endpoint": f"directory:{folder}/out",
        "target.table": "JUDGED",
        "commit.size.bytes": "1000000",
        "commit.records": "1000",
        "commit.interval.ms": "1000",
        "tmp.dir": f"{folder}/tmp",
    }
    texts = {
        f"http://127.0.0.1:{port}": "<url>",
        f"127.0.0.1:{port}": "<worker>",
        CLASS: "<class>",
        CLASS.rpartition(".")[2]: "<Class>",
        str(folder): "<folder>",
        LOGGER: "<logger>",
        read_lock().kafka_version: "<version>",
        __version__: "<version>",
    }
    keys = {f"{PREFIX}{name}": value for name, value in own.items()}
    return Side("parquet-sink", f"http://127.0.0.1:{port}", CLASS, LOGGER, keys, PREFIX, texts)
