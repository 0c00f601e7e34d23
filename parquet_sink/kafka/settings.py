"""Where records come from, and when they are taken. Sizes are bytes, durations milliseconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from parquet_sink.config.secret import Secret


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


@dataclass(frozen=True)
class FlushSettings:
    """When a topic-partition is due, and when a file is full."""

    commit_size_bytes: int
    commit_records: int
    commit_interval_ms: int


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
