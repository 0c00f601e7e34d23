"""Keys of the dead-letter topic, and of the clients that write to it and make it."""

from typing import Final

from parquet_sink.config.key import Check, Key, Origin, Type, Value
from parquet_sink.kafka.dead_letter_names import NAME_KEY, REPLICATION_KEY
from parquet_sink.kafka.keys import FOR_PATTERNS, SERVERS, TOPICS

SET_ASIDE: Final = "Records that have no row"


def _topic(value: Value) -> str | None:
    wrong = TOPICS.test((str(value),))
    return wrong and wrong.replace(FOR_PATTERNS, "")


def _replicas(value: Value) -> str | None:
    return "0 replicas are no topic; give 1 or more, or -1 for the brokers' default." if value == 0 else None


def _fixed(name: str, type_: Type, default: Value, reason: str) -> Key:
    return Key(
        f"producer.override.{name}",
        SET_ASIDE,
        type_,
        f"Fixed: {reason}",
        default=default,
        no_effect=reason,
        origin=Origin.CONNECT,
    )


DEAD_LETTER_KEYS: Final = (
    Key(
        NAME_KEY,
        SET_ASIDE,
        Type.STRING,
        "The dead-letter topic: records that have no row go there as they are, with key, value, headers and timestamp. "
        "With `errors.tolerance=none` the record goes there, too, and then the connector stops, as in Kafka Connect. "
        "It may not be among the connector's own topics.",
        check=Check("a legal topic name", _topic),
        origin=Origin.CONNECT,
    ),
    Key(
        REPLICATION_KEY,
        SET_ASIDE,
        Type.INT,
        "Replicas of the dead-letter topic, if the connector makes it: it has one topic-partition then. `-1`: the "
        "brokers' default.",
        default=3,
        minimum=-1,
        maximum=32_767,
        check=Check("not 0", _replicas),
        needs=NAME_KEY,
        origin=Origin.CONNECT,
    ),
    Key(
        "errors.deadletterqueue.context.headers.enable",
        SET_ASIDE,
        Type.BOOLEAN,
        "Headers `__connect.errors.*`, after the record's own, say where a dead letter comes from and why it is there.",
        default=False,
        needs=NAME_KEY,
        origin=Origin.CONNECT,
    ),
    Key(
        "producer.override.bootstrap.servers",
        SET_ASIDE,
        Type.LIST,
        "Brokers of the dead-letter topic, if it is in another cluster. Set `admin.override.bootstrap.servers` alike.",
        default_text="the connector's",
        check=SERVERS,
        needs=NAME_KEY,
        origin=Origin.CONNECT,
    ),
    Key(
        "admin.override.bootstrap.servers",
        SET_ASIDE,
        Type.LIST,
        "Brokers of which the dead-letter topic is made.",
        default_text="the connector's",
        check=SERVERS,
        needs=NAME_KEY,
        origin=Origin.CONNECT,
    ),
    _fixed("acks", Type.STRING, "all", "a dead letter counts once all in-sync replicas have it."),
    _fixed("enable.idempotence", Type.BOOLEAN, True, "what the client sends again is not twice in the topic."),
    _fixed("transactional.id", Type.STRING, None, "dead letters are written without transactions."),
    Key(
        "producer.override.*",
        SET_ASIDE,
        Type.STRING,
        "Any other setting of Kafka's producer under its Java name, for dead letters. It wins over the worker's "
        "`producer.*`, and those over the consumer's brokers and security settings (`security.*`, `sasl.*`, `ssl.*`), "
        "which are taken otherwise.",
        default_text="Kafka's",
        needs=NAME_KEY,
        origin=Origin.CONNECT,
    ),
    Key(
        "admin.override.*",
        SET_ASIDE,
        Type.STRING,
        "Likewise for the client that looks whether the dead-letter topic is there, and makes it. All else is asked "
        "with the consumer's settings.",
        default_text="Kafka's",
        needs=NAME_KEY,
        origin=Origin.CONNECT,
    ),
)
