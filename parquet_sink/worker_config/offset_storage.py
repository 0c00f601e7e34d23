"""Where sources keep their positions, by keys of the worker file: in a file, or in a compacted topic."""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Final

from parquet_sink.config.declared import LocalPath, declared, key, made
from parquet_sink.config.key import Check, Origin, Value
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import Report
from parquet_sink.config.values import Values
from parquet_sink.kafka.client_settings import ClientSetting
from parquet_sink.kafka.settings import TOPIC as LEGAL_TOPIC

OFFSETS: Final = "offset.storage."
FILE: Final = f"{OFFSETS}file.filename"
TOPIC: Final = f"{OFFSETS}topic"
POLICY: Final = "cleanup.policy"


def _not_none(value: Value) -> str | None:
    return "0 is not possible; give 1 or more, or -1 for the brokers' default." if value == 0 else None


NOT_ZERO: Final = Check("not 0", _not_none)


@declared(group="Positions of sources", origin=Origin.CONNECT)
class OffsetStorageSettings:
    """Where positions are kept. partitions, replication_factor: of the topic, where it is made; -1: as brokers do."""

    file: LocalPath | None = key(
        FILE,
        "The file in which sources keep how far they are in Kafka; made when it is not there, in a folder that is. All "
        "sources of a process share it, and several processes may. Its form is JSON and our own; sinks do not need it. "
        "See [file-source.md](../how-to/file-source.md#positions).",
        default=None,
    )
    topic: str | None = key(
        TOPIC,
        "A topic for that in place of a file, with records as Kafka Connect's distributed mode has them: made, "
        "compacted, when it is not there; refused when it is not compacted. It is reached with the settings "
        "`consumer.*` for brokers and security, in distributed mode with those of the worker's own clients.",
        default=None,
        check=LEGAL_TOPIC,
    )
    partitions: int = key(
        "offset.storage.partitions",
        "Topic-partitions of that topic, if it is made here. `-1`: the brokers' default.",
        default=25,
        minimum=-1,
        maximum=2_147_483_647,
        check=NOT_ZERO,
        needs=TOPIC,
    )
    replication_factor: int = key(
        "offset.storage.replication.factor",
        "Replicas of that topic, if it is made here. `-1`: the brokers' default.",
        default=3,
        minimum=-1,
        maximum=32_767,
        check=NOT_ZERO,
        needs=TOPIC,
    )
    others: ClassVar[str] = key(
        f"{OFFSETS}*", "Settings that the topic gets if it is made here, `min.insync.replicas` say.", needs=TOPIC
    )
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    """Likewise, by Kafka's names."""
    client: Mapping[str, ClientSetting] = field(default_factory=dict)
    """Settings of its clients, with Java's names."""

    @property
    def what(self) -> str:
        """In words."""
        return f"topic {self.topic}" if self.topic else f"file {self.file}"


def topic_settings(prefix: str, values: Values, report: Report) -> dict[str, str]:
    """What a compacted topic is made with, of the keys that begin so and are no keys of ours."""
    names = [name for name in values.texts if name.startswith(prefix) and not values.knows(name)]
    found = {name.removeprefix(prefix): values.texts[name].strip() for name in names}
    if found.get(POLICY, "compact") != "compact":
        report.problem(f"{prefix}{POLICY}", "Such a topic is compacted; remove the key.")
    return {name: text for name, text in found.items() if name and text}


def offset_storage(
    values: Values, machine: Machine, client: Mapping[str, ClientSetting], report: Report
) -> OffsetStorageSettings | None:
    """None where the worker file does not say. Tells when it says both. client: what the topic is reached with."""
    settings = topic_settings(OFFSETS, values, report)
    found = made(OffsetStorageSettings, values, machine, topic_settings=settings, client=client)
    if found.file is not None and found.topic is not None:
        report.problem(TOPIC, f"{FILE} is set, too, and positions are kept in one place; remove one of the two.")
    return None if found.file is None and found.topic is None else found
