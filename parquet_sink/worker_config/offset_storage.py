"""Keys of the worker file about positions of sources: in a file, or in a compacted topic."""

from typing import Final

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.settings import TOPIC as LEGAL_TOPIC
from parquet_sink.worker_config.worker import OffsetStorageSettings, Worker

GROUP: Final = "Positions of sources"
FILE: Final = "offset.storage.file.filename"
TOPIC: Final = "offset.storage.topic"
PARTITIONS: Final = "offset.storage.partitions"
REPLICATION: Final = "offset.storage.replication.factor"


def _not_none(value: Value) -> str | None:
    return "0 makes no topic; give 1 or more, or -1 for the brokers' default." if value == 0 else None


def _count(name: str, doc: str, default: int, most: int) -> Key:
    return Key(
        name,
        GROUP,
        Type.INT,
        f"{doc}, if it is made here. `-1`: the brokers' default.",
        default=default,
        minimum=-1,
        maximum=most,
        check=Check("not 0", _not_none),
        needs=TOPIC,
        origin=Origin.CONNECT,
    )


OFFSET_STORAGE_KEYS: Final = (
    Key(
        FILE,
        GROUP,
        Type.STRING,
        "The file in which sources keep how far they are in Kafka; made when it is not there, in a folder that is. All "
        "sources of a process share it, and several processes may. Its form is JSON and our own; sinks do not need it. "
        "See [file-source.md](file-source.md#positions).",
        origin=Origin.CONNECT,
    ),
    Key(
        TOPIC,
        GROUP,
        Type.STRING,
        "A topic for that in place of a file, with records as Kafka Connect's distributed mode has them: made, "
        "compacted, when it is not there; refused when it is not compacted. It is reached with the settings "
        "`consumer.*` for brokers and security.",
        check=LEGAL_TOPIC,
        origin=Origin.CONNECT,
    ),
    _count(PARTITIONS, "Topic-partitions of that topic", 25, 2_147_483_647),
    _count(REPLICATION, "Replicas of that topic", 3, 32_767),
)


def offset_storage(values: Values, worker: Worker, report: Report) -> OffsetStorageSettings | None:
    """Where sources keep their positions; None where the worker file does not say. Tells when it says both."""
    file, topic = values.text(FILE), values.text(TOPIC)
    if file is not None and topic is not None:
        report.problem(TOPIC, f"{FILE} is set, too, and positions are kept in one place; remove one of the two.")
    if file is None and topic is None:
        return None
    client = client_settings.shared_with_consumer(worker.consumer)
    partitions, factor = values.number(PARTITIONS), values.number(REPLICATION)
    return OffsetStorageSettings(
        file=None if file is None else worker.machine.absolute(file),
        topic=topic,
        partitions=25 if partitions is None else partitions,
        replication_factor=3 if factor is None else factor,
        client={**client, "bootstrap.servers": worker.bootstrap_servers},
    )
