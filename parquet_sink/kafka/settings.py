"""Keys and settings of Kafka: where records come from, when they are due, where dead letters go.

Sizes are bytes, durations milliseconds. Settings of clients have Java's names (`bootstrap.servers`,
`security.protocol`, ...); `kafka.client_settings` puts the worker's and the connector's together.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Literal, Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from parquet_sink.config.checks import PRINTABLE, only
from parquet_sink.config.declared import Bytes, Milliseconds, declared, filled_by, key, keys_of
from parquet_sink.config.key import Check, Origin, Value, ems
from parquet_sink.config.machine import Machine
from parquet_sink.config.report import quoted
from parquet_sink.config.secret import Secret
from parquet_sink.config.values import Values

CONSUMER: Final = "consumer.override."
PRODUCER: Final = "producer.override."
ADMIN: Final = "admin.override."
NAME_KEY: Final = "errors.deadletterqueue.topic.name"
REPLICATION_KEY: Final = "errors.deadletterqueue.topic.replication.factor"
COMMIT_SIZE: Final = ems("commit.size.bytes")
COMMIT_RECORDS: Final = ems("commit.records")
INTERVAL: Final = ems("commit.interval.ms")
SCHEDULE: Final = ems("rotate.schedule.interval.ms")
TIMEZONE: Final = "timezone"
_MINUTE_MS: Final = 60_000
_DAY_MS: Final = 86_400_000
SET_ASIDE: Final = "Records that have no row"

_FOR_PATTERNS: Final = " (for a pattern use topics.regex)"
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER = re.compile(r"(?:[A-Z_]+://)?(?:\[[0-9A-Fa-f:.]+\]|[^\s:/,\[\]@]+):(\d{1,5})")
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_AS_BYTES = "Records are read as bytes; only the value is decoded, by `value.converter`."

Isolation = Literal["read_committed", "read_uncommitted"]
OffsetReset = Literal["earliest", "latest", "none"]


def _topics(value: Value) -> str | None:
    if value == ():
        return "It names no topic; name the topics to read."
    for topic in value if isinstance(value, tuple) else ():
        if topic in (".", "..") or not _TOPIC.fullmatch(topic):
            return (
                f"{quoted(topic)} is not a topic name; a topic has 1 to 249 letters, digits, dots, underscores and "
                f"hyphens{_FOR_PATTERNS}."
            )
    return None


INTERNAL: Final = frozenset(
    f"__{name}"
    for name in (
        "consumer_offsets",
        "transaction_state",
        "share_group_state",
        "cluster_metadata",
        "remote_log_metadata",
    )
)
"""Topics of Kafka itself."""


def wrong_topic(value: Value) -> str | None:
    """Why a text is not a name of a topic, with the cure; None when it is one."""
    wrong = _topics((str(value),))
    return wrong and wrong.replace(_FOR_PATTERNS, "")


def _regex(value: Value) -> str | None:
    try:
        re.compile(str(value))
    except (re.error, OverflowError, RecursionError) as error:
        return f"{quoted(str(value))} is not a valid regular expression ({error}); correct it."
    return None


def _servers(value: Value) -> str | None:
    for server in value if isinstance(value, tuple) else ():
        found = _SERVER.fullmatch(server)
        if found is None or not 1 <= int(found.group(1)) <= 65535:
            return f"{quoted(server)} is not a broker address; write host:port, several separated by commas."
    return None


def _deserializer(value: Value) -> str | None:
    return None if value == _BYTES else "Records are always read as bytes and decoded by value.converter; remove it."


SERVERS: Final = Check("host:port each", _servers)
TOPIC: Final = Check("a legal topic name", wrong_topic)
_DESERIALIZER: Final = Check("only `ByteArrayDeserializer`", _deserializer)


def _replicas(value: Value) -> str | None:
    return "0 replicas are no topic; give 1 or more, or -1 for the brokers' default." if value == 0 else None


def _group(values: Values, machine: Machine) -> str:
    return values.text(f"{CONSUMER}group.id") or f"connect-{values.text('name')}"


def fixed(name: str, default: object, reason: str, group: str = "") -> Any:
    """A key that fills no field: of a setting of the producer that is as it is, whatever the file says."""
    return key(f"{PRODUCER}{name}", f"Fixed: {reason}", default=default, no_effect=reason, group=group)


@dataclass(frozen=True)
class Ownership:
    """How a worker that shares connectors with others owns one. The worker sets it; there are no keys for it.

    fence: transactional id of the commits to the connector's group, see `kafka.group.fence`. lease: path of the
    worker's lease, see `process.lease`, on the machine of Spark's driver. state_topic: takes what the files of a range
    depend on, see `planner.learned_topic`.
    """

    fence: str | None = None
    lease: str | None = None
    state_topic: str | None = None


NOBODY_ELSE: Final = Ownership()
"""Of a worker that shares nothing."""


@declared(group="Reading from Kafka", origin=Origin.CONNECT)
class KafkaSettings:
    """Where records come from. client: settings of every client of the connector. owned: by this worker, and how."""

    topics: tuple[str, ...] = key(
        "topics",
        "Topics to read. Exactly one of `topics` and `topics.regex` must be set.",
        default=(),
        absent=None,
        check=Check("legal topic names", _topics),
    )
    topics_regex: str | None = key(
        "topics.regex",
        "Regular expression; every topic whose whole name matches is read, also one that is created later. The syntax "
        "is Python's, which differs from Java's in rare forms such as `\\p{Alpha}`.",
        default=None,
        check=Check("a regular expression", _regex),
    )
    group: str = key(
        f"{CONSUMER}group.id",
        "Another consumer group than the connector's own.",
        default="",
        absent=None,
        default_text="`connect-<name>`",
        check=PRINTABLE,
        computed=_group,
    )
    client: Mapping[str, str | Secret] = field(default_factory=dict)
    servers: ClassVar[tuple[str, ...]] = key(
        f"{CONSUMER}bootstrap.servers",
        "Brokers of this connector alone. It wins over the worker file, `--bootstrap-servers` and the environment.",
        default_text="the worker's",
        check=SERVERS,
    )
    isolation_level: Isolation = key(
        f"{CONSUMER}isolation.level",
        "Which records of transactions are read: only those of committed ones, or all.",
        default="read_committed",
        absent=None,
        default_text="read_committed",
    )
    offset_reset: OffsetReset = key(
        f"{CONSUMER}auto.offset.reset",
        "Where a topic-partition begins for which the group has no committed offset. `none`: the connector fails.",
        default="earliest",
        absent=None,
        default_text="earliest",
    )
    auto_commit: ClassVar[bool] = key(
        f"{CONSUMER}enable.auto.commit",
        "Offsets are committed after the target accepted a file, never by the consumer itself.",
        default=False,
        check=only(False, "committing offsets at a poll would lose records at a crash"),
    )
    key_deserializer: ClassVar[str] = key(f"{CONSUMER}key.deserializer", _AS_BYTES, default=_BYTES, check=_DESERIALIZER)
    value_deserializer: ClassVar[str] = key(
        f"{CONSUMER}value.deserializer", _AS_BYTES, default=_BYTES, check=_DESERIALIZER
    )
    others: ClassVar[str] = key(
        f"{CONSUMER}*",
        "Any other setting of Kafka's consumer under its Java name, for example `security.protocol`, "
        "`sasl.jaas.config`, `ssl.truststore.location`, `fetch.max.bytes`. A connector's "
        "`consumer.override.*` wins "
        "over the worker's `consumer.*`.",
        default_text="Kafka's",
    )
    lost_offsets: Literal["STOP", "CONTINUE"] = key(
        ems("lost.offsets.policy"),
        "What to do when Kafka deleted records (retention, or a recreated topic) before they were read. `STOP`: the "
        "connector fails and names the lost offsets. `CONTINUE`: it names them in the log and goes on with the first "
        "record that Kafka still holds.",
        default="STOP",
        origin=Origin.OWN,
    )
    tasks_max: int | None = filled_by("tasks.max", default=None)
    owned: Ownership = NOBODY_ELSE
    internal: tuple[str, ...] = ()
    """Topics of the worker, which no pattern reads: see `worker_config.internal_topics`."""

    def reads(self, topic: str) -> bool:
        """Return True if the connector reads a topic of this name, if there is one.

        A pattern leaves out the worker's internal topics, and all that begin with two underscores, as Kafka's do.
        """
        if not self.topics_regex:
            return topic in self.topics
        if topic.startswith("__") or topic in self.internal:
            return False
        return re.fullmatch(self.topics_regex, topic) is not None

    @property
    def whose(self) -> str:
        """Begins the lines of what clients with these settings log."""
        return f"group {self.group}"


TOPIC_KEYS: Final = tuple(one for one in keys_of(KafkaSettings) if not one.name.startswith(CONSUMER))
"""What a sink reads, and how."""
OVERRIDE_KEYS: Final = tuple(one for one in keys_of(KafkaSettings) if one.name.startswith(CONSUMER))
"""Settings of its consumer."""


class ProducerSettings(Protocol):
    """Of a producer. label: names it to brokers. whose: in log lines. producer: the client's, with Java's names."""

    @property
    def label(self) -> str: ...
    @property
    def whose(self) -> str: ...
    @property
    def producer(self) -> Mapping[str, str | Secret]: ...


@declared(group=SET_ASIDE, origin=Origin.CONNECT)
class DeadLetterSettings:
    """Where records go that have no row. producer, admin: settings of the clients, with Java's names."""

    topic: str = key(
        NAME_KEY,
        "The dead-letter topic: records that have no row go there as they are, with key, value, headers and timestamp. "
        "With `errors.tolerance=none` the record goes there, too, and then the connector stops, as in Kafka Connect. "
        "It may not be among the connector's own topics.",
        check=TOPIC,
    )
    replication_factor: int = key(
        REPLICATION_KEY,
        "Replicas of the dead-letter topic, if the connector makes it: it has one topic-partition then. `-1`: the "
        "brokers' default.",
        default=3,
        minimum=-1,
        maximum=32_767,
        check=Check("not 0", _replicas),
        needs=NAME_KEY,
    )
    context: bool = key(
        "errors.deadletterqueue.context.headers.enable",
        "Headers `__connect.errors.*`, after the record's own, say where a dead letter comes from and why it is there.",
        default=False,
        needs=NAME_KEY,
    )
    servers: ClassVar[tuple[str, ...]] = key(
        f"{PRODUCER}bootstrap.servers",
        "Brokers of the dead-letter topic, and of that for notices, if they are in another cluster. Set "
        "`admin.override.bootstrap.servers` alike.",
        default_text="the connector's",
        check=SERVERS,
    )
    admin_servers: ClassVar[tuple[str, ...]] = key(
        f"{ADMIN}bootstrap.servers",
        "Brokers of which the dead-letter topic is made.",
        default_text="the connector's",
        check=SERVERS,
        needs=NAME_KEY,
    )
    acks: ClassVar[str] = fixed("acks", "all", "a dead letter counts once all in-sync replicas have it.")
    idempotence: ClassVar[bool] = fixed(
        "enable.idempotence", True, "what the client sends again is not twice in the topic."
    )
    transactions: ClassVar[str | None] = fixed(
        "transactional.id", None, "dead letters are written without transactions."
    )
    producer_others: ClassVar[str] = key(
        f"{PRODUCER}*",
        "Any other setting of Kafka's producer under its Java name, for dead letters and notices. It wins over the "
        "worker's `producer.*`, and those over the consumer's brokers and security settings (`security.*`, `sasl.*`, "
        "`ssl.*`), which are taken otherwise.",
        default_text="Kafka's",
    )
    admin_others: ClassVar[str] = key(
        f"{ADMIN}*",
        "Likewise for the client that looks whether the dead-letter topic is there, and makes it. All else is asked "
        "with the consumer's settings.",
        default_text="Kafka's",
        needs=NAME_KEY,
    )
    producer: Mapping[str, str | Secret] = field(default_factory=dict)
    admin: Mapping[str, str | Secret] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """As `ProducerSettings` has it."""
        return f"dead-letters-{self.topic}"

    @property
    def whose(self) -> str:
        """Likewise."""
        return f"producer of dead letters to {self.topic}"


