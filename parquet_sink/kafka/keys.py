"""Keys of reading from Kafka, with the checks of their values."""

import re
from typing import Final

from parquet_sink.config.checks import PRINTABLE, only
from parquet_sink.config.key import Check, Key, Origin, Type, Value, ems
from parquet_sink.config.report import quoted

READING: Final = "Reading from Kafka"
FOR_PATTERNS: Final = " (for a pattern use topics.regex)"

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER = re.compile(r"(?:[A-Z_]+://)?(?:\[[0-9A-Fa-f:.]+\]|[^\s:/,\[\]@]+):(\d{1,5})")
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


def _topics(value: Value) -> str | None:
    if value == ():
        return "It names no topic; name the topics to read."
    for topic in value if isinstance(value, tuple) else ():
        if topic in (".", "..") or not _TOPIC.fullmatch(topic):
            return (
                f"{quoted(topic)} is no legal topic name; a topic has 1 to 249 letters, digits, dots, underscores and "
                f"hyphens{FOR_PATTERNS}."
            )
    return None


def _regex(value: Value) -> str | None:
    try:
        re.compile(str(value))
    except (re.error, OverflowError, RecursionError) as error:
        return f"{quoted(str(value))} is no valid regular expression ({error}); correct it."
    return None


def _servers(value: Value) -> str | None:
    for server in value if isinstance(value, tuple) else ():
        found = _SERVER.fullmatch(server)
        if found is None or not 1 <= int(found.group(1)) <= 65535:
            return f"{quoted(server)} is no broker address; write host:port, several separated by commas."
    return None


TOPICS: Final = Check("legal topic names", _topics)
REGEX: Final = Check("a regular expression", _regex)
SERVERS: Final = Check("host:port each", _servers)


def _deserializer(value: Value) -> str | None:
    return None if value == _BYTES else "Records are always read as bytes and decoded by value.converter; remove it."


TOPIC_KEYS: Final = (
    Key(
        "topics",
        READING,
        Type.LIST,
        "Topics to read. Exactly one of `topics` and `topics.regex` must be set.",
        check=TOPICS,
        origin=Origin.CONNECT,
    ),
    Key(
        "topics.regex",
        READING,
        Type.STRING,
        "Regular expression; every topic whose whole name matches is read, also one that is created later. The syntax "
        "is Python's, which differs from Java's in rare forms such as `\\p{Alpha}`.",
        check=REGEX,
        origin=Origin.CONNECT,
    ),
    Key(
        ems("lost.offsets.policy"),
        READING,
        Type.STRING,
        "What to do when Kafka deleted records (retention, or a topic made anew) before they were read. `STOP`: the "
        "connector fails and names the lost offsets. `CONTINUE`: it names them in the log and goes on with the first "
        "record that Kafka still holds.",
        default="STOP",
        choices=("STOP", "CONTINUE"),
        origin=Origin.OWN,
    ),
)
"""What a sink reads, and how."""


def consumer_keys(prefix: str, group: str) -> tuple[Key, ...]:
    """The consumer's settings: prefix `consumer.override.` in a connector file, `consumer.` in a worker file."""
    connect = Origin.CONNECT
    return (
        Key(
            f"{prefix}isolation.level",
            group,
            Type.STRING,
            "Which records of transactions are read: only those of committed ones, or all.",
            default_text="read_committed",
            choices=("read_committed", "read_uncommitted"),
            origin=connect,
        ),
        Key(
            f"{prefix}auto.offset.reset",
            group,
            Type.STRING,
            "Where a topic-partition begins for which the group has no committed offset. `none`: the connector fails.",
            default_text="earliest",
            choices=("earliest", "latest", "none"),
            origin=connect,
        ),
        Key(
            f"{prefix}enable.auto.commit",
            group,
            Type.BOOLEAN,
            "Offsets are committed after the target accepted a file, never by the consumer itself.",
            default=False,
            check=only(False, "committing offsets at a poll would lose records at a crash"),
            origin=connect,
        ),
        *(_deserializer_key(prefix, group, which) for which in ("key", "value")),
        Key(
            f"{prefix}*",
            group,
            Type.STRING,
            "Any other setting of Kafka's consumer under its Java name, for example `security.protocol`, "
            "`sasl.jaas.config`, `ssl.truststore.location`, `fetch.max.bytes`. A connector's "
            "`consumer.override.*` wins "
            "over the worker's `consumer.*`.",
            default_text="Kafka's",
            origin=connect,
        ),
    )


def _deserializer_key(prefix: str, group: str, which: str) -> Key:
    return Key(
        f"{prefix}{which}.deserializer",
        group,
        Type.STRING,
        "Records are read as bytes; only the value is decoded, by `value.converter`.",
        default=_BYTES,
        check=Check("only `ByteArrayDeserializer`", _deserializer),
        origin=Origin.CONNECT,
    )


OVERRIDE_KEYS: Final = (
    Key(
        "consumer.override.group.id",
        READING,
        Type.STRING,
        "Another consumer group than the connector's own.",
        default_text="`connect-<name>`",
        check=PRINTABLE,
        origin=Origin.CONNECT,
    ),
    Key(
        "consumer.override.bootstrap.servers",
        READING,
        Type.LIST,
        "Brokers of this connector alone. It wins over the worker file, `--bootstrap-servers` and the environment.",
        default_text="the worker's",
        check=SERVERS,
        origin=Origin.CONNECT,
    ),
    *consumer_keys("consumer.override.", READING),
)
"""Settings of its consumer."""
