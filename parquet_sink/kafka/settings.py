"""Where records come from, and when they are taken. Sizes are bytes, durations milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from parquet_sink.config.declared import Bytes, Milliseconds, declared, key
from parquet_sink.config.key import Origin, ems
from parquet_sink.config.secret import Secret

COMMIT_SIZE: Final = ems("commit.size.bytes")
COMMIT_RECORDS: Final = ems("commit.records")
INTERVAL: Final = ems("commit.interval.ms")


@dataclass(frozen=True)
class KafkaSettings:
    """Where records come from. `client` has Java's names (`bootstrap.servers`, `security.protocol`, ...)."""

    topics: tuple[str, ...] = ()
    topics_regex: str | None = None
    group: str = ""
    client: Mapping[str, str | Secret] = field(default_factory=dict)
    isolation_level: Literal["read_committed", "read_uncommitted"] = "read_committed"
    offset_reset: Literal["earliest", "latest", "none"] = "earliest"
    lost_offsets: Literal["STOP", "CONTINUE"] = "STOP"
    tasks_max: int | None = None


class ProducerSettings(Protocol):
    """Of a producer. label: names it in logs, and to brokers. producer: settings of the client, with Java's names."""

    @property
    def label(self) -> str: ...
    @property
    def producer(self) -> Mapping[str, str | Secret]: ...


@dataclass(frozen=True)
class DeadLetterSettings:
    """Where records go that have no row. producer, admin: settings of the clients, with Java's names.

    replication_factor: of the topic, where it is made. context: whether headers tell why a record is there.
    """

    topic: str
    replication_factor: int = 3
    context: bool = False
    producer: Mapping[str, str | Secret] = field(default_factory=dict)
    admin: Mapping[str, str | Secret] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """As `ProducerSettings` has it."""
        return f"dead-letters-{self.topic}"


@declared(group="Flush: when a file is uploaded", origin=Origin.EMS)
class FlushSettings:
    """When a topic-partition is due, and when a file is full."""

    commit_size_bytes: Bytes = key(
        COMMIT_SIZE,
        "Upload when a topic-partition has records for a Parquet file of this size. The finished file exceeds it by at "
        "most one row group.",
        missing="give the size in bytes at which a file is uploaded, for example 10000000.",
        minimum=100_000,
    )
    commit_records: int = key(
        COMMIT_RECORDS,
        "Upload when a topic-partition has this many records.",
        missing="give the number of records at which a file is uploaded, for example 100000.",
        minimum=1,
    )
    commit_interval_ms: Milliseconds = key(
        INTERVAL,
        "Upload when the oldest record of a topic-partition that is not uploaded yet arrived this many milliseconds "
        "ago, on idle and busy topics alike. The EMS connector wants more than 1000; here 1000 itself is possible.",
        missing="give the age in milliseconds at which a file is uploaded, for example 30000.",
        minimum=1_000,
    )


class PlanningSettings(Protocol):
    """What the planner needs of a connector's settings.

    fingerprint: stands for all settings, and the version, that the files of a range depend on.
    """

    @property
    def name(self) -> str: ...
    @property
    def kafka(self) -> KafkaSettings: ...
    @property
    def flush(self) -> FlushSettings: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def away_timeout_ms(self) -> int:
        """How long brokers that do not answer are waited for; -1 without end."""
        ...

    def why_unusable(self, topic: str) -> str | None:
        """Why a topic cannot be read, with the cure; None when it can."""
        ...
