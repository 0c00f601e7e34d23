"""Connector files for tests: one that is right, and what it comes to when keys are changed."""

from collections.abc import Mapping

from parquet_sink.config.machine import Machine
from parquet_sink.connectors.loading import Loaded, load
from parquet_sink.convert.json.settings import JsonConverter
from parquet_sink.settings.sink import SinkSettings
from parquet_sink.worker_config.worker import Worker

E = "connect.ems."


CANARY = "canary-51c2-long-enough"


MACHINE = Machine(
    tmp_dir="/var/tmp",
    memory_dir="/dev/shm/parquet-sink",
    working_dir="/home/u",
    is_file=lambda path: path in ("/etc/ca.pem", "/home/u/ca.pem", "/a/file"),
    environ={"SECRET": CANARY, "URL": f"http://host/{CANARY}"},
)


WORKER = Worker(machine=MACHINE)


GOOD = {
    "name": "orders",
    "topics": "orders",
    "value.converter": JsonConverter.class_name,
    "value.converter.schemas.enable": "false",
    f"{E}endpoint": "https://team.realm.celonis.cloud/continuous-batch-processing/api/v1/p/items",
    f"{E}authorization.key": "AppKey k",
    f"{E}target.table": "ORDERS",
    f"{E}commit.size.bytes": "10000000",
    f"{E}commit.records": "1000",
    f"{E}commit.interval.ms": "30000",
}


def load_file(changes: Mapping[str, str | None] | None = None, worker: Worker = WORKER) -> Loaded:
    """The file with keys set otherwise, or left away (None)."""
    properties = {**GOOD, **(changes or {})}
    return load({key: text for key, text in properties.items() if text is not None}, worker, source="f.properties")


def settings_of(changes: Mapping[str, str | None] | None = None, worker: Worker = WORKER) -> SinkSettings:
    """The settings of such a file, which must be right."""
    return load_file(changes, worker).require()
