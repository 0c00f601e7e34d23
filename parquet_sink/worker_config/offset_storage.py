"""Where sources keep their positions, by keys of the worker file: in a file, or in a compacted topic."""

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from parquet_sink.config.declared import LocalPath, declared, key, made
from parquet_sink.config.key import Check, Origin, Value
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.kafka import client_settings
from parquet_sink.kafka.client_settings import ClientSetting
from parquet_sink.kafka.settings import TOPIC as LEGAL_TOPIC

FILE: Final = "offset.storage.file.filename"
TOPIC: Final = "offset.storage.topic"


def _not_none(value: Value) -> str | None:
    return "0 is not possible; give 1 or more, or -1 for the brokers' default." if value == 0 else None


_SOME: Final = Check("not 0", _not_none)


@declared(group="Positions of sources", origin=Origin.CONNECT)
class OffsetStorageSettings:
    """Where positions are kept. partitions, replication_factor: of the topic, where it is made; -1: as brokers do."""

    file: LocalPath | None = key(
        FILE,
        "The file in which sources keep how far they are in Kafka; made when it is not there, in a folder that is. All "
        "sources of a process share it, and several processes may. Its form is JSON and our own; sinks do not need it. "
        "See [file-source.md](file-source.md#positions).",
        default=None,
    )
    topic: str | None = key(
        TOPIC,
        "A topic for that in place of a file, with records as Kafka Connect's distributed mode has them: made, "
        "compacted, when it is not there; refused when it is not compacted. It is reached with the settings "
        "`consumer.*` for brokers and security.",
        default=None,
        check=LEGAL_TOPIC,
    )
    partitions: int = key(
        "offset.storage.partitions",
        "Topic-partitions of that topic, if it is made here. `-1`: the brokers' default.",
        default=25,
        minimum=-1,
        maximum=2_147_483_647,
        check=_SOME,
        needs=TOPIC,
    )
    replication_factor: int = key(
        "offset.storage.replication.factor",
        "Replicas of that topic, if it is made here. `-1`: the brokers' default.",
        default=3,
        minimum=-1,
        maximum=32_767,
        check=_SOME,
        needs=TOPIC,
    )
    client: Mapping[str, ClientSetting] = field(default_factory=dict)
    """Settings of its clients, with Java's names."""

    @property
    def what(self) -> str:
        """In words."""
        return f"topic {self.topic}" if self.topic else f"file {self.file}"


def offset_storage(
    values: Values, machine: Machine, consumer: Mapping[str, ClientSetting], servers: str, report: Report
) -> OffsetStorageSettings | None:
    """None where the worker file does not say. Tells when it says both. consumer, servers: what its clients share."""
    found = made(
        OffsetStorageSettings,
        values,
        machine,
        client={**client_settings.shared_with_consumer(consumer), "bootstrap.servers": servers},
    )
    if found.file is not None and found.topic is not None:
        report.problem(TOPIC, f"{FILE} is set, too, and positions are kept in one place; remove one of the two.")
    return None if found.file is None and found.topic is None else found
