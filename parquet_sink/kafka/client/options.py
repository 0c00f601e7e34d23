"""Client options: Kafka's Java names, which operators write, to librdkafka's, which we run on."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from parquet_sink.config.secret import Secret
from parquet_sink.errors import InvalidConfiguration
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.settings import KafkaSettings

END_OF_PARTITION: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - the client's public names for its own events
OUT_OF_RANGE: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})  # noqa: SLF001

RENAMED: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm",
    "ssl.key.password": "ssl.key.password",
    "connections.max.idle.ms": "connections.max.idle.ms",
    "sasl.login.callback.handler.class": "",
}
"""Where the two differ by name only; "" means it has no counterpart and no effect."""

NO_EFFECT: Final = frozenset(
    {
        "max.poll.records",
        "max.poll.interval.ms",
        "partition.assignment.strategy",
        "key.deserializer",
        "value.deserializer",
        "enable.auto.commit",
        "group.id",
        "group.instance.id",
        "session.timeout.ms",
        "heartbeat.interval.ms",
        "exclude.internal.topics",
        "default.api.timeout.ms",
        "isolation.level",
        "auto.offset.reset",
        "interceptor.classes",
        "metric.reporters",
    }
)
"""Java consumer settings that this program sets itself, or that have no meaning without group membership."""

T = TypeVar("T")


JAAS: Final = re.compile(r'(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))')


def translate(client: Mapping[str, str | Secret]) -> dict[str, str]:
    """Settings of librdkafka for Java's, secrets revealed: for the client's constructor and nowhere else.

    Raises InvalidConfiguration for Java key stores, which librdkafka cannot read.
    """
    out: dict[str, str] = {}
    problems: list[str] = []
    for key, value in client.items():
        plain = value.reveal() if isinstance(value, Secret) else value
        if key in NO_EFFECT:
            continue
        if key == "sasl.jaas.config":
            out.update(_jaas(plain, problems))
        elif key.startswith(("ssl.truststore.", "ssl.keystore.")):
            _store(key, plain, client, out, problems)
        elif name := RENAMED.get(key, key):
            out[name] = plain
    if problems:
        raise InvalidConfiguration(problems)
    return out


def _jaas(text: str, problems: list[str]) -> dict[str, str]:
    """User and password of a PlainLoginModule or ScramLoginModule line."""
    found = {m[1]: (re.sub(r"\\(.)", r"\1", m[2]) if m[2] is not None else m[3]) for m in JAAS.finditer(text)}
    if {"username", "password"} - found.keys():
        problems.append(
            "Invalid [consumer.sasl.jaas.config]. No username and password in it; "
            "login modules for PLAIN and SCRAM are understood"
        )
        return {}
    return {"sasl.username": found["username"], "sasl.password": found["password"]}


def _store(key: str, plain: str, client: Mapping[str, str | Secret], out: dict[str, str], problems: list[str]) -> None:
    """PEM and PKCS#12 stores have counterparts; JKS has none."""
    side = "truststore" if key.startswith("ssl.truststore.") else "keystore"
    kind = str(client.get(f"ssl.{side}.type", "JKS")).upper()
    what = key.removeprefix(f"ssl.{side}.")
    if what == "type":
        return
    names = {
        ("truststore", "location", "PEM"): "ssl.ca.location",
        ("truststore", "certificates", "PEM"): "ssl.ca.pem",
        ("keystore", "location", "PKCS12"): "ssl.keystore.location",
        ("keystore", "password", "PKCS12"): "ssl.keystore.password",
        ("keystore", "key", "PEM"): "ssl.key.pem",
        ("keystore", "certificate.chain", "PEM"): "ssl.certificate.pem",
    }
    if name := names.get((side, what, kind)):
        out[name] = plain
    elif (side, what) != ("truststore", "password"):
        problems.append(
            f"Invalid [consumer.{key}]. A {side} of type {kind} cannot be read; give PEM "
            f"(ssl.{side}.type=PEM) or, for key stores, PKCS12"
        )


def reader_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Settings of the consumer that reads ranges in executors. It never joins the group and never commits.

    The queue bounds are ours: `queued.max.messages.kbytes` is what one consumer may hold in memory ahead of us. With 1
    MiB it is still in the processor's cache when it is taken: 1.05 µs of CPU per record, with 4 MiB 1.3 to 1.5.
    Checksums are checked, as Java's consumer does; librdkafka does not unless it is asked to.
    """
    return {
        "queued.max.messages.kbytes": "1024",
        "queued.min.messages": "100000",
        "fetch.wait.max.ms": "100",
        "fetch.queue.backoff.ms": "10",
        "fetch.error.backoff.ms": "100",
        "fetch.message.max.bytes": str(1 << 20),
        "check.crcs": "true",
        **_common(kafka),
        "enable.partition.eof": True,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "isolation.level": kafka.isolation_level,
        "group.id": kafka.group,
    }


def group_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Settings of the consumer that reads and commits the group's offsets, without being a member."""
    return {**_common(kafka), "enable.auto.commit": False, "group.id": kafka.group}


def admin_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Settings of the admin client that asks for topics and watermarks."""
    consumer_only = ("fetch.", "queued.", "check.crcs", "max.partition.fetch.bytes", "auto.", "message.max")
    return {k: v for k, v in _common(kafka).items() if not k.startswith(consumer_only)}


def _common(kafka: KafkaSettings) -> dict[str, Any]:
    return {"client.id": f"parquet-sink-{kafka.group}", "log.connection.close": "false", **translate(kafka.client)}


def seconds(kafka: KafkaSettings, name: str, default_s: float) -> float:
    """A Java client setting in milliseconds, as seconds."""
    given = kafka.client.get(name)
    return int(str(given)) / 1000 if given is not None else default_s


def fingerprint(settings: Mapping[str, Any]) -> int:
    """A key for process-wide caches of clients; not stable between processes."""
    return hash(json.dumps(dict(settings), sort_keys=True, default=str))


def build(
    make: Callable[[dict[str, Any]], T],
    settings: dict[str, Any],
    client_log: ClientLog | None = None,
    keys: str = "consumer.override.*",
) -> T:
    """`make(settings)` whose words go to `client_log` when it is polled, and its refusals as InvalidConfiguration.

    keys: where an operator sets them, for the message.
    """
    client_log = client_log or ClientLog(str(settings.get("group.id", "")))
    try:
        return make({**settings, "logger": client_log, "error_cb": client_log.error})
    except KafkaException as error:
        raise InvalidConfiguration([f"Invalid [{keys}]. The Kafka client says: {error.args[0].str()}"]) from None
