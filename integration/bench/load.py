"""Records to deliver: a pool of JSON orders, and how they get into a topic fast."""

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import KafkaException, Producer, TopicPartition

from parquet_sink.errors import KafkaFailed

POOL: Final = 200_000
PATIENCE_S: Final = 120.0
_STATUS: Final = ("created", "paid", "packed", "shipped", "delivered", "returned")
_CURRENCIES: Final = ("EUR", "USD", "GBP", "CHF")
_FIRST_MS: Final = 1_795_000_000_000
_FAST: Final[dict[str, str | int | float | bool]] = {
    "compression.type": "lz4",
    "linger.ms": 50,
    "batch.size": 1 << 20,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 262_144,
    "message.timeout.ms": 120_000,
    "log_level": 3,
}


def pool(count: int = POOL, seed: int = 1) -> list[bytes]:
    """So many serialized orders: seven fields, about 150 bytes each. The same for the same seed."""
    chance = random.Random(seed)
    return [_order(chance, number) for number in range(count)]


def _order(chance: random.Random, number: int) -> bytes:
    at = _FIRST_MS + number * 37 + chance.randrange(1000)
    order = {
        "order_id": number,
        "customer": f"customer-{chance.randrange(20_000):05d}",
        "status": chance.choice(_STATUS),
        "amount": round(chance.uniform(1, 900), 2),
        "currency": chance.choice(_CURRENCIES),
        "quantity": chance.randrange(1, 20),
        "updated_at": f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at // 1000))}.{at % 1000:03d}Z",
    }
    return json.dumps(order, separators=(",", ":")).encode()


def fill(
    servers: str,
    topic: str,
    partitions: int,
    per_partition: int,
    values: Sequence[bytes],
    record: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Writes `per_partition` records to each topic-partition. record: `key`, `headers` of each. Raises KafkaFailed."""
    producer = Producer({"bootstrap.servers": servers, **_FAST})
    _send(producer, topic, partitions, per_partition, values, record)
    _flush(producer, topic)


def fill_each(servers: str, topics: Sequence[str], partitions: int, values: Sequence[bytes]) -> None:
    """Write one record to each topic-partition of all topics. Raise KafkaFailed."""
    producer = Producer({"bootstrap.servers": servers, **_FAST})
    for topic in topics:
        _send(producer, topic, partitions, 1, values, {})
    _flush(producer, f"{topics[0]} to {topics[-1]}")


@contextmanager
def held_back(
    servers: str,
    topic: str,
    partitions: int,
    per_partition: int,
    values: Sequence[bytes],
    record: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Producer]:
    """Writes the records in a transaction that is open within the block. Raises KafkaFailed.

    Until `commit_transaction` nobody who reads committed records sees them, and then all of them at once.
    """
    identity = f"bench-{topic}"
    producer = Producer(
        {"bootstrap.servers": servers, "transactional.id": identity, "transaction.timeout.ms": 600_000, **_FAST}
    )
    try:
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        _send(producer, topic, partitions, per_partition, values, record)
        _flush(producer, topic)
        yield producer
    except KafkaException as error:
        raise KafkaFailed(f"Topic {topic}: the records could not be written: {error.args[0].str()}") from error


def _send(
    producer: Producer,
    topic: str,
    partitions: int,
    per_partition: int,
    values: Sequence[bytes],
    record: Mapping[str, Any],
) -> None:
    """In pieces that fit the producer's queue, topic-partition by topic-partition in turn."""
    produce, size = producer.produce, len(values)
    for partition, numbers in pieces(partitions, per_partition):
        for number in numbers:
            value = values[number % size]
            try:
                produce(topic, value, partition=partition, **record)
            except BufferError:
                _make_room(producer, topic)
                produce(topic, value, partition=partition, **record)
        producer.poll(0)


def pieces(partitions: int, per_partition: int) -> Iterator[tuple[int, range]]:
    """Which records go where: topic-partition, and the numbers of some records in the pool, which begins anew."""
    for first in range(0, per_partition, 10_000):
        for partition in range(partitions):
            base = first * partitions + partition * 10_000
            yield partition, range(base, base + min(10_000, per_partition - first))


def _make_room(producer: Producer, topic: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(producer) > 500_000:
        producer.poll(0.1)
        if time.monotonic() > deadline:
            raise KafkaFailed(f"Topic {topic}: the broker took no records for {PATIENCE_S:.0f} s.")


def _flush(producer: Producer, topic: str) -> None:
    left = producer.flush(PATIENCE_S)
    if left:
        raise KafkaFailed(f"Topic {topic}: {left} records were not taken within {PATIENCE_S:.0f} s.")


def trickle(
    servers: str, topic: str, partitions: int, per_second: int, seconds: int, values: Sequence[bytes]
) -> dict[tuple[int, int], float]:
    """Produces evenly for so long; the record timestamp (epoch seconds) by (topic-partition, offset).

    Raises KafkaFailed when a record was not acknowledged.
    """
    return trickle_all(servers, [topic], partitions, per_second, seconds, values)[topic]


def trickle_all(
    servers: str, topics: Sequence[str], partitions: int, per_second: int, seconds: int, values: Sequence[bytes]
) -> dict[str, dict[tuple[int, int], float]]:
    """Produce evenly to all topics as `trickle` does, and return its result by topic. per_second: of all together."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "log_level": 3})
    stamps: dict[str, dict[tuple[int, int], float]] = {topic: {} for topic in topics}
    failures: list[str] = []

    def delivered(error: object, message: Any) -> None:
        if error is not None:
            failures.append(str(error))
            return
        stamps[message.topic()][message.partition(), message.offset()] = message.timestamp()[1] / 1000

    began = time.monotonic()
    for number in range(per_second * seconds):
        due = began + number / per_second
        while (wait := due - time.monotonic()) > 0:
            producer.poll(min(wait, 0.05))
        topic, partition = topics[number % len(topics)], number // len(topics) % partitions
        producer.produce(topic, values[number % len(values)], partition=partition, on_delivery=delivered)
    _flush(producer, topics[0])
    if failures:
        raise KafkaFailed(f"Topic {topics[0]}: {len(failures)} records were not taken: {failures[0]}")
    return stamps


def ends(servers: str, topic: str, partitions: int) -> dict[int, int]:
    """The last stable offset of each topic-partition, by a client of its own."""
    from confluent_kafka import Consumer

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench-ends", "isolation.level": "read_committed"})
    try:
        return {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in range(partitions)}
    finally:
        consumer.close()
