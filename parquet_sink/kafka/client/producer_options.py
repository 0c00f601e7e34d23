"""Options of producers: Kafka's Java names, which operators write, to librdkafka's."""

from collections.abc import Mapping
from typing import Any, Final

from parquet_sink.kafka.client.options import translate
from parquet_sink.kafka.settings import ProducerSettings

NO_EFFECT: Final = frozenset(
    {
        *("key.serializer", "value.serializer", "max.block.ms", "partitioner.class", "partitioner.ignore.keys"),
        *("partitioner.adaptive.partitioning.enable", "partitioner.availability.timeout.ms", "metadata.max.idle.ms"),
        *("transaction.timeout.ms", "transaction.two.phase.commit.enable", "metadata.recovery.strategy"),
        *("compression.gzip.level", "compression.zstd.level"),
    }
)
"""Settings of Java's producer that have no counterpart, or no meaning here."""
RENAMED: Final[Mapping[str, str]] = {"max.request.size": "message.max.bytes"}
MEMORY: Final = "buffer.memory"
_MEMORY_KB: Final = "queue.buffering.max.kbytes"
_LARGEST_MESSAGE: Final = 1_000_000_000
_LARGEST_QUEUE_KB: Final = 2_097_151
DELIVERY_S: Final = 120.0
"""How long one record may take with all its tries, as in Java, unless `delivery.timeout.ms` says otherwise."""


def producer_options(settings: ProducerSettings) -> dict[str, Any]:
    """Settings of librdkafka's producer, secrets revealed. Raises InvalidConfiguration.

    Batches are small, because a topic's bound on a batch may be less than the client's, which does not halve one that
    is refused. A value may be as large as brokers allow. Keys go to the topic-partitions to which Java would send them.
    """
    client = {RENAMED.get(name, name): value for name, value in settings.producer.items() if name not in NO_EFFECT}
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