def _schedule(value: Value) -> str | None:
    if value == -1 or (isinstance(value, int) and _MINUTE_MS <= value <= _DAY_MS):
        return None
    return f"{value} ms is neither -1 nor a minute to a day; write one such as 15m, 1h or 24h, or -1 for none."


def _time_zone(value: Value) -> str | None:
    try:
        ZoneInfo(str(value))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return (
            f"{quoted(str(value))} is not a time zone; write its name in the tz database, such as Europe/Berlin or UTC."
        )
    return None


@declared(group="Flush: when a file is uploaded", origin=Origin.EMS)
class FlushSettings:
    """When a topic-partition is due, and when a file is full."""

    commit_size_bytes: Bytes = key(
        COMMIT_SIZE,
        "Upload when a topic-partition has records for a Parquet file of this size. The finished file exceeds it by at "
        "most one row group.",
        missing="give the size in bytes at which a file is uploaded, for example 10MB.",
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
        "ago, on idle and busy topics alike; others that are half as old go along. The EMS connector wants more than "
        "1000; here 1000 itself is possible.",
        missing="give the age in milliseconds at which a file is uploaded, for example 30s.",
        minimum=1_000,
    )
    schedule_interval_ms: Milliseconds = key(
        SCHEDULE,
        "End files by the clock, too: at midnight of `timezone`, and each so long after it (`1h`: at full hours). What "
        "a topic-partition has from before such a time is uploaded then, and what comes later goes into the next file "
        "([upload.md](upload.md#by-the-clock)). The words are those of Confluent's sinks.",
        default=-1,
        default_text="-1: not by the clock",
        check=Check("`-1`, or `1m` to `24h`", _schedule),
        origin=Origin.OWN,
    )
    timezone: str = key(
        TIMEZONE,
        "Time zone of that clock, by its name in the tz database: `Europe/Berlin`.",
        default="UTC",
        check=Check("a time zone such as `Europe/Berlin`", _time_zone),
        needs=SCHEDULE,
        origin=Origin.OWN,
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
