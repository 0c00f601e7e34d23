"""Client options: Kafka's Java names, which operators write, to librdkafka's, which we run on."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from parquet_sink.config.secret import plain
from parquet_sink.errors import InvalidConfiguration, KafkaFailed
from parquet_sink.kafka.client.doorstep import Doorstep
from parquet_sink.kafka.client.log import ClientLog
from parquet_sink.kafka.client.security import sasl, tls
from parquet_sink.kafka.client.security.msk import NoToken
from parquet_sink.kafka.client_settings import Client, Translation
from parquet_sink.kafka.settings import KafkaSettings, ProducerSettings

RENAMED: Final[Mapping[str, str]] = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "request.timeout.ms": "socket.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
}
"""Where the two differ by name only."""
MEMBERSHIP: Final = frozenset(
    {
        *("max.poll.records", "max.poll.interval.ms", "partition.assignment.strategy", "group.id", "group.instance.id"),
        *("session.timeout.ms", "heartbeat.interval.ms", "rebalance.timeout.ms", "enable.auto.commit"),
        *("isolation.level", "auto.offset.reset", "key.deserializer", "value.deserializer", "exclude.internal.topics"),
        *("default.api.timeout.ms", "interceptor.classes", "metric.reporters", "metrics.num.samples"),
        *("metrics.recording.level", "metrics.sample.window.ms", "auto.include.jmx.reporter", "enable.metrics.push"),
        "socket.connection.setup.timeout.max.ms",
    }
)
"""Settings that this program sets or reads itself, or that have no meaning without group membership and Java."""
SIGNING_IN: Final = frozenset(
    {
        *("ssl.protocol", "ssl.provider", "ssl.keymanager.algorithm", "ssl.trustmanager.algorithm"),
        *("ssl.secure.random.implementation", "security.providers"),
        *("sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor"),
        *("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms", "sasl.login.refresh.buffer.seconds"),
        *("sasl.login.refresh.min.period.seconds", "sasl.login.refresh.window.factor"),
        *("sasl.login.refresh.window.jitter", "sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms"),
        *("sasl.oauthbearer.clock.skew.seconds", "sasl.oauthbearer.expected.audience"),
        *("sasl.oauthbearer.expected.issuer", "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        *("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        *("sasl.oauthbearer.jwks.endpoint.url", "sasl.oauthbearer.jwt.validator.class"),
        "sasl.oauthbearer.scope.claim.name",
    }
)
"""Settings of Java's own libraries of TLS and SASL, and of brokers."""
NO_EFFECT: Final = MEMBERSHIP | SIGNING_IN
END_OF_PARTITION: Final = KafkaError._PARTITION_EOF  # noqa: SLF001 - the client's public names for its own events
OUT_OF_RANGE: Final = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})  # noqa: SLF001
PRODUCER_NO_EFFECT: Final = frozenset(
    {
        *("key.serializer", "value.serializer", "max.block.ms", "partitioner.class", "partitioner.ignore.keys"),
        *("partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms", "metadata.max.idle.ms"),
        *("transaction.timeout.ms", "transaction.two.phase.commit.enable", "metadata.recovery.strategy"),
        *("compression.gzip.level", "compression.zstd.level"),
    }
)
"""Settings of Java's producer that have no counterpart, or no meaning here."""
PRODUCER_RENAMED: Final[Mapping[str, str]] = {"max.request.size": "message.max.bytes"}
MEMORY: Final = "buffer.memory"
_MEMORY_KB: Final = "queue.buffering.max.kbytes"
_LARGEST_MESSAGE: Final = 1_000_000_000
_LARGEST_QUEUE_KB: Final = 2_097_151
DELIVERY_S: Final = 120.0
"""How long one record may take with all its tries, as in Java, unless `delivery.timeout.ms` says otherwise."""

TRANSACTION_MS: Final = 10_000
"""After which the brokers end a transaction that nobody ends."""

OWN_KEYS: Final = "security.*, sasl.*, ssl.*"
"""Where an operator sets what the worker's own clients are made with, for messages."""

TOKENS: Final = "oauth_cb"
"""Where the client has what it calls for a token."""

T = TypeVar("T")
Build = Callable[..., Any]
"""What makes clients: `build`, or a double of it."""


def translation(client: Client) -> Translation:
    """Settings of librdkafka for Java's, secrets revealed, and what is wrong with them. Stores are read for it."""
    found = Translation()
    for name in client:
        value = plain(client, name)
        if name not in NO_EFFECT and not tls.is_handled(name) and name not in sasl.HANDLED and value is not None:
            found.settings[RENAMED.get(name, name)] = value
    tls.translate(client, found)
    sasl.translate(client, found)
    return found


def translate(client: Client, prefix: str = "consumer.") -> dict[str, Any]:
    """Likewise: for the client's constructor and nowhere else. prefix: of the settings, for messages.

    Raises InvalidConfiguration with all that is wrong.
    """
    found = translation(client)
    if found.problems:
        raise InvalidConfiguration([f"Invalid [{prefix}{name}]. {reason}" for name, reason in found.problems])
    return found.settings if found.tokens is None else {**found.settings, TOKENS: found.tokens}


