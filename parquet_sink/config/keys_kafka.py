"""Keys of the connector itself and of reading from Kafka."""

from parquet_sink.config import checks
from parquet_sink.config.key import Check, Group, Key, Origin, Type, Value, ems

OWN_CLASS = "parquet_sink.EmsSink"
REFERENCE_CLASS = "com.celonis.kafka.connect.ems.sink.EmsSinkConnector"
_CLASSES = (REFERENCE_CLASS, OWN_CLASS, "EmsSinkConnector", "EmsSink")
_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"


def _connector_class(value: Value) -> str | None:
    if value in _CLASSES:
        return None
    return f"This program runs one connector; write {OWN_CLASS} or {REFERENCE_CLASS}, or remove the key."


def _deserializer(value: Value) -> str | None:
    return None if value == _BYTES else "Records are always read as bytes and decoded by value.converter; remove it."


CONNECTOR_KEYS = (
    Key(
        "name",
        Group.CONNECTOR,
        Type.STRING,
        "Name of the connector. It names the consumer group (`connect-<name>`) and the folder of temporary files, so "
        "two connectors may not share it. In the JSON form it may stand beside `config`.",
        default="MissingSinkName",
        check=checks.NAME,
        origin=Origin.CONNECT,
    ),
    Key(
        "connector.class",
        Group.CONNECTOR,
        Type.STRING,
        "Which connector the file is for. Files written for the EMS connector run unchanged.",
        default=OWN_CLASS,
        check=Check(f"`{REFERENCE_CLASS}`, `{OWN_CLASS}` or their short names", _connector_class),
        origin=Origin.CONNECT,
    ),
    Key(
        "tasks.max",
        Group.CONNECTOR,
        Type.INT,
        "The most Spark tasks that one micro-batch of this connector may have at the same time. Kafka Connect's own "
        "default is 1; here an absent key leaves the number to Spark.",
        default_text="as many as Spark has slots",
        minimum=1,
        origin=Origin.CONNECT,
    ),
    Key(
        "topics",
        Group.READING,
        Type.LIST,
        "Topics to read. Exactly one of `topics` and `topics.regex` must be set.",
        check=checks.TOPICS,
        origin=Origin.CONNECT,
    ),
    Key(
        "topics.regex",
        Group.READING,
        Type.STRING,
        "Regular expression; every topic whose whole name matches is read, also one that is created later. The syntax "
        "is Python's, which differs from Java's in rare forms such as `\\p{Alpha}`.",
        check=checks.REGEX,
        origin=Origin.CONNECT,
    ),
    Key(
        ems("lost.offsets.policy"),
        Group.READING,
        Type.STRING,
        "What to do when Kafka deleted records (retention, or a topic made anew) before they were read. `STOP`: the "
        "connector fails and names the lost offsets. `CONTINUE`: it names them in the log and goes on with the first "
        "record that Kafka still holds.",
        default="STOP",
        choices=("STOP", "CONTINUE"),
        origin=Origin.OWN,
    ),
)


def consumer_keys(prefix: str, group: Group) -> tuple[Key, ...]:
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
            check=checks.must_be(False, "Committing offsets at a poll would lose records at a crash"),
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


def _deserializer_key(prefix: str, group: Group, which: str) -> Key:
    return Key(
        f"{prefix}{which}.deserializer",
        group,
        Type.STRING,
        "Records are read as bytes; only the value is decoded, by `value.converter`.",
        default=_BYTES,
        check=Check("only `ByteArrayDeserializer`", _deserializer),
        origin=Origin.CONNECT,
    )


OVERRIDE_KEYS = (
    Key(
        "consumer.override.group.id",
        Group.READING,
        Type.STRING,
        "Another consumer group than the connector's own.",
        default_text="`connect-<name>`",
        check=checks.PRINTABLE,
        origin=Origin.CONNECT,
    ),
    Key(
        "consumer.override.bootstrap.servers",
        Group.READING,
        Type.LIST,
        "Brokers of this connector alone. It wins over the worker file, `--bootstrap-servers` and the environment.",
        default_text="the worker's",
        check=checks.SERVERS,
        origin=Origin.CONNECT,
    ),
    *consumer_keys("consumer.override.", Group.READING),
)