def reader_options(kafka: KafkaSettings, *, several: bool = False) -> dict[str, Any]:
    """Settings of the consumer that reads ranges in executors. It never joins the group and never commits.

    The queue bounds are ours: `queued.max.messages.kbytes` is what one consumer may hold in memory ahead of us. With 1
    MiB it is still in the processor's cache when it is taken: 1.05 µs of CPU per record, with 4 MiB 1.3 to 1.5. One
    answer of a broker may have as much of each of many topic-partitions that are read together; 8 MiB in all.
    several: each of its topic-partitions has a queue of its own, so the bound is of each. The next are fetched when
    the last fetch has its answer, which short ranges would wait for; with 10 ms the client took 0.24 µs for a record of
    ranges of 4,000, with 100 it took 0.19.
    Checksums are checked, as Java's consumer does; librdkafka does not unless it is asked to.
    `receive.message.max.bytes` also bounds what a batch in zstd may inflate to; other codecs have no bound. It is the
    most that the client allows, since Java's consumer has none.
    """
    return {
        "queued.max.messages.kbytes": "1024",
        "queued.min.messages": "100000",
        "fetch.wait.max.ms": "50" if several else "100",
        "fetch.queue.backoff.ms": "10",
        "fetch.error.backoff.ms": "100",
        "fetch.message.max.bytes": str(1 << 20),
        "fetch.max.bytes": str(8 << 20),
        "receive.message.max.bytes": str((1 << 31) - 1),
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
    soon = {} if kafka.owned.fence is None else {"retry.backoff.ms": "10"}  # a transaction's end is told a little later
    return {**_common(kafka), **soon, "enable.auto.commit": False, "group.id": kafka.group}


def fence_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Settings of the producer that commits the group's offsets in transactions. Raises InvalidConfiguration.

    The client wants requests to be given up before the transaction is. It waits so long between two looks whether the
    transaction before has ended, which the next one has to wait for.
    """
    return {
        **admin_options(kafka),
        "retry.backoff.ms": "10",
        "socket.timeout.ms": str(TRANSACTION_MS),
        "transaction.timeout.ms": str(TRANSACTION_MS),
        "transactional.id": kafka.owned.fence,
        "compression.type": "zstd",
        "message.max.bytes": str(_LARGEST_MESSAGE),
        "enable.idempotence": True,
        "acks": "all",
    }


def state_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Settings of the consumer that reads what a connector learned from a topic, to its end."""
    ours = {"isolation.level": "read_committed", "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    return {**group_options(kafka), **ours}


def admin_options(kafka: KafkaSettings, prefix: str = "consumer.") -> dict[str, Any]:
    """Settings of an admin client. prefix: of the settings, for messages."""
    consumer_only = ("fetch.", "queued.", "check.crcs", "max.partition.fetch.bytes", "auto.", "message.max")
    return {k: v for k, v in _common(kafka, prefix).items() if not k.startswith(consumer_only)}


def producer_options(settings: ProducerSettings) -> dict[str, Any]:
    """Settings of librdkafka's producer, secrets revealed. Raises InvalidConfiguration.

    Batches are small, because a topic's bound on a batch may be less than the client's, which does not halve one that
    is refused. A value may be as large as brokers allow. Keys go to the topic-partitions to which Java would send them.
    """
    given = {name: value for name, value in settings.producer.items() if name not in PRODUCER_NO_EFFECT}
    client = {PRODUCER_RENAMED.get(name, name): value for name, value in given.items()}
    if MEMORY in client:
        client[_MEMORY_KB] = str(max(1, min(int(str(client.pop(MEMORY))) // 1024, _LARGEST_QUEUE_KB)))
    return {
        "client.id": f"parquet-sink-{settings.label}",
        "log.connection.close": "false",
        "batch.size": str(64 << 10),
        "message.max.bytes": str(_LARGEST_MESSAGE),
        _MEMORY_KB: str(_LARGEST_QUEUE_KB),
        "delivery.timeout.ms": str(int(DELIVERY_S * 1000)),
        "partitioner": "murmur2_random",
        **translate(client, "producer."),
        "enable.idempotence": True,
        "acks": "all",
    }


def delivery_s(settings: ProducerSettings) -> float:
    """How long one record may take with all its tries, in seconds."""
    given = settings.producer.get("delivery.timeout.ms")
    return int(str(given)) / 1000 if given is not None else DELIVERY_S


def _common(kafka: KafkaSettings, prefix: str = "consumer.") -> dict[str, Any]:
    ours = {"client.id": f"parquet-sink-{kafka.group}", "log.connection.close": "false"}
    return {**ours, **translate(kafka.client, prefix)}


def seconds(kafka: KafkaSettings, name: str, default_s: float) -> float:
    """A Java client setting in milliseconds, as seconds."""
    given = kafka.client.get(name)
    return int(str(given)) / 1000 if given is not None else default_s


def fingerprint(settings: Mapping[str, Any]) -> int:
    """A key for process-wide caches of clients; not stable between processes."""
    return hash(tuple(sorted((name, str(value)) for name, value in settings.items())))


def build(
    make: Callable[[dict[str, Any]], T],
    settings: dict[str, Any],
    client_log: ClientLog | None = None,
    keys: str = "consumer.override.*",
) -> T:
    """`make(settings)` whose words go to `client_log` when it is polled, and its refusals as InvalidConfiguration.

    keys: where an operator sets them, for the message.
    """
    client_log = client_log or ClientLog(f"group {settings.get('group.id', '')}")
    client_log.look_with(Doorstep(settings))
    if TOKENS in settings:
        try:
            settings[TOKENS]("")  # the client waits 10 s for a token, and does not say why none came
        except NoToken as error:
            raise KafkaFailed(f"The Kafka client cannot sign in: {error}") from None
    try:
        return make({**settings, "logger": client_log, "error_cb": client_log.error})
    except KafkaException as error:
        raise InvalidConfiguration([f"Invalid [{keys}]. The Kafka client says: {error.args[0].str()}"]) from None
